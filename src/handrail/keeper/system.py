"""System calls and /proc on Linux, and their substitutes on macOS: prctl, `ps`, signal wake-up.

macOS has neither a subreaper nor /proc: a tree is known by parents and process groups only, so processes may survive a
stop, and reports list them.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys

LINUX = sys.platform == "linux"

_libc = ctypes.CDLL(None, use_errno=True)  # loaded before any fork: a warden must start fast

_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36


_EXECVEAT_NAMES = (6, 14)
"""Since this version, Linux names a process that is executed by descriptor after the file, not after the descriptor."""


def can_execute_descriptors() -> bool:
    """Whether a program can be executed by its descriptor without a change that `ps` would show."""
    release = tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])
    return LINUX and os.execve in os.supports_fd and release >= _EXECVEAT_NAMES


def adopt_orphans() -> None:
    """Become a child subreaper: the new parent of every descendant whose parent dies."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_name(name: str) -> None:
    """Set the name that `ps` shows, cut at 15 bytes."""
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
    """List every process with `ps`: pid → (parent, process group, name)."""
    rows = (line.split(None, 3) for line in _ps("-axo", "pid=,ppid=,pgid=,comm=").splitlines())
    return {int(pid): (int(parent), int(group), name) for pid, parent, group, name in rows}


def _ps(*arguments: str) -> str:
    import subprocess  # noqa: PLC0415 - unused on Linux, where the keeper stays small

    return subprocess.run(
        ["/bin/ps", *arguments], capture_output=True, text=True, check=True, timeout=5
    ).stdout


def wake_on(*numbers: int) -> int:
    """Return a descriptor from which the numbers of these signals can be read as they arrive."""
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    for number in numbers:
        signal.signal(number, _do_nothing)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    return wake


def _do_nothing(_number: int, _frame: object) -> None:
    """Empty handler: unlike SIG_IGN and SIG_DFL it lets the signal reach the wake-up descriptor."""


def _prctl(option: int, value: int) -> None:
    if LINUX and _libc.prctl(option, value, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
