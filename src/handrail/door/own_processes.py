"""Find the daemon and the keeper of a home from outside, check whether the keeper answers, and end either by signal.

A process counts as this home's if it listens on the home's socket, or if it holds the home's lock and recorded its pid
beside it, and belongs to this user. Works while both of them hang.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import sys
import time

from handrail.process_state import END_BY_FORCE, describe_hang
from handrail.regular_file import read_regular_file

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from handrail.paths import Places


ANSWER_SECONDS = 2.0
"""Seconds for the keeper to answer. It never blocks, so a slower one hangs."""
END_SECONDS = 8.0
"""Seconds for a process to end after SIGTERM: the daemon waits four for the keeper, the keeper for its processes."""
KILL_SECONDS = 5.0
"""Seconds for a process to end after SIGKILL; more only in an uninterruptible system call."""


def find_hung_keeper(places: Places) -> int | None:
    """The pid of this home's keeper if it does not answer; None if it answers, or if there is no keeper."""
    pid = find_keeper(places)
    return None if pid is None or _answers(places.keeper_socket) else pid


def describe_hung_keeper(pid: int) -> str:
    return describe_hang("keeper", pid, END_BY_FORCE)


def find_keeper(places: Places) -> int | None:
    """The pid of this home's keeper; None if no keeper runs."""
    return _find(places.keeper_socket, places.keeper_lock, _read_number(places.keeper_lock))


def find_daemon(places: Places) -> int | None:
    """The pid of this home's daemon; None if no daemon runs."""
    return _find(places.daemon_socket, places.daemon_lock, _read_pid(places.daemon_json))


def find_starting_daemon(places: Places) -> int | None:
    """The pid of the daemon that holds this home's lock, even if it does not listen yet; None where that is unknown."""
    return next((pid for pid in _lock_holders(places.daemon_lock) if _is_own(pid)), None)


def end_process(pid: int) -> bool:
    """End a process: SIGTERM, then SIGKILL if that does not help. A stopped one is continued. False if it is still there."""
    try:
        descriptor = os.pidfd_open(pid) if sys.platform == "linux" else -1
    except OSError:
        return True
    try:
        return _signal(pid, descriptor, signal.SIGTERM, END_SECONDS) or _signal(
            pid, descriptor, signal.SIGKILL, KILL_SECONDS
        )
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _find(path: Path, lock: Path, recorded: int) -> int | None:
    listener = _find_listener(path)
    if listener is not None or not _is_locked(lock):
        return listener
    return recorded if recorded in _lock_holders(lock) and _is_own(recorded) else None


def _find_listener(path: Path) -> int | None:
    """The pid of the process of this user that listens on a socket."""
    with _dial(path) as sock:
        if sock is None:
            return None
        if sys.platform != "linux":
            return struct.unpack("i", sock.getsockopt(0, 2, 4))[0]
        pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return pid if uid == os.getuid() and pid > 0 else None


@contextlib.contextmanager
def _dial(path: Path) -> Generator[socket.socket | None]:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(ANSWER_SECONDS)
    try:
        sock.connect(str(path))
    except OSError:
        sock.close()
        yield None
        return
    with sock:
        yield sock


def _answers(path: Path) -> bool:
    """Whether the keeper answers anything, be it a refusal."""
    with _dial(path) as sock:
        if sock is None:
            return False
        try:
            sock.sendall(b'{"is": "hello", "protocol": 1, "want": "answer"}\n')
            return bool(sock.recv(1))
        except OSError:
            return False


def _is_locked(lock: Path) -> bool:
    import fcntl  # noqa: PLC0415 - rarely needed by a door

    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _lock_holders(lock: Path) -> set[int]:
    """Pids that hold a lock on this file, by its inode: the device may differ from that of `stat`."""
    try:
        inode = str(os.stat(lock).st_ino)
        with open("/proc/locks") as locks:
            rows = [row.split() for row in locks]
    except OSError:
        return set()
    return {int(row[4]) for row in rows if row[1] == "FLOCK" and row[5].rpartition(":")[2] == inode}


def _is_own(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _read_number(path: Path) -> int:
    try:
        return int(read_regular_file(path))
    except (OSError, ValueError):
        return 0


def _read_pid(path: Path) -> int:
    try:
        return int(json.loads(read_regular_file(path))["pid"])
    except (OSError, ValueError, TypeError, KeyError):
        return 0


def _signal(pid: int, descriptor: int, number: int, seconds: float) -> bool:
    """Send a signal, continue the process if it is stopped, and wait for its end."""
    for each in (number, signal.SIGCONT):
        with contextlib.suppress(ProcessLookupError):
            if descriptor >= 0:
                signal.pidfd_send_signal(descriptor, each)
            else:
                os.kill(pid, each)
    until = time.monotonic() + seconds
    if descriptor >= 0:
        return bool(select.select([descriptor], [], [], seconds)[0])
    while _is_own(pid) and time.monotonic() < until:
        time.sleep(0.05)
    return not _is_own(pid)
