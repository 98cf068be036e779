"""A real coding agent behind its hooks: a daemon, a scripted model, a person at the inbox, and the agent's own home.

Owns the home directory that the agent and Handrail share, and the agent's processes. Knows no agent in particular.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from anyio.abc import ByteReceiveStream, Process
from pydantic import JsonValue
from tests.real_agents.hosting import offline_environment, put_files
from tests.real_agents.install import node
from tests.real_clients.client_catalog import ALWAYS, Client, Fault
from tests.support.daemon_home import Home, eventually, running_daemon
from tests.support.model_server.script import Turn, script
from tests.support.model_server.server import ModelServer, model_server
from tests.support.person_client import Json, Person, person_of
from tests.support.thread_client import GRACE

TURN_SECONDS = 120.0
"""For one headless turn: node programs take many seconds to start on a busy machine."""
LAUNCHER = "import sys\n\nfrom handrail.__main__ import main\n\nsys.exit(main())\n"
"""As an installer writes it."""
BROKEN: Mapping[Fault, str] = {
    "crashed": "#!/bin/sh\nexit 1\n",
    "killed": "#!/bin/sh\nkill -9 $$\n",
}
"""Programs in place of the launcher."""


@dataclass(slots=True)
class ClientRun:
    """One headless turn, while it runs and afterwards."""

    process: Process
    output: bytearray = field(default_factory=bytearray)
    code: int | None = None
    """Once it has ended."""

    async def read(self, stream: ByteReceiveStream) -> None:
        async for piece in stream:
            self.output += piece

    @property
    def text(self) -> str:
        return self.output.decode(errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedClient:
    """One coding agent with its home, and everything around it."""

    client: Client
    home: Home
    person: Person
    model: ModelServer
    folder: Path
    scripted: list[str] = field(default_factory=list[str])
    """The client's own tools that the model has used, while the hook worked."""
    faults: list[Fault] = field(default_factory=list[Fault])
    """What is wrong with the hook at the moment."""
    wrapper: tuple[str, ...] = ()
    """A program with arguments that starts the client and the CLI, as in a namespace."""

    @property
    def workspace(self) -> Path:
        return self.folder / "work"

    @property
    def launcher(self) -> Path:
        return self.folder / "bin" / "handrail"

    @property
    def user_home(self) -> Path:
        return Path(self.home.environment["HOME"])

    @property
    def environment(self) -> Mapping[str, str]:
        """Nothing of ours but the home: the machine that tests run on may be set up for another agent."""
        return {
            "PATH": os.pathsep.join(
                (str(self.launcher.parent), str(node().parent), "/usr/local/bin", "/usr/bin", "/bin")
            ),
            "HOME": str(self.user_home),
            "HANDRAIL_HOME": self.home.environment["HANDRAIL_HOME"],
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            **offline_environment(self.model.url),
            **self.client.environment(self.model.url),
        }

    def handrail(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """One command of the CLI, by the launcher that a person has on the path."""
        return subprocess.run(
            [*self.wrapper, str(self.launcher), *words],
            cwd=self.workspace,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TURN_SECONDS,
            check=False,
        )

    @asynccontextmanager
    async def running(
        self, *turns: Turn, arguments: tuple[str, ...] = (), within: float = TURN_SECONDS
    ) -> AsyncGenerator[ClientRun]:
        """A headless turn in which the model plays these turns; it has ended when the `with` is left."""
        prompt = script(*turns, *self.client.ends)
        if not self.faults:
            uses = [use for turn in (*turns, *self.client.ends) for use in turn.uses]
            self.scripted.extend(use.tool for use in uses if not self.client.is_ours(use))
        told = () if self.client.reads_prompt else (prompt,)
        process = await anyio.open_process(
            [*self.wrapper, *self.client.command(), *arguments, *self.client.arguments, *told],
            cwd=self.workspace,
            env=dict(self.environment),
            stdin=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        run = ClientRun(process)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with anyio.fail_after(within):
                async with anyio.create_task_group() as group:
                    group.start_soon(run.read, process.stdout)
                    if self.client.reads_prompt:
                        await process.stdin.send(prompt.encode())
                    await process.stdin.aclose()
                    yield run
                    run.code = await process.wait()
                    group.cancel_scope.cancel()  # a process that it left behind may hold the pipe
        finally:
            with anyio.CancelScope(shield=True):
                self._end(process)
                await process.wait()
                await process.aclose()

    def _end(self, process: Process) -> None:
        """The whole session of a client, which this test started."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    async def run(self, *turns: Turn, arguments: tuple[str, ...] = ()) -> ClientRun:
        async with self.running(*turns, arguments=arguments) as run:
            pass
        return run

    def is_told(self, words: str) -> bool:
        """Whether the model was told this. Some clients send more requests after that, for a memory or a title."""
        return any(words in str(request.body) for request in self.model.asked)

    async def calls(self) -> list[Json]:
        """The recorded calls of the client's own tools, oldest first."""
        listed: list[Json] = await self.person.get("calls")
        return sorted(
            (call for call in listed if call["assurance"] == "advisory"), key=lambda call: call["seq"]
        )

    async def settled_calls(self) -> list[Json]:
        """The same, once all of them have ended: the report of the last one may come after its turn."""

        async def look() -> list[Json] | None:
            calls = await self.calls()
            return calls if all(call["status"] not in ("waiting", "running") for call in calls) else None

        return await eventually(look)

    async def allow_edited(self, line: str, instead: str) -> None:
        """Allow another command in place of this one, when its question comes."""
        asked = await self.person.question(line)
        edited = _replace_text(asked["input"], line, instead)
        preview = await self.person.post(f"approvals/{asked['id']}/edit", {"input": edited})
        body = {"answer": "allow", "digest": preview["digest"], "input": edited}
        await self.person.post(f"approvals/{asked['id']}/answer", body)

    @contextmanager
    def fault(self, fault: Fault) -> Generator[None]:
        """The hook program does not work: gone, crashing, killed, or without a daemon that could be started."""
        before = self.launcher.read_text()
        config = self.home.places.config.read_text()
        self.faults.append(fault)
        if fault == "daemon_down":
            self.home.places.config.write_text("not = [valid\n")
            self.home.end()
        elif fault == "missing":
            self.launcher.unlink()
        else:
            self.launcher.write_text(BROKEN[fault])
        try:
            yield
        finally:
            self.home.places.config.write_text(config)
            self._put_launcher(before)
            if fault == "daemon_down":
                self.home.up()
            self.faults.remove(fault)

    def _put_launcher(self, text: str) -> None:
        self.launcher.write_text(text)
        self.launcher.chmod(0o755)

    def files(self) -> dict[str, bytes]:
        """Every file of the person's home, with its content."""
        found: dict[str, bytes] = {}
        for path in self._paths():
            with suppress(
                FileNotFoundError
            ):  # some clients are still unpacking and removing files of their own
                found[str(path.relative_to(self.user_home))] = path.read_bytes()
        return found

    def _paths(self) -> Iterator[Path]:
        paths = (Path(folder, name) for folder, _, names in os.walk(self.user_home) for name in names)
        return (path for path in paths if path.is_file() and not path.is_symlink())


def _replace_text(value: JsonValue, old: str, new: str) -> JsonValue:
    """The same input with another text, wherever the client has it."""
    match value:
        case str():
            return value.replace(old, new)
        case list():
            return [_replace_text(each, old, new) for each in value]
        case dict():
            return {key: _replace_text(each, old, new) for key, each in value.items()}
        case _:
            return value


@contextmanager
def guarded_client(
    client: Client, config: str = "", wrapper: tuple[str, ...] = ()
) -> Generator[GuardedClient]:
    """A client that is not connected yet, in a home that holds its settings; `config` is more of Handrail's."""
    _require_program(client)
    with (
        tempfile.TemporaryDirectory(prefix="hr-client-") as made,
        model_server() as model,
        running_daemon(GRACE + config) as home,
    ):
        folder = Path(os.path.realpath(made))
        (folder / "work").mkdir()
        (folder / "bin").mkdir()
        person = person_of(home)
        person.patience = TURN_SECONDS
        guarded = GuardedClient(
            client=client, home=home, person=person, model=model, folder=folder, wrapper=wrapper
        )
        guarded._put_launcher(f"#!{sys.executable} -P\n{LAUNCHER}")  # pyright: ignore[reportPrivateUsage]
        _put_program(guarded)
        put_files(guarded.user_home, client.files(model.url))
        yield guarded


def _require_program(client: Client) -> None:
    """Without it the test would wait for a question until its patience ends."""
    try:
        missing = [word for word in client.command() if not Path(word).exists()]
    except ValueError:  # no package for this machine
        missing = [client.name]
    if missing:
        chore = "make agents" if client.name in {each.name for each in ALWAYS} else "make test-agents-all"
        pytest.fail(f"{client.name} is not installed: there is no {missing[0]}. Run: {chore}", pytrace=False)


def _put_program(guarded: GuardedClient) -> None:
    """The client on the path, under the name that people call it by."""
    path = guarded.launcher.with_name(guarded.client.name)
    words = " ".join(f"'{word}'" for word in guarded.client.command())
    path.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    path.chmod(0o755)
