"""A terminal's output as bytes with absolute offsets, read from its spool.

Owns the reading of segments and the bell that wakes followers. Does not know the keeper: an ended terminal's tail is
read from disk alone. Whoever is told of growth calls `ring`, and `close` when no more can come.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

_TRIES = 3


class Tail:
    """What a terminal has printed, as far as it is still kept."""

    def __init__(self, directory: Path, *, closed: bool = False) -> None:
        self._directory = directory
        self._bell = anyio.Event()
        self.closed = closed

    @property
    def first(self) -> int:
        """The oldest offset still kept; what stood before was dropped to keep within the cap."""
        return next(iter(self._segments()), 0)

    @property
    def end(self) -> int:
        """The offset after the last byte recorded."""
        for _ in range(_TRIES):
            segments = self._segments()
            if not segments:
                return 0
            try:
                return segments[-1] + self._path(segments[-1]).stat().st_size
            except FileNotFoundError:
                continue  # dropped since we listed
        return self.first

    def read(self, after: int, limit: int = 65536) -> tuple[bytes, int]:
        """At most `limit` bytes from `after` on, and the offset to read from next.

        When `after` is no longer kept, reading begins at `first`: the gap is `next - len(bytes) - after`.
        """
        for _ in range(_TRIES):
            segments = self._segments()
            start = max((at for at in segments if at <= after), default=next(iter(segments), None))
            if start is None:
                return b"", after
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
        later = [at for at in segments if at > start]
        if not data and later and after <= later[0]:
            return self._read_from(segments, later[0], later[0], limit)
        return data, after + len(data)

    def _segments(self) -> list[int]:
        try:
            names = [path.name for path in self._directory.iterdir()]
        except FileNotFoundError:
            return []
        return sorted(int(name[:20]) for name in names if name.endswith(".seg") and name[:20].isdigit())

    def _path(self, start: int) -> Path:
        return self._directory / f"{start:020d}.seg"
