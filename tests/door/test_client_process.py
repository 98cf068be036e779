"""The door leaves when its client has exited, whoever holds the client's end of its input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from tests.support.daemon_home import watch_exit
from tests.support.scripted_daemon import BOUND, SRC, ScriptedDaemon, request

from handrail.door.client_process import START_SECONDS, find_wrappers, has_same_arguments

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

CLIENT = """
import json, subprocess, sys
print("ready", flush=True)
sys.stdin.readline()
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
door = subprocess.Popen([sys.executable, "-m", "handrail", "mcp"], **pipes)
ends = (door.stdin.fileno(), door.stdout.fileno())
holder = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.DEVNULL, pass_fds=ends)
door.stdin.write(sys.argv[1].encode() + b"\\n")
door.stdin.flush()
print(json.dumps([door.pid, holder.pid]), flush=True)
sys.stdin.read()
"""
"""A client that starts the door when it is told to, and gives another process its ends of the door's pipes."""
WRAPPER = """
import subprocess, sys
program = sys.argv[1]
sys.exit(subprocess.call([sys.executable, "-u", program, *sys.argv[2:]]))
"""


@dataclass(frozen=True)
class Launched:
    """A client that runs."""

    top: subprocess.Popen[bytes]
    """The process that the person started: the client, or its wrapper."""
    door: int
    holder: int


@contextmanager
def launched(folder: Path, *, wrappers: int) -> Generator[Launched]:
    (folder / "client.py").write_text(CLIENT)
    (folder / "wrapper.py").write_text(WRAPPER)
    programs = [*["wrapper.py"] * wrappers, "client.py"]
    argv = [sys.executable, *(str(folder / name) for name in programs), json.dumps(request(1))]
    environ = {**os.environ, "PYTHONPATH": str(SRC)}
    top = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ)
    pids: list[int] = []
    try:
        assert top.stdout
        assert top.stdin
        assert top.stdout.readline() == b"ready\n"
        wait_past_start(time.monotonic())
        top.stdin.write(b"\n")
        top.stdin.flush()
        pids = json.loads(top.stdout.readline())
        yield Launched(top, *pids)
    finally:
        top.kill()
        top.wait(BOUND)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pipe in (top.stdin, top.stdout):
            if pipe:
                pipe.close()


def wait_past_start(began: float) -> None:
    """Wait until the exit of a process that began then counts as the client's."""
    while time.monotonic() < began + START_SECONDS + 0.05:
        time.sleep(0.01)  # nothing rings when a time has passed


@pytest.mark.parametrize(
    ("wrappers", "number"),
    [(0, signal.SIGKILL), (0, signal.SIGINT), (1, signal.SIGKILL), (2, signal.SIGKILL)],
    ids=["the client", "the client by Ctrl-C", "its wrapper alone", "the outer wrapper alone"],
)
def test_when_the_client_is_killed_the_door_leaves_though_its_input_stays_open(
    peer: ScriptedDaemon, tmp_path: Path, wrappers: int, number: signal.Signals
) -> None:
    """However young the door is."""
    with launched(tmp_path, wrappers=wrappers) as client, ExitStack() as stack:
        seat = peer.seat()
        assert seat.message()["id"] == 1
        has_left = stack.enter_context(watch_exit(client.door))

        client.top.send_signal(number)

        assert seat.line() == b"", "the daemon is told that the client is gone"
        assert has_left(BOUND)
        os.kill(client.holder, 0)  # it still holds the pipe


def test_a_launcher_that_only_starts_the_door_may_exit(peer: ScriptedDaemon) -> None:
    """As a double fork does: the door belongs to another process then."""
    with ExitStack() as stack:
        read, write = os.pipe()
        client = stack.enter_context(open(write, "wb", buffering=0))
        program = (
            "import os, sys\n"
            "if os.fork() == 0: os.execv(sys.executable, [sys.executable, '-m', 'handrail', 'mcp'])\n"
            "print('forked', flush=True)\n"
            "import time; time.sleep(600)\n"
        )
        launcher = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=read,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(SRC)},
        )
        os.close(read)
        assert launcher.stdout
        stack.enter_context(launcher.stdout)
        assert launcher.stdout.readline() == b"forked\n"
        launcher.kill()
        launcher.wait(BOUND)
        seat = peer.seat()
        wait_past_start(time.monotonic())
        client.write(json.dumps(request(1)).encode() + b"\n")
        assert seat.message()["id"] == 1


@pytest.mark.parametrize(
    ("own", "wrapper", "same"),
    [
        ("--max-old-space-size=8000 /bin/gemini -p hi", "/bin/gemini -p hi", True),
        ("-p hi", "/lib/npm-loader.js -p hi", True),
        ("--no-warnings /lib/index.js -p hi", "/lib/npm-loader.js -p hi", True),
        ("-p hi", "60 claude -p hi", True),
        ("-p hi", "-c claude", False),
        ("", "", False),
        ("", "/bin/gemini", False),
        ("status --verbose", "run --verbose", False),
    ],
)
def test_a_wrapper_is_known_by_its_arguments(own: str, wrapper: str, same: bool) -> None:
    first, second = (line.encode().split() for line in (own, wrapper))
    assert has_same_arguments(first, second) is same


def test_a_process_whose_parent_has_other_arguments_has_no_wrapper() -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        try:
            assert find_wrappers(sleeper.pid) == []
        finally:
            sleeper.kill()


def test_a_process_that_is_gone_has_no_wrapper() -> None:
    assert find_wrappers(1 << 22) == []
