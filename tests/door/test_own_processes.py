"""The keeper of a home is found and ended from outside, also while it hangs, and no other process is taken for it."""

import fcntl
import os
import signal
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.keeper_terminals import BOUND, running_keeper
from tests.support.processes import is_alive

from handrail.door import own_processes
from handrail.door.own_processes import (
    describe_hung_keeper,
    end_process,
    find_daemon,
    find_hung_keeper,
    find_keeper,
)
from handrail.paths import Places

pytestmark = pytest.mark.anyio


def test_in_a_home_where_nothing_runs_nothing_is_found(home: Path) -> None:
    places = Places.under(home)
    assert (find_keeper(places), find_hung_keeper(places), find_daemon(places)) == (None, None, None)


async def test_a_keeper_that_answers_does_not_hang(home: Path) -> None:
    async with running_keeper(home) as scene:
        assert find_keeper(Places.under(home)) == scene.keeper.pid
        assert find_hung_keeper(Places.under(home)) is None


async def test_a_stopped_keeper_is_found_even_when_its_queue_is_full_and_ended(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_processes, "ANSWER_SECONDS", 0.2)
    places = Places.under(home)
    async with running_keeper(home, end=False) as scene:
        pid = scene.keeper.pid
    os.kill(pid, signal.SIGSTOP)
    assert find_hung_keeper(places) == pid
    assert f"The keeper (process {pid}) does not answer: it is stopped" in describe_hung_keeper(pid)
    with ExitStack() as peers:
        fill_queue(places, peers)
        assert find_hung_keeper(places) == pid
    assert end_process(pid)
    assert not is_alive(pid)
    assert find_keeper(places) is None


def fill_queue(places: Places, peers: ExitStack) -> None:
    while True:
        peer = peers.enter_context(socket.socket(socket.AF_UNIX))
        peer.setblocking(False)
        try:
            peer.connect(str(places.keeper_socket))
        except BlockingIOError:
            return


def test_a_process_that_only_stands_in_the_file_is_not_taken_for_the_keeper(home: Path) -> None:
    places = Places.under(home)
    with subprocess.Popen(["/bin/sleep", "1000"]) as other:
        places.keeper_lock.write_text(f"{other.pid}\n")
        assert find_keeper(places) is None
        with places.keeper_lock.open("r+") as lock, ExitStack() as stack:
            fcntl.flock(lock, fcntl.LOCK_EX)
            stack.callback(other.kill)
            assert find_keeper(places) is None, "it is locked, but by another process"
        other.wait(BOUND)


def test_a_process_that_ignores_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_processes, "END_SECONDS", 0.2)
    with subprocess.Popen(
        ["/bin/sh", "-c", "trap '' TERM; echo; sleep 1000"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert end_process(process.pid)
        assert process.wait(BOUND) == -signal.SIGKILL
