"""A process's descendants: finding them, and sending them signals that reach no one else.

Owns the walk down /proc/PID/task/*/children and the check that makes a signal safe against pid reuse.
Does not know when a tree should end, nor how patient to be.

One look at a running terminal: whose are its keys, and does that process wait for them?
"""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handrail.keeper import system
from handrail.keeper.protocol import Process, Seen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Set

    from handrail.keeper.pty import PtyEnd


def children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as listed:
                found += map(int, listed.read().split())
    except OSError:
        pass  # it ended while we looked; its children are its adopter's now
    return found


def descendants(root: int, spared: Set[int] = frozenset()) -> dict[int, int]:
    """Every living descendant → its parent, nearest first; without `spared` and what is below them."""
    if not system.LINUX:
        return _descendants_by_ps(root, spared)
    found: dict[int, int] = {}
    level = [root]
    while level:
        fresh = {child: parent for parent in level for child in children(parent)}
        level = [child for child in fresh if child not in found and child not in spared]
        found.update({child: fresh[child] for child in level})
    return found


def name_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", "rb") as comm:
            return comm.read().strip().decode(errors="replace")
    except OSError:
        return "?"


def send(pid: int, parent: int, numbers: tuple[int, ...]) -> bool:
    """Send signals to a descendant seen under `parent`; False if we may not (another user's process).

    Our own child stays ours until we reap it, so its pid is safe. Any other may end and its pid be taken between
    the walk and the signal: hold it by a pidfd first, then see that it still has that parent or has fallen to us.
    """
    if parent == os.getpid() or not system.LINUX:
        return _send_by(lambda number: os.kill(pid, number), numbers)
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return True
    try:
        if _parent_of(pid) not in (parent, os.getpid()):
            return True
        return _send_by(lambda number: signal.pidfd_send_signal(pidfd, number), numbers)
    finally:
        os.close(pidfd)


def kill_groups(living: Mapping[int, int]) -> None:
    """Kill the process groups of our own children among the living, each at one stroke.

    No fork slips through this one: the kernel signals a group as a whole. A group with a child in it that we have not
    reaped cannot be another's by now, and none reaches beyond our tree, since sessions begin inside it.
    """
    own = [pid for pid, parent in living.items() if parent == os.getpid()]
    with contextlib.suppress(ProcessLookupError):
        for group in {os.getpgid(pid) for pid in own} - {os.getpgrp()}:
            with contextlib.suppress(PermissionError):
                os.killpg(group, signal.SIGKILL)


def _send_by(sender: Callable[[int], None], numbers: tuple[int, ...]) -> bool:
    try:
        for number in numbers:
            sender(number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def _parent_of(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[1])
    except OSError:
        return None


def _descendants_by_ps(root: int, spared: Set[int]) -> dict[int, int]:
    """By parents, and by process groups led by one already found: all that is known without a subreaper."""
    shown = system.listing()
    found: dict[int, int] = {}
    level = {root}
    while level:
        level = {
            pid
            for pid, (parent, group, _) in shown.items()
            if (parent in level or group in level - {root}) and pid not in found and pid not in spared
        }
        found.update({pid: shown[pid][0] for pid in level})
    return found


MEMBERS_MAX = 256
"""Processes looked at: a build's thousands must not hold up the keeper."""
THREADS_MAX = 64
"""Threads of a process looked at, for the same reason."""
WATCHED_MAX = 64
"""Descriptors looked at of those that a process waits on by epoll."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A process of the foreground's group; `listens` when it has the terminal for its stdin, or reads it."""

    pid: int
    parent: int
    reading: str
    listens: bool
    waits_for_child: bool


@dataclass(frozen=True, slots=True)
class _Calls:
    """The numbers of the system calls that matter, on one kind of machine."""

    read: frozenset[int]
    select: frozenset[int]
    poll: frozenset[int]
    epoll: frozenset[int]
    child: frozenset[int]


def _calls(read: str, select: str, poll: str, epoll: str, child: str) -> _Calls:
    return _Calls(*(frozenset(map(int, numbers.split())) for numbers in (read, select, poll, epoll, child)))


CALLS = {
    "x86_64": _calls("0 19", "23 270", "7 271", "232 281 441", "61 247"),
    "aarch64": _calls("63 65", "72", "73", "22 441", "260 95"),
}
"""read readv, select pselect6, poll ppoll, epoll_wait epoll_pwait epoll_pwait2, wait4 waitid."""
_HERE = CALLS.get(os.uname().machine)
_CONTROLLING = os.makedev(5, 0)
"""/dev/tty: whichever terminal controls the process that opened it, and of the foreground that is the one looked at."""


def look(pty: PtyEnd, leader: int, warden: int) -> Seen:
    echo, canonical = pty.modes
    found = _foreground(_members(pty, warden))
    return Seen(
        foreground=None if found is None else Process(found.pid, name_of(found.pid)),
        busy=found is not None and found.pid != leader,
        cwd=_cwd(leader),
        echo=echo,
        canonical=canonical,
        reading="hidden" if found is None else found.reading,
    )


def _foreground(members: list[_Member]) -> _Member | None:
    """Who reads; else who listens among other things; else the one in front, or whom that one waits for."""
    for reading in ("tty", "poll"):
        for member in members:
            if member.listens and member.reading == reading:
                return member
    front = members[0] if members else None
    while front is not None and front.waits_for_child:
        children = [member for member in members if member.parent == front.pid]
        if not children:
            break
        front = children[-1]
    return front


def _members(pty: PtyEnd, warden: int) -> list[_Member]:
    """The processes of the foreground's group, its leader first, then the nearest to the warden."""
    try:
        group, device = os.tcgetpgrp(pty.fd), os.fstat(pty.slave).st_rdev
    except OSError:
        return []
    pids = [(pid, parent) for pid, parent in _nearest(warden) if _group_of(pid) == group]
    return [_member(pid, parent, device) for pid, parent in sorted(pids, key=lambda each: each[0] != group)]


def _nearest(root: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    level = [root]
    while level and len(found) < MEMBERS_MAX:
        fresh = [(child, parent) for parent in level for child in children(parent)]
        found += fresh
        level = [child for child, _ in fresh][:MEMBERS_MAX]
    return found[:MEMBERS_MAX]


def _group_of(pid: int) -> int | None:
    """The process group of a living process."""
    state, _, group, *_ = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split() or (b"Z", b"", b"")
    return None if state in b"ZX" else int(group)


def _member(pid: int, parent: int, device: int) -> _Member:
    waits = [_wait(pid, task, device) for task in _listed(f"/proc/{pid}/task")[:THREADS_MAX]]
    reading = next(
        (way for way in ("tty", "poll", "other") if way in waits), "other" if "child" in waits else "hidden"
    )
    listens = reading == "tty" or (reading == "poll" and _is_tty(pid, 0, device))
    return _Member(pid, parent, reading, listens, waits_for_child="child" in waits)


def _wait(pid: int, task: str, device: int) -> str:
    """How one thread waits: tty, poll, child, other or hidden."""
    said = _read(f"/proc/{pid}/task/{task}/syscall").split()
    if not said or _HERE is None:
        return "hidden"
    if len(said) < 3:  # "running", or stopped outside of any call
        return "other"
    number, first, second = int(said[0]), int(said[1], 16), int(said[2], 16)
    if number in _HERE.read:
        way = "tty" if _is_tty(pid, first, device) else "other"
    elif number in _HERE.epoll:
        way = "poll" if any(_is_tty(pid, fd, device) for fd in _watched(pid, first)) else "other"
    elif number in _HERE.child:
        way = "child"
    else:
        # Waiting for no descriptor at all is a way to sleep.
        counts = {**dict.fromkeys(_HERE.select, first), **dict.fromkeys(_HERE.poll, second)}
        way = "poll" if counts.get(number, 0) else "other"
    return way


def _watched(pid: int, epoll: int) -> Iterator[int]:
    lines = (line.split() for line in _read(f"/proc/{pid}/fdinfo/{epoll}").splitlines()[: WATCHED_MAX + 4])
    return (int(words[1]) for words in lines if words[:1] == [b"tfd:"])


def _is_tty(pid: int, fd: int, device: int) -> bool:
    path = f"/proc/{pid}/fd/{fd}"
    try:
        # By its name first: to ask a file system for a file's device may take as long as that likes.
        name = os.path.basename(os.readlink(path))
        return (name == "tty" or name.isdigit()) and os.stat(path).st_rdev in (device, _CONTROLLING)
    except OSError:
        return False


def _cwd(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return None


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(65536)
    except OSError:
        return b""


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []
