"""`handrail connect CLIENT --prove` says why no call came, and leaves no process and no folder behind.

The programs here are stand-ins that do wrong; tests/real_clients/test_proof.py has the real ones.
"""

import sys
from pathlib import Path

import pytest
from tests.support.cli_home import CommandResult, Home
from tests.support.client_machine import ClientMachine

pytestmark = pytest.mark.e2e

ASKS_NO_HOOK = """\
import json, os, re, subprocess, urllib.request
config = open(os.path.expanduser("~/.codex/config.toml")).read()
url = re.search('base_url = "(.*)"', config)[1]
body = json.dumps({"tools": [{"name": "exec_command"}]}).encode()
request = urllib.request.Request(url + "/responses", body)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
answer = json.load(opener.open(request, timeout=30))
line = json.loads(answer["output"][0]["arguments"])["cmd"]
subprocess.run(line, shell=True, check=True)
"""
LEAVES_A_PROCESS = """\
import os, subprocess, sys
left = subprocess.Popen(["sleep", "600"], start_new_session=True)
print("left", left.pid, flush=True)
sys.exit(7)
"""


class Desk:
    """A user whose Codex is a stand-in, and the folder for scratch homes."""

    def __init__(self, handrail: Home, machine: ClientMachine, temporary: Path) -> None:
        self.handrail, self.machine, self.temporary = handrail, machine, temporary
        temporary.mkdir()
        handrail.env |= {**machine.environ, "TMPDIR": str(temporary)}
        self.put("handrail", "#!/bin/sh\n")

    def put(self, name: str, text: str) -> None:
        program = self.machine.bin / name
        program.write_text(text)
        program.chmod(0o755)

    def put_codex(self, text: str) -> None:
        """A Codex that knows its version and otherwise does this."""
        version = 'import sys\nif sys.argv[1:] == ["--version"]:\n    sys.exit("codex-cli 0.1.0")\n'
        self.put("codex", f"#!{sys.executable} -I\n{version}{text}")

    def prove(self, *arguments: str) -> CommandResult:
        return self.handrail.run("connect", *arguments, "--prove", cwd=self.machine.project)


@pytest.fixture
def desk(handrail: Home, tmp_path: Path) -> Desk:
    return Desk(handrail, ClientMachine(tmp_path / "machine"), tmp_path / "temporary")


def test_a_client_that_runs_the_command_without_its_hooks_is_found_out(desk: Desk) -> None:
    desk.put_codex(ASKS_NO_HOOK)
    before = desk.machine.snapshot()
    done = desk.prove("codex")
    assert done.code == 1
    assert (
        "ran the command without asking Handrail: its hooks did not run. It ended with status 0." in done.err
    )
    assert desk.machine.snapshot() == before
    assert list(desk.temporary.iterdir()) == []


def test_the_words_of_a_client_that_fails_are_shown_and_what_it_started_is_ended(desk: Desk) -> None:
    desk.put_codex(LEAVES_A_PROCESS)
    done = desk.prove("codex")
    assert done.code == 1
    assert "did not ask the model for anything. It ended with status 7." in done.err
    assert " was tried." in done.err  # another version than the one that is known
    pid = done.err.rpartition("left ")[2].split()[0]
    assert _is_gone(pid)
    assert list(desk.temporary.iterdir()) == []


def _is_gone(pid: str) -> bool:
    """A killed process may stay as a zombie until its new parent reads its status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except OSError:
        return True


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("codex",), 1, "Codex CLI is not installed: there is no codex on PATH"),
        (("zed",), 1, "There is no proof for Zed"),
        (("codx",), 1, "Did you mean codex"),
        (("--all",), 2, "--prove takes one client"),
        (("codex", "--no-hooks"), 2, "--prove takes one client"),
        (("codex", "--undo"), 2, "--prove takes one client"),
    ],
)
def test_what_cannot_be_proven_gets_a_sentence(
    desk: Desk, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    done = desk.prove(*arguments)
    assert (done.code, sentence in " ".join(done.err.replace("│", " ").split())) == (code, True), done.err


def test_a_proof_needs_a_running_daemon(alone: Home, tmp_path: Path) -> None:
    desk = Desk(alone, ClientMachine(tmp_path / "machine"), tmp_path / "temporary")
    desk.put_codex(LEAVES_A_PROCESS)
    done = desk.prove("codex")
    assert (done.code, "handrail up" in done.err) == (3, True), done.err
    assert list(desk.temporary.iterdir()) == []
