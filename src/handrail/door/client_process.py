"""The client's processes, which the door watches: the program that launched it, and the wrappers of that program.

Another process may hold the client's end of our stdin open when the client is gone, so the end of the input may never
come. Some clients consist of a wrapper and the real program, which it starts with the same arguments. A signal may reach
the wrapper alone.
"""

from __future__ import annotations

import os
import select
import sys
import time

START_SECONDS = 1.0
"""A process that exits within this time of its own start has only started us for another process, which still lives."""

WRAPPERS_MAX = 4
"""Wrappers of one client. Qwen Code has two. Bounds the work at the start of a door."""


class ClientProcesses:
    """Reports whether the client is gone. Its descriptors become readable then."""

    def __init__(self) -> None:
        self._launcher = os.getppid()
        self._settled = _read_start(self._launcher) + START_SECONDS
        self._watched: dict[int, float] = {}
        for pid in (self._launcher, *find_wrappers(self._launcher)):
            settled = _read_start(pid) + START_SECONDS
            if pid > 1 and (descriptor := _watch(pid)) >= 0:
                self._watched[descriptor] = settled

    @property
    def descriptors(self) -> list[int]:
        """One pidfd for each process; none where the system has none."""
        return list(self._watched)

    def is_gone(self) -> bool:
        """Whether the launcher or a wrapper has exited. One that did so right after its own start is not counted."""
        now = _read_clock()
        for descriptor in select.select(self._watched, [], [], 0)[0] if self._watched else []:
            if now >= self._watched[descriptor]:
                return True
            del self._watched[descriptor]
            os.close(descriptor)
        if (launcher := os.getppid()) == self._launcher:
            return False
        if now >= self._settled:
            return True
        self._launcher = launcher
        return False


def find_wrappers(pid: int) -> list[int]:
    """The parent of a process if it was started with the same arguments, as a wrapper is; and the wrapper's own wrappers."""
    wrappers: list[int] = []
    own = _read_arguments(pid)
    while len(wrappers) < WRAPPERS_MAX and (pid := _read_parent(pid)) > 1:
        arguments = _read_arguments(pid)
        if not has_same_arguments(own, arguments):
            break
        wrappers.append(pid)
        own = arguments
    return wrappers


def has_same_arguments(own: list[bytes], wrapper: list[bytes]) -> bool:
    """Whether two command lines, without their programs, end alike.

    Before that, only the wrapper may have anything but the options and the script of an interpreter.
    """
    shared = 0
    while shared < min(len(own), len(wrapper)) and own[-1 - shared] == wrapper[-1 - shared]:
        shared += 1
    rest = own[: len(own) - shared]
    return shared > 0 and all(word.startswith(b"-") or b"/" in word for word in rest)


def _watch(pid: int) -> int:
    try:
        return os.pidfd_open(pid) if sys.platform == "linux" else -1
    except OSError:
        return -1


def _read_clock() -> float:
    """Seconds since the boot, the clock that /proc states the start of a process in."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


def _read_start(pid: int) -> float:
    """When a process started; now if the system does not report it."""
    try:
        return int(_read_stat(pid)[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return _read_clock()


def _read_parent(pid: int) -> int:
    try:
        return int(_read_stat(pid)[1])
    except (OSError, ValueError, IndexError):
        return 0


def _read_stat(pid: int) -> list[bytes]:
    """The fields of a process after its name: state, parent and on; the 20th is its start."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


def _read_arguments(pid: int) -> list[bytes]:
    """The arguments of a process, without its program."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read(65_536).split(b"\0")[1:-1]
    except OSError:
        return []
