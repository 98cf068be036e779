"""Process lineage: recognise a process that Handrail started, directly or through any of its descendants.

Two means: a mark that descendants inherit, and a walk up the parents. Both fail closed: a process that has exited or
cannot be read counts as marked.

The mark: before a leader's program runs, the hard limit on POSIX message queues is lowered to one byte below the keeper's
and below pid 1's. Every descendant inherits it, even after a double fork or if its warden is killed, and only root can
raise it again. Hardly any program uses that limit, and one byte less does no harm.
"""

from __future__ import annotations

import os
import resource
import select
import socket
import struct
import sys
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

_LINUX = sys.platform == "linux"
_SO_PEERPIDFD = 77  # Linux 6.5; not named by the socket module
_UNLIMITED = 1 << 64
_WALK_TRIES = 5


def mark() -> None:
    """Mark this process and all its future descendants."""
    if not _LINUX:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
    # A session may have a higher limit than pid 1; the mark must be below both.
    limits = (_UNLIMITED if hard == resource.RLIM_INFINITY else hard, hard_limit(1) or _UNLIMITED, 1 << 62)
    lower = max(0, min(limits) - 1)
    new_soft = lower if soft == resource.RLIM_INFINITY else min(soft, lower)
    resource.setrlimit(resource.RLIMIT_MSGQUEUE, (new_soft, lower))


def is_marked(pid: int, reference: int | None = None) -> bool:
    """Whether a process's limit is below `reference`, or else pid 1's limit. Always False on macOS."""
    if not _LINUX:
        return False
    if reference is None:
        reference = hard_limit(1) or own_limit()
    limit = hard_limit(pid)
    return limit is None or limit < reference


def own_limit() -> int:
    """This process's hard limit: the reference for its peers if it is itself below pid 1's."""
    return hard_limit(os.getpid()) or 0


def hard_limit(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/limits", "rb") as limits:
            line = next(line for line in limits if line.startswith(b"Max msgqueue size"))
    except (OSError, StopIteration):
        return None
    hard = line.split()[4]
    return _UNLIMITED if hard == b"unlimited" else int(hard)


def identity(pid: int) -> tuple[int, int] | None:
    """The pid with its start time, which differs for a later process with a reused pid; None if it is gone."""
    stat = _parent_and_start(pid)
    return None if stat is None else (pid, stat[1])


def parent(pid: int) -> int:
    """The parent's pid; 0 if unknown."""
    stat = _parent_and_start(pid)
    return 0 if stat is None else stat[0]


def descends_from(pid: int, ancestors: AbstractSet[tuple[int, int]]) -> bool:
    """Whether this process, or one above it, is in `ancestors` (each an `identity`)."""
    if not ancestors or not _LINUX:
        return False
    unseen: list[int] = []
    for _ in range(_WALK_TRIES):
        matched, gap = _walk(pid, ancestors)
        if matched or gap is None:
            return matched
        # If a parent died during the walk, its child has a new parent: walk again. A parent that is still named but
        # unreadable belongs to another user, and wardens never do.
        if gap in unseen and gap != pid:
            return False
        unseen.append(gap)
    return True


def _walk(pid: int, ancestors: AbstractSet[tuple[int, int]]) -> tuple[bool, int | None]:
    """Walk up the parents: whether an ancestor matched, and the pid that could not be read, if any."""
    while pid > 0:
        stat = _parent_and_start(pid)
        if stat is None:
            return False, pid
        if (pid, stat[1]) in ancestors:
            return True, None
        pid = stat[0]
    return False, None


def _parent_and_start(pid: int) -> tuple[int, int] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            # The process name is in parentheses and may contain spaces and parentheses.
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[1]), int(fields[19])


@dataclass(frozen=True, slots=True)
class Peer:
    """The process at the other end of a unix socket, as of the moment it connected."""

    pid: int
    uid: int
    pidfd: int | None

    @classmethod
    def of(cls, sock: socket.socket) -> Peer:
        if not _LINUX:
            return _macos_peer(sock)
        size = struct.calcsize("3i")
        pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        try:
            pidfd = sock.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
        except OSError:
            pidfd = None
        return cls(pid, uid, pidfd)

    def is_trusted(self, below: AbstractSet[tuple[int, int]], reference: int | None = None) -> bool:
        """Whether the peer is of the same user, not marked, not a descendant of `below`, and alive after these checks.

        The last check prevents a pid reuse race: a peer may pass its socket to a child and exit, and the pid may then
        belong to another process.
        """
        if self.uid != os.getuid() or (_LINUX and self.pid <= 0):
            return False
        if is_marked(self.pid, reference) or descends_from(self.pid, below):
            return False
        return self._is_alive()

    def close(self) -> None:
        if self.pidfd is not None:
            os.close(self.pidfd)

    def _is_alive(self) -> bool:
        if self.pidfd is None:
            return True
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return not poll.poll(0)


def _macos_peer(sock: socket.socket) -> Peer:
    local, peer_cred, peer_pid = 0, 0x001, 0x002
    uid = struct.unpack("2I", sock.getsockopt(local, peer_cred, 8))[1]
    return Peer(struct.unpack("i", sock.getsockopt(local, peer_pid, 4))[0], uid, None)
