"""Process lineage: recognise a process that Handrail started, directly or through any of its descendants.

Two means: a mark that descendants inherit, and a walk up the parents. Both fail closed: a process that has exited or
cannot be read counts as marked.

The mark: before a leader's program runs, the hard limit on POSIX message queues is lowered below `reference`. Every
descendant inherits it, even after a double fork or if its warden is killed, and only root can raise it again. Hardly any
program uses that limit, and one byte less does no harm. Limits of this user's processes are read with prlimit(2): it works
for processes that hide their memory, also where /proc is mounted with `hidepid`.
"""

from __future__ import annotations

import errno
import os
import resource
import select
import socket
import stat
import struct
import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator
    from collections.abc import Set as AbstractSet

_LINUX = sys.platform == "linux"
_SO_PEERPIDFD = 77  # Linux 6.5; not named by the socket module
_PIDFD_GET_INFO = 0xC040FF0B  # Linux 6.13; struct pidfd_info of 64 bytes
_UNLIMITED = 1 << 64
_WALK_TRIES = 5

KERNEL_DEFAULT = 819_200
"""The kernel's own hard limit for message queues (MQ_BYTES_MAX), which pid 1 and all others inherit."""
STATED_LIMIT = "/etc/handrail/msgqueue-limit"
"""A file of root's with the limit of this machine's shells. With it, a pid 1 that runs as the user is accepted."""
NO_REFERENCE = (
    "Process 1 of this container runs as your own user, so Handrail takes nobody for a person until root says that this is "
    f"intended. Once, as root (in the Dockerfile after RUN, or with `docker exec -u root`): `mkdir -p /etc/handrail && "
    f"echo {KERNEL_DEFAULT} > {STATED_LIMIT}`, then `handrail down` and `handrail up`. Or start the container with pid 1 of "
    "another user (`docker run --init` as root, and `docker exec -u USER`)."
)
NO_MARK = (
    "The limit on message queues (`ulimit -q`) is 0 on this machine, so Handrail cannot mark what it starts and takes nobody "
    "for a person. Raise it for pid 1 and your session, and restart Handrail."
)


def reference() -> int:
    """The limit below which a process counts as marked.

    No process of this user can change it: it comes from root's file, else from pid 1 if that belongs to another user, and
    is never above the kernel's default, which is a constant.
    """
    if not _LINUX:
        return 0
    stated = stated_limit()
    if stated is None and not _can_signal_first_process():
        stated = hard_limit(1)
    return KERNEL_DEFAULT if stated is None else min(stated, KERNEL_DEFAULT)


def own_reference() -> int:
    """The reference for peers of this process: lower than `reference` only if this process itself is marked."""
    return min(reference(), own_limit())


def explain_no_reference() -> str | None:
    """Why no process can be taken for a person on this machine; None in normal operation."""
    if not _LINUX:
        return None
    if owns_first_process() and stated_limit() is None:
        return NO_REFERENCE
    return NO_MARK if reference() < 1 else None


def owns_first_process() -> bool:
    """Whether pid 1 belongs to this user, who could then change its limits. Root, who can change any, is not meant."""
    return _LINUX and os.getuid() != 0 and _can_signal_first_process()


def _can_signal_first_process() -> bool:
    """Whether this user, or root, may signal pid 1. The kernel checks the same for changing its limits."""
    try:
        os.kill(1, 0)
    except PermissionError:
        return False
    return True


def stated_limit(path: str = STATED_LIMIT) -> int | None:
    """The limit in root's file; None if there is no such file, or if another user could have written it."""
    folders = [path]
    while folders[-1] != "/":
        folders.append(os.path.dirname(folders[-1]))
    try:
        if not all(_is_root_only(os.lstat(each)) for each in folders):
            return None
        with open(path, "rb") as file:
            return int(file.read(64) or KERNEL_DEFAULT)
    except (OSError, ValueError):
        return None


def _is_root_only(status: os.stat_result) -> bool:
    return status.st_uid == 0 and not status.st_mode & 0o022 and not stat.S_ISLNK(status.st_mode)


def mark() -> None:
    """Mark this process and all its future descendants."""
    if _LINUX:
        resource.setrlimit(resource.RLIMIT_MSGQUEUE, mark_limits())


def mark_limits() -> tuple[int, int]:
    """The limit on message queues that a child of this process has once it is marked."""
    soft, hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
    lower = max(0, min(_number(hard), reference()) - 1)
    return (lower if soft == resource.RLIM_INFINITY else min(soft, lower)), lower


def is_marked(pid: int, below: int | None = None) -> bool:
    """Whether a process's limit is less than `below`, or else `reference`. Always False on macOS."""
    if not _LINUX:
        return False
    limit = hard_limit(pid)
    return limit is None or limit < (reference() if below is None else below)


def own_limit() -> int:
    """This process's hard limit."""
    return _number(resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]) if _LINUX else 0


def hard_limit(pid: int) -> int | None:
    """The hard limit of a process; None if it has exited or cannot be read."""
    if pid <= 0:
        return None
    try:
        return _number(resource.prlimit(pid, resource.RLIMIT_MSGQUEUE)[1])
    except (OSError, ValueError):  # another user's, another group's, or gone
        return _limit_in_proc(pid)


def _number(hard: int) -> int:
    return _UNLIMITED if hard == resource.RLIM_INFINITY else hard


def _limit_in_proc(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/limits", "rb") as limits:
            line = next(line for line in limits if line.startswith(b"Max msgqueue size"))
    except (OSError, StopIteration):
        return None
    hard = line.split()[4]
    return _UNLIMITED if hard == b"unlimited" else int(hard)


class Stat:
    """A process's place in the tree, from /proc/PID/stat."""

    # Not a dataclass: doors import this module, and importing dataclasses slows their start.
    __slots__ = ("group", "name", "parent", "pid", "session", "start", "tty")

    def __init__(self, pid: int, content: bytes) -> None:
        # The process name is in parentheses and may contain spaces and parentheses.
        head, _, tail = content.rpartition(b")")
        fields = tail.split()
        self.pid = pid
        self.name = head.partition(b"(")[2].decode(errors="replace")
        self.parent, self.group, self.session, self.tty = (int(field) for field in fields[1:5])
        self.start = int(fields[19])

    @property
    def identity(self) -> tuple[int, int]:
        return self.pid, self.start

    @property
    def leads_terminal(self) -> bool:
        """Whether it leads the session of a terminal, as the first shell in a terminal window does."""
        return self.pid == self.session and self.tty != 0


def read_stat(pid: int) -> Stat | None:
    """The process's place in the tree; None if it has exited or is hidden."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return Stat(pid, file.read())
    except OSError:
        return None


def identity(pid: int) -> tuple[int, int] | None:
    """The pid with its start time, which differs for a later process with a reused pid; None if it is gone."""
    place = read_stat(pid)
    return None if place is None else place.identity


def parent(pid: int) -> int | None:
    """The parent's pid, 0 if that is outside of this PID namespace; None if unknown."""
    place = read_stat(pid)
    return _hidden_parent(pid) if place is None else place.parent


def _hidden_parent(pid: int) -> int | None:
    """The parent of a process whose /proc is hidden by `hidepid`; None if unknown, as before Linux 6.13."""
    try:
        descriptor = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None
    try:
        import fcntl  # noqa: PLC0415 - only needed under `hidepid`

        info = fcntl.ioctl(descriptor, _PIDFD_GET_INFO, bytes(64))
        return struct.unpack_from("I", info, 24)[0]
    except OSError:
        return None
    finally:
        os.close(descriptor)


def ancestors(pid: int) -> Generator[int]:
    """The process itself and those above it, as far as they are known."""
    while pid > 0:
        yield pid
        pid = parent(pid) or 0


def is_hidden(pid: int) -> bool:
    """Whether a living process cannot be read in /proc, as under `hidepid` if it hides its memory or is another user's."""
    if pid <= 0 or read_stat(pid) is not None:
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def descends_from(pid: int, ancestors: AbstractSet[tuple[int, int]]) -> bool:
    """Whether this process, or one above it, is in `ancestors` (each an `identity`).

    False for a process hidden by `hidepid` whose parent is unknown: then only its mark is known.
    """
    if not ancestors or not _LINUX:
        return False
    unseen: list[int] = []
    for _ in range(_WALK_TRIES):
        matched, gap = _walk(pid, ancestors)
        if matched or gap is None:
            return matched
        # If a parent died during the walk, its child has a new parent: walk again. A parent that is still named but
        # unreadable belongs to another user, and wardens never do.
        if gap in unseen and (gap != pid or is_hidden(pid)):
            return False
        unseen.append(gap)
    return True


def _walk(pid: int, ancestors: AbstractSet[tuple[int, int]]) -> tuple[bool, int | None]:
    """Walk up the parents: whether an ancestor matched, and the pid that could not be read, if any."""
    while pid > 0:
        place = read_stat(pid)
        if place is None:
            above = _hidden_parent(pid)
            if above is None:
                return False, pid
            pid = above
            continue
        if place.identity in ancestors:
            return True, None
        pid = place.parent
    return False, None


def explain_mark(pid: int) -> str:
    """Which process carries the mark although no keeper is above it, and how its user gets rid of it."""
    limit = reference()
    marked = [each for each in ancestors(pid) if each > 1 and is_marked(each, limit)] or [pid]
    top = read_stat(marked[-1])
    name = f" ({top.name})" if top is not None else ""
    return (
        f"Process {marked[-1]}{name}, and with it this command, carries the mark of what Handrail starts, but no running "
        "keeper is above it. Another program of yours has lowered its limit on message queues (`prlimit`), or it is left "
        "over from an earlier Handrail. Only root can take a mark off. Do it on the page, or in a new terminal; if new "
        "terminals are marked too, log in again. As root: "
        f"`sudo prlimit --msgqueue={limit}:{limit} --pid PID` for PID {', '.join(map(str, marked))}."
    )


class Peer:
    """The process at the other end of a unix socket, as of the moment it connected or began to listen."""

    __slots__ = ("pid", "pidfd", "uid")

    def __init__(self, pid: int, uid: int, pidfd: int | None) -> None:
        self.pid = pid
        self.uid = uid
        self.pidfd = pidfd
        """None if the kernel has no such descriptors; -1 if the process has exited."""

    @classmethod
    def of(cls, sock: socket.socket) -> Peer:
        if not _LINUX:
            return _macos_peer(sock)
        size = struct.calcsize("3i")
        pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        try:
            pidfd = sock.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
        except OSError as error:
            pidfd = None if error.errno == errno.ENOPROTOOPT else -1
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
        return self.is_alive()

    def is_alive(self) -> bool:
        if self.pidfd is None:
            return True
        if self.pidfd < 0:
            return False
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        if self.pidfd is not None and self.pidfd >= 0:
            os.close(self.pidfd)


def _macos_peer(sock: socket.socket) -> Peer:
    local, peer_cred, peer_pid = 0, 0x001, 0x002
    uid = struct.unpack("2I", sock.getsockopt(local, peer_cred, 8))[1]
    return Peer(struct.unpack("i", sock.getsockopt(local, peer_pid, 4))[0], uid, None)
