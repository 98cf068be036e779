"""Heads of the journal that an administrator keeps in a file which the user cannot write.

Each line is a line of the head file at some moment. Handrail only reads the file. It is ignored unless it belongs to
root and no other user may write to it or replace it.
"""

import os
import stat
from pathlib import Path

from handrail.store.hash_chain import Link
from handrail.store.integrity import has_event

ANCHORS = Path("/etc/handrail/heads")
"""The folder of these files; each has a user's number as its name."""
LARGEST = 1 << 20
"""Bytes read of such a file: bounds the time of a start."""


def check_anchor(database: Path, folder: Path = ANCHORS, owner: int = 0) -> list[str]:
    """Compare the journal with the heads kept for this user; each difference is a sentence. Blocks."""
    path = folder / str(os.getuid())
    links = read_anchors(folder, owner) if database.exists() else []
    return [
        f"The journal had reached event {link.seq}, says {path}, which is gone or altered."
        for link in links
        if not has_event(database, link)
    ]


def read_anchors(folder: Path = ANCHORS, owner: int = 0) -> list[Link]:
    """The heads kept for this user. The events that they name are never removed. Blocks."""
    path = folder / str(os.getuid())
    if not _is_safe(path, owner) or not _is_safe(folder, owner):
        return []
    return [link for line in path.read_bytes()[-LARGEST:].splitlines() if (link := _parse(line))]


def _is_safe(path: Path, owner: int) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return status.st_uid == owner and not stat.S_ISLNK(status.st_mode) and not status.st_mode & 0o022


def _parse(line: bytes) -> Link | None:
    """A head; None for a line that is not one."""
    try:
        seq, chain = line.decode("ascii").split()
        return Link(int(seq), bytes.fromhex(chain))
    except ValueError:
        return None
