"""Find the process that listens on a TCP port, by reading /proc.

No connection is made. Processes are searched from a leader downwards; terminals are not known here.
"""

from __future__ import annotations

import os
from pathlib import Path

_STATE_LISTEN = "0A"


def can_list_ports() -> bool:
    """Whether this system has /proc/net/tcp."""
    return Path("/proc/net/tcp").exists()


def listening(port: int) -> set[str]:
    """The inode numbers of the sockets that listen on this port."""
    return {inode for name in ("tcp", "tcp6") for inode in _sockets(Path("/proc/net", name), port)}


def holder(inodes: set[str], leader: int) -> int | None:
    """The process among `leader` and its descendants that holds one of these sockets; else None."""
    sockets = {f"socket:[{inode}]" for inode in inodes}
    return next((pid for pid in _tree(leader) if sockets & _open_files(pid)), None)


def _sockets(path: Path, port: int) -> list[str]:
    try:
        rows = [line.split() for line in path.read_text().splitlines()[1:]]
    except OSError:
        return []
    return [row[9] for row in rows if row[3] == _STATE_LISTEN and int(row[1].rpartition(":")[2], 16) == port]


def _tree(pid: int) -> list[int]:
    pids: list[int] = []
    queue = [pid]
    while queue:
        pids.append(queue.pop())
        queue += _children(pids[-1])
    return pids


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(word) for task in tasks for word in (task / "children").read_text().split()]
    except OSError:
        return []


def _open_files(pid: int) -> set[str]:
    targets: set[str] = set()
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            targets.add(os.readlink(entry.path))  # noqa: PTH115 - socket names are not paths
    except OSError:
        pass  # the process has ended, or belongs to another user
    return targets
