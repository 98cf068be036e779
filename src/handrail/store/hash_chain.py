"""The hash chain: what binds each event to all before it.

Owns the bytes that are hashed. Pure: does not know the database, nor when a link is made.

The head file: the chain's last link, kept beside the database so that a cut tail shows.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

GENESIS = bytes(32)
"""What the first event is chained to."""


@dataclass(frozen=True, slots=True)
class Link:
    """A place in the chain: everything up to `seq` hashes to `chain`."""

    seq: int
    chain: bytes


START = Link(0, GENESIS)


def payload_hash(payload: str) -> bytes:
    # An altered file may hold anything; what cannot be encoded must still be hashed, and differ.
    return hashlib.sha256(payload.encode("utf-8", "surrogatepass")).digest()


def chained(before: bytes, seq: int, at: int, kind: str, payload_hash: bytes) -> bytes:
    """The hash of one event on top of `before`. Numbers are fixed width, so that no two rows share bytes."""
    named = kind.encode("utf-8", "surrogatepass")
    numbers = b"".join(number.to_bytes(8, "big", signed=True) for number in (seq, at, len(named)))
    return hashlib.sha256(before + numbers + named + payload_hash).digest()


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
