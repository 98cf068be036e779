"""Process trees read from /proc: find descendants, signal them safely, find a terminal's foreground process.

`descendants` walks /proc/PID/task/*/children, and `send` protects a signal against pid reuse. `look` finds the process
that receives a terminal's input, and how that process waits.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

from handrail.keeper import system
from handrail.keeper.lineage import is_hidden
from handrail.keeper.protocol import Process, Seen
from handrail.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Set

    from handrail.keeper.pty import PtyMaster


def children(pid: int) -> list[int]:
    pids: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                pids += map(int, file.read().split())
    except OSError:
        pass  # it exited meanwhile; the subreaper has adopted its children
    return pids


def descendants(root: int, spared: Set[int] = frozenset()) -> dict[int, int]:
    """Map every living descendant to its parent, nearest first. Leaves out `spared` and their descendants."""
    if not system.LINUX:
        return _descendants_by_ps(root, spared)
    parents: dict[int, int] = {}
    level = [root]
    while level:
        fresh = {child: parent for parent in level for child in children(parent)}
        level = [child for child in fresh if child not in parents and child not in spared]
        parents.update({child: fresh[child] for child in level})
    return parents


def name_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", "rb") as comm:
            return comm.read().strip().decode(errors="replace")
    except OSError:
        return "?"


def send(pid: int, parent: int, numbers: tuple[int, ...]) -> bool:
    """Send signals to a descendant that had this parent; False if not permitted (another user's process).

    The pid of our own child is not reused until we reap it. Any other process may exit, and its pid be reused, between
    the walk and the signal. So open a pidfd first, then check that its parent is still the same, or is now this process.
    """
    if parent == os.getpid() or not system.LINUX:
        return _send_with(lambda number: os.kill(pid, number), numbers)
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return True
    try:
        if _parent_of(pid) not in (parent, os.getpid()):
            return True
        return _send_with(lambda number: signal.pidfd_send_signal(pidfd, number), numbers)
    finally:
        os.close(pidfd)


def kill_groups(living: Mapping[int, int]) -> None:
    """Kill the process groups of our own children in `living`.

    The kernel signals a group atomically, so a process that forks meanwhile cannot escape. A group that contains a child
    we have not reaped cannot have been reused, and no group extends beyond our tree, since its sessions began inside it.
    """
    own = [pid for pid, parent in living.items() if parent == os.getpid()]
    with contextlib.suppress(ProcessLookupError):
        for group in {os.getpgid(pid) for pid in own} - {os.getpgrp()}:
            with contextlib.suppress(PermissionError):
                os.killpg(group, signal.SIGKILL)


def _send_with(sender: Callable[[int], None], numbers: tuple[int, ...]) -> bool:
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
    """Find descendants by parent, and by process groups that a descendant leads: macOS has no subreaper."""
    processes = system.listing()
    parents: dict[int, int] = {}
    level = {root}
    while level:
        level = {
            pid
            for pid, (parent, group, _) in processes.items()
            if (parent in level or group in level - {root}) and pid not in parents and pid not in spared
        }
        parents.update({pid: processes[pid][0] for pid in level})
    return parents


MEMBERS_MAX = 256
"""Processes inspected in one look: a build with thousands of processes must not block the keeper."""
THREADS_MAX = 64
"""Threads inspected per process, for the same reason."""
WATCHED_MAX = 64
"""Descriptors inspected per epoll instance, for the same reason."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A process of the foreground process group; `listens` if its stdin is the terminal, or it is reading it."""

    pid: int
    parent: int
    reading: str
    listens: bool
    waits_for_child: bool


@dataclass(frozen=True, slots=True)
class _Calls:
    """System call numbers of one machine architecture."""

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
"""/dev/tty: the controlling terminal of the process that opened it. For the foreground that is the inspected terminal."""


def look(pty: PtyMaster, leader: int, warden: int) -> Seen:
    """Take a snapshot of a running terminal: its foreground process, how that waits, the cwd and the PTY's modes."""
    echo, canonical = pty.modes
    member = _foreground(_members(pty, leader, warden))
    return Seen(
        foreground=None if member is None else Process(member.pid, name_of(member.pid)),
        busy=member is not None and member.pid != leader,
        cwd=_cwd(leader),
        echo=echo,
        canonical=canonical,
        reading="hidden" if member is None else member.reading,
    )


def _foreground(members: list[_Member]) -> _Member | None:
    """Pick the process that reads the terminal; else a process that polls it; else the group leader, or the child it waits for."""
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


def _members(pty: PtyMaster, leader: int, warden: int) -> list[_Member]:
    """The processes of the foreground group: its leader first, then by distance from the warden.

    If all of them have exited, the terminal's leader: a shell takes the terminal back once it has reaped its command.
    """
    try:
        group, device = os.tcgetpgrp(pty.fd), os.fstat(pty.slave).st_rdev
    except OSError:
        return []
    found = _nearest_descendants(warden)
    pids = [(pid, parent) for pid, parent in found if _group_of(pid) == group]
    if not pids and _are_all_seen(found) and _group_of(leader) is not None:
        pids = [(leader, warden)]
    return [_member(pid, parent, device) for pid, parent in sorted(pids, key=lambda pair: pair[0] != group)]


def _are_all_seen(found: list[tuple[int, int]]) -> bool:
    """Whether no descendant is left out or hidden by `hidepid`, which could be in the foreground."""
    return len(found) < MEMBERS_MAX and not any(is_hidden(pid) for pid, _ in found)


def _nearest_descendants(root: int) -> list[tuple[int, int]]:
    """At most MEMBERS_MAX descendants, nearest first, each with its parent."""
    pairs: list[tuple[int, int]] = []
    level = [root]
    while level and len(pairs) < MEMBERS_MAX:
        fresh = [(child, parent) for parent in level for child in children(parent)]
        pairs += fresh
        level = [child for child, _ in fresh][:MEMBERS_MAX]
    return pairs[:MEMBERS_MAX]


def _group_of(pid: int) -> int | None:
    """The process group; None if the process is dead or a zombie."""
    state, _, group, *_ = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split() or (b"Z", b"", b"")
    return None if state in b"ZX" else int(group)


def _member(pid: int, parent: int, device: int) -> _Member:
    waits = [_wait(pid, task, device) for task in _list_names(f"/proc/{pid}/task")[:THREADS_MAX]]
    reading = next(
        (way for way in ("tty", "poll", "other") if way in waits), "other" if "child" in waits else "hidden"
    )
    listens = reading == "tty" or (reading == "poll" and _is_tty(pid, 0, device))
    return _Member(pid, parent, reading, listens, waits_for_child="child" in waits)


def _wait(pid: int, task: str, device: int) -> str:
    """How one thread waits: tty, poll, child, other or hidden."""
    fields = _read(f"/proc/{pid}/task/{task}/syscall").split()
    if not fields or _HERE is None:
        return "hidden"
    if len(fields) < 3:  # "running", or stopped outside of a system call
        return "other"
    number, first, second = int(fields[0]), int(fields[1], 16), int(fields[2], 16)
    if number in _HERE.read:
        way = "tty" if _is_tty(pid, first, device) else "other"
    elif number in _HERE.epoll:
        way = "poll" if any(_is_tty(pid, fd, device) for fd in _watched(pid, first)) else "other"
    elif number in _HERE.child:
        way = "child"
    else:
        # select or poll without any descriptor is a sleep.
        counts = {**dict.fromkeys(_HERE.select, first), **dict.fromkeys(_HERE.poll, second)}
        way = "poll" if counts.get(number, 0) else "other"
    return way


def _watched(pid: int, epoll: int) -> Iterator[int]:
    lines = (line.split() for line in _read(f"/proc/{pid}/fdinfo/{epoll}").splitlines()[: WATCHED_MAX + 4])
    return (int(words[1]) for words in lines if words[:1] == [b"tfd:"])


def _is_tty(pid: int, fd: int, device: int) -> bool:
    path = f"/proc/{pid}/fd/{fd}"
    try:
        # Check the name first: stat may block for long on a slow file system.
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


def _list_names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []
