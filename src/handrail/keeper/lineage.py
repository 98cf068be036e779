"""Who descends from whom: how a process that something of ours started is recognised, whatever it does.

Owns the mark and the walk up the parents. Does not know what is refused to whom; it fails closed: a process that is
gone, or that cannot be looked at, counts as marked.

The mark: before a leader's program runs, the hard limit on POSIX message queues is lowered to a byte below ours and
below pid 1's. Every descendant inherits it, double forks and a killed warden included, and only root can raise it
again. Nothing else looks at that limit, and a byte less of it does no harm.
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
    """Mark this process and all that it will ever start."""
    if not _LINUX:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
    # A session may have been given more than pid 1 has; the mark must show against that one too.
    limits = (_UNLIMITED if hard == resource.RLIM_INFINITY else hard, hard_limit(1) or _UNLIMITED, 1 << 62)
    lower = max(0, min(limits) - 1)
    kept = lower if soft == resource.RLIM_INFINITY else min(soft, lower)
    resource.setrlimit(resource.RLIMIT_MSGQUEUE, (kept, lower))


def is_marked(pid: int, reference: int | None = None) -> bool:
    """Whether a process is marked, against `reference` or else pid 1's limit. False where there is no mark."""
    if not _LINUX:
        return False
    if reference is None:
        reference = hard_limit(1) or own_limit()
    found = hard_limit(pid)
    return found is None or found < reference


def own_limit() -> int:
    """This process's own hard limit: what a peer is measured against by one that is itself below pid 1's."""
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
    """A pid with its start time, which no later process of the same pid shares."""
    found = _parent_and_start(pid)
    return None if found is None else (pid, found[1])


def parent(pid: int) -> int:
    """The process that stands directly above; 0 when nobody can tell."""
    found = _parent_and_start(pid)
    return 0 if found is None else found[0]


def descends_from(pid: int, ancestors: AbstractSet[tuple[int, int]]) -> bool:
    """Whether one of `ancestors` (each an `identity`) is this process or stands above it."""
    if not ancestors or not _LINUX:
        return False
    unseen: list[int] = []
    for _ in range(_WALK_TRIES):
        found, gap = _walk(pid, ancestors)
        if found or gap is None:
            return found
        # A parent that died while we walked left its child to another: walk again. One that is still named but
        # cannot be seen belongs to another user; wardens never do.
        if gap in unseen and gap != pid:
            return False
        unseen.append(gap)
    return True


def _walk(pid: int, ancestors: AbstractSet[tuple[int, int]]) -> tuple[bool, int | None]:
    """Whether an ancestor was met, and the pid that could not be looked at, if any."""
    while pid > 0:
        found = _parent_and_start(pid)
        if found is None:
            return False, pid
        if (pid, found[1]) in ancestors:
            return True, None
        pid = found[0]
    return False, None


def _parent_and_start(pid: int) -> tuple[int, int] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            # The name stands in parentheses and may itself hold spaces and parentheses.
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[1]), int(fields[19])


@dataclass(frozen=True, slots=True)
class Peer:
    """The process at the other end of a unix socket, as it was when it connected."""

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
        """Same user, unmarked, under none of `below`, and alive after these were looked up.

        The last point matters: the pid of a peer that left its socket to a child and exited may by now be another's.
        """
        if self.uid != os.getuid() or (_LINUX and self.pid <= 0):
            return False
        if is_marked(self.pid, reference) or descends_from(self.pid, below):
            return False
        return self._lives()

    def close(self) -> None:
        if self.pidfd is not None:
            os.close(self.pidfd)

    def _lives(self) -> bool:
        if self.pidfd is None:
            return True
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return not poll.poll(0)


def _macos_peer(sock: socket.socket) -> Peer:
    local, peer_cred, peer_pid = 0, 0x001, 0x002
    uid = struct.unpack("2I", sock.getsockopt(local, peer_cred, 8))[1]
    return Peer(struct.unpack("i", sock.getsockopt(local, peer_pid, 4))[0], uid, None)
