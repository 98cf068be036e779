"""Who listens on a port, as the system tells it; nobody is connected to for that.

Owns the reading of /proc. It does not know terminals: it is given a process and looks at what that started.
"""

from __future__ import annotations

import os
from pathlib import Path

_LISTENS = "0A"


def can_tell() -> bool:
    """Whether this system tells at all."""
    return Path("/proc/net/tcp").exists()


def listening(port: int) -> set[str]:
    """The sockets that listen on this port, by their inode numbers."""
    return {inode for name in ("tcp", "tcp6") for inode in _sockets(Path("/proc/net", name), port)}


def holder(inodes: set[str], leader: int) -> int | None:
    """Which process holds one of these sockets: this one, or one that it started; None when none of them does."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    return next((pid for pid in _tree(leader) if wanted & _held(pid)), None)


def _sockets(path: Path, port: int) -> list[str]:
    try:
        rows = [line.split() for line in path.read_text().splitlines()[1:]]
    except OSError:
        return []
    return [row[9] for row in rows if row[3] == _LISTENS and int(row[1].rpartition(":")[2], 16) == port]


def _tree(pid: int) -> list[int]:
    found: list[int] = []
    waiting = [pid]
    while waiting:
        found.append(waiting.pop())
        waiting += _children(found[-1])
    return found


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(word) for task in tasks for word in (task / "children").read_text().split()]
    except OSError:
        return []


def _held(pid: int) -> set[str]:
    held: set[str] = set()
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            held.add(os.readlink(entry.path))  # noqa: PTH115 - names of sockets are no paths
    except OSError:
        pass  # gone, or not ours to look at: then it is not known
    return held
