"""Lines that lie across the end of a segment, which a search segment by segment would not see whole.

Owns finding them, and which hits in a segment stand although its first and last line may be parts of one. It does
not know what is looked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from handrail.terminal.output.held import Held

_STEP = 4096


@dataclass(frozen=True, slots=True, order=True)
class Hit:
    """A matching line, in an open file or, with fd -1, on stdin."""

    fd: int
    line: int
    """From one."""
    column: int
    """Bytes from the beginning of the line to the match, from zero."""
    offset: int
    """Where the line begins."""


@dataclass(frozen=True, slots=True)
class Seam:
    """A line that begins in one segment and ends in a later one."""

    start: int
    end: int
    """After its line end, or the end of everything."""
    after: int
    """The segment at whose end it was cut first."""


def seams(held: Held) -> list[Seam]:
    found: list[Seam] = []
    for index, piece in enumerate(held.pieces[:-1]):
        if (found and found[-1].end > piece.end) or held.read(piece.end - 1, piece.end) == b"\n":
            continue  # within a longer one, or none
        start = found[-1].end if found and found[-1].end > piece.start else piece.start
        found.append(Seam(_begin(held, start, piece.end), _end(held, piece.end), index))
    return found


def kept(held: Held, joined: Sequence[Seam], hits: Sequence[Hit]) -> Iterator[tuple[int, int, int]]:
    """Offset, number (from zero) and column of each line that really is one."""
    by_fd = {piece.fd: index for index, piece in enumerate(held.pieces)}
    for hit in hits:
        if hit.fd < 0:
            seam = joined[hit.line - 1]
            yield seam.start, held.lines_before(seam.after + 1), hit.column
            continue
        index = by_fd[hit.fd]
        offset = held.pieces[index].start + hit.offset
        if not any(seam.start <= offset < seam.end for seam in joined):
            yield offset, held.lines_before(index) + hit.line - 1, hit.column


def _begin(held: Held, first: int, at: int) -> int:
    """Where the line that goes on at `at` began."""
    step = _STEP
    while at > first:
        start = max(first, at - step)
        found = held.read(start, at).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        at, step = start, step * 2
    return first


def _end(held: Held, at: int) -> int:
    step = _STEP
    while at < held.end:
        found = held.read(at, min(held.end, at + step)).find(b"\n")
        if found >= 0:
            return at + found + 1
        at, step = min(held.end, at + step), step * 2
    return held.end
