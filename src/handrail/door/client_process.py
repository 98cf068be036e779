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
"""A launcher that exits within this time of our start has only started us for another process, which still lives."""


WRAPPERS_MAX = 4
"""Wrappers of one client. Qwen Code has two. Bounds the work at the start of a door."""


class ClientProcesses:
    """Reports whether the client is gone. Its descriptors become readable then."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._launcher = os.getppid()
        watched = [_watch(pid) for pid in (self._launcher, *find_wrappers(self._launcher)) if pid > 1]
        self.descriptors = [descriptor for descriptor in watched if descriptor >= 0]
        """One pidfd for each process; empty where the system has none."""

    def is_gone(self) -> bool:
        """Whether the launcher or a wrapper has exited. One that did so right after our start is not counted."""
        ended = select.select(self.descriptors, [], [], 0)[0] if self.descriptors else []
        if time.monotonic() - self._since >= START_SECONDS:
            return bool(ended) or os.getppid() != self._launcher
        for descriptor in ended:
            self.descriptors.remove(descriptor)
            os.close(descriptor)
        self._launcher = os.getppid()
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


def _read_parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _read_arguments(pid: int) -> list[bytes]:
    """The arguments of a process, without its program."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read(65_536).split(b"\0")[1:-1]
    except OSError:
        return []
