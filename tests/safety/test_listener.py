"""Who listens on the daemon's socket: people and agents give nothing to a process that is not our daemon."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator

import pytest
from tests.support.user_account import Account, Attacker, AttackResult, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SECRET = "a-password-that-is-typed"
LISTEN = """
import os, socket, sys
path = os.environ["HANDRAIL_HOME"] + "/daemon.sock"
os.unlink(path)
listener = socket.socket(socket.AF_UNIX); listener.bind(path); listener.listen(64)
print("listening", flush=True)
peer = listener.accept()[0]; peer.settimeout(5)
print(peer.recv(65536), flush=True)
"""
USES: dict[str, tuple[str, ...]] = {
    "types a secret": ("terminal", "send", "t1", "-"),
    "opens the page": ("open", "--print"),
    "chats": ("chat", "hello"),
    "approves": ("approve", "a1"),
    "opens a shell": ("shell", "--", "true"),
    "starts": ("up", "--no-open"),
    "speaks MCP": ("mcp",),
}


def use(account: Account, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of the person's, who types a secret."""
    argv = (account.python, "-m", "handrail", *arguments)
    with account.spawn(*argv, stdin=subprocess.PIPE) as process:
        out, err = process.communicate(json.dumps({"id": 1, "method": SECRET}) + "\n", timeout=60)
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


@pytest.fixture(scope="module")
def hostile(new_account: Callable[[], Account]) -> Iterator[Attacker]:
    """A command of Handrail's listens in the daemon's place."""
    hostile = Attacker(new_account())
    hostile.order("directly", ["listens on the daemon's socket"])
    until((hostile.account.workspace / "listening").exists, "the attack listens")
    yield hostile
    hostile.account.write(hostile.account.workspace / "enough", "")


@pytest.mark.parametrize("way", USES)
def test_a_person_gives_nothing_to_a_command_that_listens_in_the_daemons_place(
    hostile: Attacker, way: str
) -> None:
    done = use(hostile.account, *USES[way])
    said = done.stdout + done.stderr
    assert "listens on" in said
    assert "Nothing was sent to it" in said
    assert "#code=" not in said


def test_nothing_was_given(hostile: Attacker) -> None:
    """It depends on the tests before, after which the attack tells what it was given."""
    hostile.account.write(hostile.account.workspace / "enough", "")
    loot: AttackResult = hostile.loot()
    got = loot.of("listens on the daemon's socket")
    assert got.code != 0, got.said
    assert got.said == ""


def test_a_process_that_the_keeper_does_not_know_as_its_daemon_is_given_nothing(
    new_account: Callable[[], Account],
) -> None:
    """As an agent outside of Handrail could listen there, which carries no mark."""
    account = new_account()
    account.start()
    with account.spawn(account.python, "-c", LISTEN) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "listening\n"
        done = use(account, "open", "--print")
        assert done.returncode == 1
        assert f"the keeper's daemon is process {account.pid}" in done.stderr
        assert other.stdout.readline() == "b''\n"


def test_a_marked_process_is_given_nothing_where_no_keeper_lives_to_name_the_daemon(
    new_account: Callable[[], Account],
) -> None:
    """A command can kill both, and listen before the next daemon does."""
    account = new_account()
    account.start()
    for pid in (account.keeper, account.pid):
        os.kill(pid, signal.SIGKILL)
    line = f"from handrail.keeper.lineage import mark; mark()\n{LISTEN}"
    with account.spawn(account.python, "-c", line) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "listening\n"
        done = use(account, "open", "--print")
        assert done.returncode == 1
        assert "Handrail started it, or it is marked" in done.stderr
        assert other.stdout.readline() == "b''\n"
