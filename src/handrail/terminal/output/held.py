"""A tail's segments held open together, so that none is dropped while someone goes through them all.

Owns the descriptors, and which line each segment begins in. It does not know what is looked for.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handrail.terminal.output.index import lines_before

if TYPE_CHECKING:
    from handrail.terminal.output.tail import Tail

_STEP = 1 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """One segment, as large as it was when it was opened."""

    fd: int
    start: int
    size: int
    lines_before: int | None
    """Lines that end before it; None where nobody counted."""

    @property
    def end(self) -> int:
        return self.start + self.size


class Held:
    """All of a tail that is kept, as it was when it was opened."""

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces
        self.start = pieces[0].start if pieces else 0
        self.end = pieces[-1].end if pieces else 0
        self._counted: dict[int, int] = {}

    def read(self, start: int, end: int) -> bytes:
        found: list[bytes] = []
        at = bisect_right(self.pieces, start, key=lambda piece: piece.start) - 1
        for piece in self.pieces[max(0, at) :]:
            if piece.start >= end:
                break
            begin = max(start, piece.start)
            found.append(os.pread(piece.fd, max(0, min(end, piece.end) - begin), begin - piece.start))
        return b"".join(found)

    def lines_before(self, index: int) -> int:
        """Lines that end before the piece of this index, counted where nobody did."""
        piece = self.pieces[index]
        if piece.lines_before is not None:
            return piece.lines_before
        if index == 0:
            return 0
        if index not in self._counted:
            before = self.pieces[index - 1]
            lines = sum(
                self.read(at, min(at + _STEP, before.end)).count(b"\n")
                for at in range(before.start, before.end, _STEP)
            )
            self._counted[index] = self.lines_before(index - 1) + lines
        return self._counted[index]


@contextmanager
def holding(tail: Tail) -> Generator[Held]:
    """Open for as long as this lasts."""
    pieces: list[Piece] = []
    try:
        for start, path in tail.files:
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue  # dropped since it was listed
            pieces.append(Piece(fd, start, os.fstat(fd).st_size, lines_before(path)))
        yield Held(pieces)
    finally:
        for piece in pieces:
            os.close(piece.fd)
