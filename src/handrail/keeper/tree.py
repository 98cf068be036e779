"""A process's descendants: finding them, and sending them signals that reach no one else.

Owns the walk down /proc/PID/task/*/children and the check that makes a signal safe against pid reuse.
Does not know when a tree should end, nor how patient to be.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

from handrail.keeper import system

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Set


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
