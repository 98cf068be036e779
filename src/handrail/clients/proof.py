"""A proof that a client's own shell tool reaches Handrail: one headless turn of the real client against a scripted model.

The client runs in a scratch home with the entries that `connect` would write. The daemon is the real one, so the call is in
its journal and its inbox. Owns the scratch home and the client's processes; both are gone when the proof ends.
"""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from secrets import token_hex

from handrail.clients._proof_model import ProofCall, ProofModel, proof_model
from handrail.clients.client_facts import Client, Machine, Setup
from handrail.clients.connection_plan import connect, plan_connect
from handrail.clients.connections import Connections
from handrail.clients.proof_recipes import RECIPES, ProofRecipe
from handrail.lazy_dataclass import dataclass
from handrail.paths import Places

PROMPT = "Run the command."
MARK = "HANDRAIL_PROOF"
"""Variable that all processes of a proof inherit, so that those which left its session are found, too."""
PASSED = ("PATH", "SHELL", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE")
"""Variables of the user that the client gets. Keys and configuration folders are not among them."""
OUTPUT_MAX = 1_500
"""Characters of the client's output that an explanation holds."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A client in its headless turn."""

    command: str
    """The command line that the model asks for."""
    model: ProofModel
    process: subprocess.Popen[bytes]
    folder: Path
    mark: str

    @property
    def exit_code(self) -> int | None:
        return self.process.poll()

    @property
    def has_run(self) -> bool:
        """Whether the command was carried out."""
        return (self.folder / "work" / self.mark).exists()

    @property
    def output(self) -> str:
        """The end of what the client printed."""
        text = (self.folder / "output").read_text(errors="replace")
        return text.strip()[-OUTPUT_MAX:]

    def stop(self) -> None:
        """Kill the client and everything that it started.

        Without a warning: some clients run the tool if only its hook has ended.
        """
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for pid in _find_marked(self.folder):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def run_proof(client: Client, setup: Setup) -> Generator[Proof]:
    """Start a client that has a recipe; `setup` is that of `connect`. Raises ConnectRefused, OSError."""
    recipe = RECIPES[client.name]
    mark = f"proof-{token_hex(6)}"
    command = f"touch {mark}"
    with (
        tempfile.TemporaryDirectory(prefix="handrail-proof-", ignore_cleanup_errors=True) as made,
        proof_model(ProofCall(recipe.tool, recipe.input(command), mark)) as model,
    ):
        folder = Path(os.path.realpath(made))
        environ = _build_environment(setup.machine, recipe, folder, model.url)
        _write_files(folder / "home", recipe.files(model.url))
        _connect(client, setup, folder, environ)
        proof = Proof(command, model, _start(setup, recipe, folder, environ), folder, mark)
        try:
            yield proof
        finally:
            proof.stop()


def _build_environment(machine: Machine, recipe: ProofRecipe, folder: Path, model: str) -> dict[str, str]:
    for name in ("home", "work", "tmp", "bin"):
        (folder / name).mkdir()
    passed = {name: machine.environ[name] for name in PASSED if name in machine.environ}
    return {
        **passed,
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "TERM": "dumb",
        "HTTP_PROXY": model,
        "HTTPS_PROXY": model,
        "NO_PROXY": "127.0.0.1,localhost",
        "NODE_USE_ENV_PROXY": "1",
        MARK: str(folder),
        **recipe.variables(model),
    }


def _write_files(home: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _connect(client: Client, setup: Setup, folder: Path, environ: Mapping[str, str]) -> None:
    """Write the entries of `connect` into the scratch home. Its records stay there, too."""
    machine = Machine(folder / "home", environ, folder / "work", setup.machine.root)
    launcher = replace(setup.launcher, path=str(_write_launcher(setup, folder)))
    records = folder / "records"
    records.mkdir()
    connections = Connections(records)
    scratch = replace(setup, machine=machine, launcher=launcher, scope="user", is_locked=False)
    connect(plan_connect(client, scratch, connections), connections, environ)


def _write_launcher(setup: Setup, folder: Path) -> Path:
    """A program that starts the real launcher with the variables by which it finds the real daemon."""
    variables = Places.find(setup.machine.environ).environment
    words = ["exec", "/usr/bin/env", *(f"{name}={value}" for name, value in variables.items())]
    path = folder / "bin" / "handrail"
    path.write_text(f'#!/bin/sh\n{shlex.join([*words, setup.launcher.path])} "$@"\n')
    path.chmod(0o755)
    return path


def _start(
    setup: Setup, recipe: ProofRecipe, folder: Path, environ: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    prompt = folder / "prompt"
    prompt.write_text(PROMPT if recipe.reads_prompt else "")
    words = () if recipe.reads_prompt else (PROMPT,)
    with prompt.open("rb") as stdin, (folder / "output").open("wb") as stdout:
        return subprocess.Popen(
            [setup.program or "", *recipe.arguments, *words],
            cwd=folder / "work",
            env=dict(environ),
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _find_marked(folder: Path) -> list[int]:
    """Processes that inherited the mark of this proof. Only Linux lets us see; elsewhere the session was ended."""
    if sys.platform != "linux":
        return []
    mark = f"{MARK}={folder}".encode()
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    return [pid for pid in pids if pid != os.getpid() and mark in _read_environ(pid)]


def _read_environ(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
