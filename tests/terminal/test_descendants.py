"""A part of a program's process tree is ended, while the program and what it speaks to live on."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator

import pytest
from tests.support.processes import is_alive

from handrail.keeper import lineage
from handrail.terminal.descendants import Identity, end_descendants, list_descendants

pytestmark = pytest.mark.anyio

LEADER = """
import subprocess, sys
null = subprocess.DEVNULL
sleep = [sys.executable, "-S", "-c", "import time; time.sleep(3600)"]
command = subprocess.Popen(["sh", "-c", '"$@"; :', "sh", *sleep], stdin=null, stdout=null)
server = subprocess.Popen(sleep, stdin=subprocess.PIPE, stdout=null)
print(command.pid, server.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def leader() -> Generator[tuple[subprocess.Popen[str], int, int]]:
    """A program with a command and a server that it speaks to."""
    with subprocess.Popen(
        [sys.executable, "-S", "-c", LEADER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        command, server = map(int, process.stdout.readline().split())
        yield process, command, server
        os.killpg(process.pid, signal.SIGKILL)  # what the command started, too


def identity(pid: int) -> Identity:
    found = lineage.identity(pid)
    assert found is not None
    return found


async def test_a_command_is_ended_with_what_it_started_and_a_server_is_only_named(
    leader: tuple[subprocess.Popen[str], int, int],
) -> None:
    process, command, server = leader
    assert {identity(command), identity(server)} <= await list_descendants(process.pid)
    new = frozenset((identity(command), identity(server)))
    ended = await end_descendants(process.pid, new, patience=0, grace=2)
    assert command in [each.pid for each in ended.stopped]
    assert [each.pid for each in ended.left] == [server]
    assert identity(command) not in await list_descendants(process.pid), "at most a zombie is left"
    assert process.poll() is None
    assert is_alive(server)


async def test_a_pid_that_was_used_again_is_not_signalled(
    leader: tuple[subprocess.Popen[str], int, int],
) -> None:
    process, command, _ = leader
    pid, start = identity(command)
    ended = await end_descendants(process.pid, frozenset(((pid, start - 1),)), patience=0, grace=2)
    assert (ended.stopped, ended.left) == ((), ())
    assert is_alive(command)
