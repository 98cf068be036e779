"""The hash chain: what binds each event to all before it.

Owns the bytes that are hashed. Pure: does not know the database, nor when a link is made.
"""

import hashlib
from dataclasses import dataclass

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
