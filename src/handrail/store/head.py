"""The head file: the chain's last link, kept beside the database so that a cut tail shows.

Owns that file's one line. It is written after each commit and never synced: after a power cut it may lag
behind the database, it never leads. Does not know the database.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from handrail.store.chain import Link


class HeadFile:
    """The open head file, rewritten in place by the journal's writer."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, link: Link) -> None:
        # One line of constant width: nothing of an older line can remain behind it.
        os.pwrite(self._descriptor, f"{link.seq:020d} {link.chain.hex()}\n".encode(), 0)

    def close(self) -> None:
        os.close(self._descriptor)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The head file is there, but says nothing that can be used."""

    why: str


def read_head(path: Path) -> Link | Unreadable | None:
    """What the head file says; None when there is none or it is empty."""
    try:
        line = path.read_bytes()
    except FileNotFoundError:
        return None
    if not line:
        return None
    try:
        seq, chain = line.decode("ascii").split()
        return Link(int(seq), bytes.fromhex(chain))
    except ValueError:
        return Unreadable(f"{path} is not a line of a number and a hash")


def cut_beside(head: Path) -> Path:
    """Where a head that the database no longer reaches is kept as evidence."""
    return head.with_name(head.name + ".cut")
