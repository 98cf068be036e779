"""What stands beside a segment of output: how many lines came before it, and when each piece was written.

Owns the reading of index files. Does not know segments' bytes. A spool from before there were any has none, and what
is not known is said so.

A file holds a header (how many lines lie before its segment, and a reserve) and then, for each piece as it was
written, its absolute offset and its time in milliseconds since 1970; each a number of eight bytes, the highest first.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PAIR = struct.Struct(">QQ")


def index_path(segment: Path) -> Path:
    return segment.with_suffix(".idx")


def lines_before(segment: Path) -> int | None:
    """Lines written before this segment; None where nobody counted."""
    try:
        with index_path(segment).open("rb") as file:
            header = file.read(_PAIR.size)
    except FileNotFoundError:
        return None
    return _PAIR.unpack(header)[0] if len(header) == _PAIR.size else None


def pieces(segment: Path) -> list[tuple[int, int]]:
    """The offset and the time of each piece of this segment, in order; none where nobody noted them."""
    try:
        data = index_path(segment).read_bytes()
    except FileNotFoundError:
        return []
    whole = len(data) // _PAIR.size * _PAIR.size
    return list(_PAIR.iter_unpack(data[_PAIR.size : whole]))


def piece_at(found: list[tuple[int, int]], offset: int) -> tuple[int, int] | None:
    """The piece that holds this offset."""
    at = bisect_right(found, offset, key=lambda piece: piece[0])
    return found[at - 1] if at else None
