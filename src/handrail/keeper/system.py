"""System calls and /proc on Linux, and their substitutes on macOS: prctl, `ps`, signal wake-up.

macOS has neither a subreaper nor /proc: a tree is known by parents and process groups only, so processes may survive a
stop, and reports list them.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
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


_ALTERABLE_LIMITS = tuple(
    number
    for name, number in vars(resource).items()
    if name.startswith("RLIMIT_") and name not in ("RLIMIT_NOFILE", "RLIMIT_OFILE", "RLIMIT_MSGQUEUE")
)
"""Those that the keeper and an idle warden share: the keeper raises one, and a warden is marked by another."""
_NUMBERS = {"x86_64": (315, 252, 250), "aarch64": (275, 31, 219)}
_SCHED_GETATTR, _IOPRIO_GET, _KEYCTL = _NUMBERS.get(os.uname().machine, (0, 0, 0)) if LINUX else (0, 0, 0)
_IOPRIO_WHO_PROCESS = 1
_KEYCTL_GET_KEYRING_ID = 0
_KEY_SPEC_SESSION_KEYRING = -3
_SCHED_ATTR_BYTES = 56
_attributes = ctypes.create_string_buffer(_SCHED_ATTR_BYTES)


def read_alterable_state(pid: int) -> tuple[object, ...]:
    """What other processes of this user can change of a process, and its children inherit.

    Limits, scheduling class, priorities, processors and control groups. Raises OSError if the process is gone. On macOS
    only the priority can be read.
    """
    state: list[object] = [os.getpriority(os.PRIO_PROCESS, pid)]
    if LINUX:
        state += [resource.prlimit(pid, number) for number in _ALTERABLE_LIMITS]
        state.append(os.sched_getaffinity(pid))
        if _SCHED_GETATTR:
            found = _libc.syscall(_SCHED_GETATTR, pid, _attributes, _SCHED_ATTR_BYTES, 0) == 0
            state += [found and _attributes.raw, _libc.syscall(_IOPRIO_GET, _IOPRIO_WHO_PROCESS, pid)]
        with open(f"/proc/{pid}/cgroup", "rb") as groups:
            state.append(groups.read())
    return tuple(state)


def session_keyring() -> int:
    """The kernel's keyring of this process, which a child can replace (KEYCTL_SESSION_TO_PARENT); -1 if unknown."""
    if not _KEYCTL:
        return -1
    return int(_libc.syscall(_KEYCTL, _KEYCTL_GET_KEYRING_ID, _KEY_SPEC_SESSION_KEYRING, 0))


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
