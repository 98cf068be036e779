"""A terminal's output as bytes with absolute offsets, read from its spool files.

Reads the segments and their index files, which hold the number of earlier lines and the time of each write. Does not
know the keeper: the owner calls `ring` when there is new output, and `close` when no more can come.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from typing import TYPE_CHECKING

import anyio

from handrail.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


_TRIES = 3
_LARGEST = 1 << 62
"""Upper bound for an offset: `pread` fails for larger ones."""


@dataclass(frozen=True, slots=True)
class KeptRange:
    """A snapshot of the range that is kept: one directory listing for all three values."""

    first: int
    """The oldest offset still kept; older output was dropped to stay within the cap."""
    end: int
    """The offset after the last byte."""
    lines_dropped: int
    """Number of lines before `first`; zero without an index."""


class Tail:
    """The output of one terminal, as far as it is still kept."""

    def __init__(self, directory: Path, *, closed: bool = False) -> None:
        self._directory = directory
        self._bell = anyio.Event()
        self.closed = closed

    @property
    def kept_range(self) -> KeptRange:
        """A snapshot of the kept range."""
        for _ in range(_TRIES):
            segments = self._segments()
            try:
                return KeptRange(next(iter(segments), 0), self._end(segments), self._lines_before(segments))
            except FileNotFoundError:
                continue  # dropped since the listing
        return KeptRange(self.first, self.first, self.lines_dropped)

    @property
    def first(self) -> int:
        """As in `KeptRange`, like `end` and `lines_dropped`."""
        return next(iter(self._segments()), 0)

    @property
    def end(self) -> int:
        for _ in range(_TRIES):
            try:
                return self._end(self._segments())
            except FileNotFoundError:
                continue  # dropped since the listing
        return self.first

    @property
    def files(self) -> list[tuple[int, Path]]:
        """The start offset and file of each segment, oldest first."""
        return [(start, self._path(start)) for start in self._segments()]

    @property
    def lines_dropped(self) -> int:
        return self._lines_before(self._segments())

    def chunks(self, last: int) -> int:
        """The offset at which the last `last` writes begin; a segment without an index counts as one write."""
        segments = self._segments()
        for start in reversed(segments):
            written = pieces(self._path(start)) or [(start, 0)]
            if last <= len(written):
                return written[-last][0] if last > 0 else self.end
            last -= len(written)
        return next(iter(segments), 0)

    def pieces(self, start: int, end: int) -> list[tuple[int, int]]:
        """The writes between two offsets: each write's offset, and its time in milliseconds since 1970.

        The first may begin before `start`. Segments without an index contribute none.
        """
        segments = self._segments()
        starts = [
            at for at, after in zip(segments, [*segments[1:], end], strict=True) if at < end and after > start
        ]
        written = [piece for at in starts for piece in pieces(self._path(at))]
        begun = bisect_right(written, start, key=lambda piece: piece[0])
        return [piece for piece in written[max(0, begun - 1) :] if piece[0] < end]

    def time_of(self, offset: int) -> int | None:
        """When the byte at `offset` was written, in milliseconds since 1970; None when unknown."""
        start = _segment_of(self._segments(), offset)
        piece = None if start is None else piece_at(pieces(self._path(start)), offset)
        return piece and piece[1]

    @property
    def last_at(self) -> float | None:
        """Time of the last write, in seconds since 1970."""
        for start in reversed(self._segments()):
            try:
                return self._path(start).stat().st_mtime
            except FileNotFoundError:
                continue
        return None

    def read_range(self, after: int, until: int) -> bytes:
        """All kept bytes from `after` up to `until`."""
        pieces: list[bytes] = []
        while after < until:
            data, after = self.read(after, until - after)
            if not data:
                break
            pieces.append(data)
        return b"".join(pieces)

    def read(self, after: int, limit: int = 65536) -> tuple[bytes, int]:
        """At most `limit` bytes from `after` on, and the offset of the next read.

        When `after` is no longer kept, the read starts at `first`; the gap is `next - len(bytes) - after`.
        """
        for _ in range(_TRIES):
            segments = self._segments()
            if not segments or after > _LARGEST:
                return b"", after
            start = _segment_of(segments, after)
            start = segments[0] if start is None else start
            try:
                return self._read_from(segments, start, max(after, start), limit)
            except FileNotFoundError:
                continue  # dropped since the listing: start at the new first segment
        return b"", after

    async def follow(self, after: int, send: Callable[[bytes, int], Awaitable[None]]) -> int:
        """Send all output with its offsets, at the receiver's pace, until the tail is closed; returns the end offset."""
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
        """Wake followers: there is more to read."""
        bell, self._bell = self._bell, anyio.Event()
        bell.set()

    def close(self) -> None:
        """Mark the output as complete and wake followers."""
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
            names = os.listdir(self._directory)  # noqa: PTH208 - faster, and every read needs it
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


def _segment_of(segments: list[int], offset: int) -> int | None:
    """The start of the last segment at or before this offset."""
    at = bisect_right(segments, offset)
    return segments[at - 1] if at else None


_PAIR = struct.Struct(">QQ")


def index_path(segment: Path) -> Path:
    return segment.with_suffix(".idx")


def lines_before(segment: Path) -> int | None:
    """Number of lines before this segment; None without an index."""
    try:
        with index_path(segment).open("rb") as file:
            header = file.read(_PAIR.size)
    except FileNotFoundError:
        return None
    return _PAIR.unpack(header)[0] if len(header) == _PAIR.size else None


def pieces(segment: Path) -> list[tuple[int, int]]:
    """Offset and time of each write in this segment, in order; empty without an index."""
    try:
        data = index_path(segment).read_bytes()
    except FileNotFoundError:
        return []
    whole = len(data) // _PAIR.size * _PAIR.size
    return list(_PAIR.iter_unpack(data[_PAIR.size : whole]))


def piece_at(written: list[tuple[int, int]], offset: int) -> tuple[int, int] | None:
    """The write that holds this offset."""
    at = bisect_right(written, offset, key=lambda piece: piece[0])
    return written[at - 1] if at else None
