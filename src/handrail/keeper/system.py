"""What Linux offers beyond POSIX, and what stands in for it elsewhere.

Owns prctl and the listing of processes by `ps`. Does not know what a warden or a terminal is.
On macOS there is no subreaper and no /proc: a tree is known by parents and process groups only, so survivors are
possible there, and reports list them.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

LINUX = sys.platform == "linux"

_libc = ctypes.CDLL(None, use_errno=True)  # loaded before any fork, since a warden must be quick

_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies, however often it forked."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_name(name: str) -> None:
    """The name that `ps` shows, cut at 15 bytes."""
    if LINUX:
        _libc.prctl(_PR_SET_NAME, ctypes.c_char_p(name.encode()), 0, 0, 0)


def resident_bytes() -> int:
    if not LINUX:
        return int(_ps("-o", "rss=", "-p", str(os.getpid()))) * 1024
    with open("/proc/self/statm", "rb") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd" if LINUX else "/dev/fd")) - 1


def listing() -> dict[int, tuple[int, int, str]]:
    """Every process as `ps` shows it: pid → (parent, process group, name)."""
    rows = (line.split(None, 3) for line in _ps("-axo", "pid=,ppid=,pgid=,comm=").splitlines())
    return {int(pid): (int(parent), int(group), name) for pid, parent, group, name in rows}


def _ps(*arguments: str) -> str:
    import subprocess  # noqa: PLC0415 - the keeper stays small where it is not needed

    return subprocess.run(["ps", *arguments], capture_output=True, text=True, check=True, timeout=5).stdout


def wake_on(*numbers: int) -> int:
    """A descriptor from which the numbers of these signals can be read as they come."""
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    for number in numbers:
        signal.signal(number, _noted)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    return wake


def _noted(_number: int, _frame: object) -> None:
    """A handler of our own, so that the signal neither kills nor is ignored; the descriptor tells of it."""


def _prctl(option: int, value: int) -> None:
    if LINUX and _libc.prctl(option, value, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
