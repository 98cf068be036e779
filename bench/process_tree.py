"""Process trees that resist their end, stopped by the daemon; beside a kill of their process group.

Every tree ignores HUP and TERM, so that only KILL ends it, and each kind tries to escape its ancestors in another way. A mark
in the arguments or the environment of every process shows in /proc which processes of a tree are alive.
"""

import itertools
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bench.client import Client
from bench.daemon import STOP_GRACE, Daemon, with_daemon
from bench.line import Figure, Line, Measurement, Target
from bench.running_command import start_command
from bench.samples import percentile

TREES = 200
GONE_SECONDS = 5.0
"""A process of the tree that is alive after so long is a survivor."""
PEER_GONE_SECONDS = 0.3
GROW_SECONDS = 30.0
MARK_VARIABLE = "HANDRAIL_BENCH_MARK"
_REFORK = "import os,time\nwhile True:\n os.fork() and os._exit(0)\n time.sleep(0.003)"
_ESCAPES = (
    "sleep {mark} &",
    "setsid sleep {mark} &",
    "nohup sleep {mark} >/dev/null 2>&1 &",
    "( ( setsid sleep {mark} & ) & )",
    "env -i setsid sleep {mark} &",
    f"{shlex.quote(sys.executable)} -I -S -c {shlex.quote(_REFORK)} {{mark}} &",
)
_REFORK_PROCESSES = 5
"""Processes that a re-forking tree must have made before it is stopped."""
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Mark:
    """A unique number of seconds, so that it is a valid argument of `sleep` as well as a name."""

    text: str

    @classmethod
    def new(cls) -> Self:
        return cls(f"86400.{os.getpid():07d}{next(_numbers):05d}")

    @property
    def env(self) -> dict[str, str]:
        return {MARK_VARIABLE: self.text}

    def wait_until_grown(self, alive: int, seen: int) -> None:
        """Return when so many processes with the mark as last argument are alive, and so many were seen in all."""
        pids: set[int] = set()
        deadline = time.monotonic() + GROW_SECONDS
        while time.monotonic() < deadline:
            marked = [pid for pid in _list_pids() if _read_arguments(pid)[-2:-1] == [self.text.encode()]]
            pids.update(marked)
            if len(marked) >= alive and len(pids) >= seen:
                return
            time.sleep(0.001)
        raise TimeoutError(f"The tree did not grow: {len(pids)} processes seen.")

    def wait_until_gone(self, seconds: float) -> float | None:
        """The moment by `perf_counter` when no process carried the mark any more; None if some still do."""
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline:
            if not self.find_carriers():
                return time.perf_counter()
            time.sleep(0.001)
        return None

    def find_carriers(self) -> list[int]:
        """Every process that carries the mark. A zombie carries nothing."""
        text = self.text.encode()
        return [pid for pid in _list_pids() if text in _read(pid, "cmdline") or text in _read(pid, "environ")]

    def kill(self) -> None:
        """Kill what still carries the mark; repeated, because a tree may fork between search and kill."""
        deadline = time.monotonic() + GROW_SECONDS
        while (carriers := self.find_carriers()) and time.monotonic() < deadline:
            for pid in carriers:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def measure_stop(daemon: Daemon) -> Generator[Figure]:
    ours: list[float | None] = []
    peer: list[float | None] = []
    with daemon.connect() as client:
        for number in range(TREES):
            ours.append(_stop(daemon, client, number))
            peer.append(_kill_group(number))
    yield Figure(_p99(ours, GONE_SECONDS), _p99(peer, PEER_GONE_SECONDS))
    yield Figure(ours.count(None), peer.count(None), "the peer kills the process group of its tree")


def _p99(times: list[float | None], survivor: float) -> float:
    return percentile([survivor if each is None else each for each in times], 0.99) * 1000


def _stop(daemon: Daemon, client: Client, number: int) -> float | None:
    """Seconds from the moment KILL was due until the tree was gone; None if a process survived."""
    mark = Mark.new()
    command = start_command(daemon, client, _build_command(number, mark), mark.env)
    try:
        mark.wait_until_grown(2, _REFORK_PROCESSES if _is_reforking(number) else 2)
        began = time.perf_counter()
        response = command.cancel()
        gone = mark.wait_until_gone(GONE_SECONDS)
        command.wait_for_result()
        daemon.receive(response)
    finally:
        mark.kill()
    return None if gone is None else max(0.0, gone - began - STOP_GRACE)


def _kill_group(number: int) -> float | None:
    """The same tree as our own child, whose process group gets KILL."""
    mark = Mark.new()
    process = subprocess.Popen(
        ["bash", "-c", _build_command(number, mark)],
        env={**os.environ, **mark.env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        mark.wait_until_grown(2, _REFORK_PROCESSES if _is_reforking(number) else 2)
        began = time.perf_counter()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        gone = mark.wait_until_gone(PEER_GONE_SECONDS)
    finally:
        mark.kill()
    return None if gone is None else gone - began


def _build_command(number: int, mark: Mark) -> str:
    escape = _ESCAPES[number % len(_ESCAPES)].format(mark=mark.text)
    return f"trap '' HUP TERM\n{escape}\nsleep {mark.text}\n:"


def _is_reforking(number: int) -> bool:
    return number % len(_ESCAPES) == len(_ESCAPES) - 1


def _list_pids() -> list[int]:
    """Newest first: the searched processes were started last."""
    return sorted((int(name) for name in os.listdir("/proc") if name.isdigit()), reverse=True)  # noqa: PTH208


def _read_arguments(pid: int) -> list[bytes]:
    return _read(pid, "cmdline").split(b"\0")


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


MEASUREMENTS = (
    Measurement(
        (
            Line("tree gone after KILL is due, p99", "ms", Target("at most", 250.0)),
            Line(f"… survivors of {TREES} trees", "", Target("at most", 0)),
        ),
        with_daemon(measure_stop),
    ),
)
