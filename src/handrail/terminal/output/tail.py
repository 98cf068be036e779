"""A terminal's output as bytes with absolute offsets, read from its spool.

Owns the reading of segments (index.py: of what stands beside them) and the bell that wakes followers. Does not know the keeper: an ended terminal's tail is
read from disk alone. Whoever is told of growth calls `ring`, and `close` when no more can come.

What stands beside a segment of output: how many lines came before it, and when each piece was written.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


_TRIES = 3
_LARGEST = 1 << 62
"""No offset is beyond this, and the system takes none."""


@dataclass(frozen=True, slots=True)
class Extent:
    """What of a tail is kept at one moment: looked up once by whoever asks for more than one of these."""

    first: int
    """The oldest offset still kept; what stood before was dropped to keep within the cap."""
    end: int
    """The offset after the last byte recorded."""
    lines_dropped: int
    """Lines that stood before `first`; zero where nobody counted."""


class Tail:
    """What a terminal has printed, as far as it is still kept."""

    def __init__(self, directory: Path, *, closed: bool = False) -> None:
        self._directory = directory
        self._bell = anyio.Event()
        self.closed = closed

    @property
    def extent(self) -> Extent:
        """All that is told of what is kept, for the price of one listing."""
        for _ in range(_TRIES):
            segments = self._segments()
            try:
                return Extent(next(iter(segments), 0), self._end(segments), self._lines_before(segments))
            except FileNotFoundError:
                continue  # dropped since we listed
        return Extent(self.first, self.first, self.lines_dropped)

    @property
    def first(self) -> int:
        """As `Extent` says it, like the next two."""
        return next(iter(self._segments()), 0)

    @property
    def end(self) -> int:
        for _ in range(_TRIES):
            try:
                return self._end(self._segments())
            except FileNotFoundError:
                continue  # dropped since we listed
        return self.first

    @property
    def files(self) -> list[tuple[int, Path]]:
        """Where each segment begins and the file that holds it, oldest first: for who reads them all at once."""
        return [(start, self._path(start)) for start in self._segments()]

    @property
    def lines_dropped(self) -> int:
        return self._lines_before(self._segments())

    def chunks(self, last: int) -> int:
        """Where the last so many pieces begin, as they were written; a segment without an index counts as one."""
        segments = self._segments()
        for start in reversed(segments):
            found = pieces(self._path(start)) or [(start, 0)]
            if last <= len(found):
                return found[-last][0] if last > 0 else self.end
            last -= len(found)
        return next(iter(segments), 0)

    def pieces(self, start: int, end: int) -> list[tuple[int, int]]:
        """Where each piece between two offsets begins, as it was written, and when: milliseconds since 1970.

        The first may begin before `start`. Segments without an index have none.
        """
        segments = self._segments()
        held = [
            at for at, after in zip(segments, [*segments[1:], end], strict=True) if at < end and after > start
        ]
        found = [piece for at in held for piece in pieces(self._path(at))]
        begun = bisect_right(found, start, key=lambda piece: piece[0])
        return [piece for piece in found[max(0, begun - 1) :] if piece[0] < end]

    def time_of(self, offset: int) -> int | None:
        """When what stands there was written, in milliseconds since 1970; None where it is not known."""
        start = _holding(self._segments(), offset)
        piece = None if start is None else piece_at(pieces(self._path(start)), offset)
        return piece and piece[1]

    @property
    def last_at(self) -> float | None:
        """When something was written last, in seconds since 1970."""
        for start in reversed(self._segments()):
            try:
                return self._path(start).stat().st_mtime
            except FileNotFoundError:
                continue
        return None

    def read_range(self, after: int, until: int) -> bytes:
        """All bytes from `after` up to `until` that are kept."""
        pieces: list[bytes] = []
        while after < until:
            data, after = self.read(after, until - after)
            if not data:
                break
            pieces.append(data)
        return b"".join(pieces)

    def read(self, after: int, limit: int = 65536) -> tuple[bytes, int]:
        """At most `limit` bytes from `after` on, and the offset to read from next.

        When `after` is no longer kept, reading begins at `first`: the gap is `next - len(bytes) - after`.
        """
        for _ in range(_TRIES):
            segments = self._segments()
            if not segments or after > _LARGEST:
                return b"", after
            start = _holding(segments, after)
            start = segments[0] if start is None else start
            try:
                return self._read_from(segments, start, max(after, start), limit)
            except FileNotFoundError:
                continue  # dropped since we listed: begin at what is first by now
        return b"", after

    async def follow(self, after: int, send: Callable[[bytes, int], Awaitable[None]]) -> int:
        """Send every piece with its offset, at the receiver's pace, until no more can come; returns where it ended."""
        while True:
            bell, closed = self._bell, self.closed
            data, following = self.read(after)
            if data:
                await send(data, following - len(data))
                after = following
            elif closed:
                return after
            else:
                await bell.wait()

    def ring(self) -> None:
        """There is more to read."""
        bell, self._bell = self._bell, anyio.Event()
        bell.set()

    def close(self) -> None:
        """There will be no more."""
        self.closed = True
        self.ring()

    def _read_from(self, segments: list[int], start: int, after: int, limit: int) -> tuple[bytes, int]:
        fd = os.open(self._path(start), os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.pread(fd, limit, after - start)
        finally:
            os.close(fd)
        later = segments[bisect_right(segments, start) :][:1]
        if not data and later and after <= later[0]:
            return self._read_from(segments, later[0], later[0], limit)
        return data, after + len(data)

    def _segments(self) -> list[int]:
        try:
            names = os.listdir(self._directory)  # noqa: PTH208 - on the way of every read
        except FileNotFoundError:
            return []
        return sorted(int(name[:20]) for name in names if name.endswith(".seg") and name[:20].isdigit())

    def _end(self, segments: list[int]) -> int:
        return segments[-1] + self._path(segments[-1]).stat().st_size if segments else 0

    def _lines_before(self, segments: list[int]) -> int:
        for start in segments:
            lines = lines_before(self._path(start))
            if lines is not None:
                return lines
        return 0

    def _path(self, start: int) -> Path:
        return self._directory / f"{start:020d}.seg"


def _holding(segments: list[int], offset: int) -> int | None:
    """The segment that holds this offset, or would."""
    at = bisect_right(segments, offset)
    return segments[at - 1] if at else None


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
