"""The hash chain that binds each event to all events before it, and the head file with its last link.

Owns the bytes that are hashed and the format of the head file. The head file stands beside the database, so that
a truncated journal is detected. Does not know the database.
"""

import hashlib
import os
from pathlib import Path

from handrail.lazy_dataclass import dataclass
from handrail.regular_file import NotRegular, read_regular_file

GENESIS = bytes(32)
"""The chain value before the first event."""


@dataclass(frozen=True, slots=True)
class Link:
    """A position in the chain: everything up to `seq` hashes to `chain`."""

    seq: int
    chain: bytes


START = Link(0, GENESIS)


def payload_hash(payload: str) -> bytes:
    # A tampered file may hold lone surrogates: they must still hash, to another value.
    return hashlib.sha256(payload.encode("utf-8", "surrogatepass")).digest()


def chained(before: bytes, seq: int, at: int, kind: str, payload_hash: bytes) -> bytes:
    """Hash one event on top of `before`. Numbers have a fixed width, so that no two rows give the same bytes."""
    named = kind.encode("utf-8", "surrogatepass")
    numbers = b"".join(number.to_bytes(8, "big", signed=True) for number in (seq, at, len(named)))
    return hashlib.sha256(before + numbers + named + payload_hash).digest()


class HeadFile:
    """The open head file, rewritten in place by the journal's writer."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, link: Link) -> None:
        # One line of constant width: it overwrites the older line completely.
        os.pwrite(self._descriptor, f"{link.seq:020d} {link.chain.hex()}\n".encode(), 0)

    def close(self) -> None:
        os.close(self._descriptor)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The head file exists but cannot be parsed."""

    why: str


def read_head(path: Path) -> Link | Unreadable | None:
    """Read the head file; None when it is missing or empty."""
    try:
        line = read_regular_file(path)
    except FileNotFoundError:
        return None
    except NotRegular as error:
        return Unreadable(str(error))
    if not line:
        return None
    try:
        seq, chain = line.decode("ascii").split()
        return Link(int(seq), bytes.fromhex(chain))
    except ValueError:
        return Unreadable(f"{path} is not a line of a number and a hash")


def cut_head_path(head: Path) -> Path:
    """Return the path that keeps, as evidence, a head which the database no longer reaches."""
    return head.with_name(head.name + ".cut")
