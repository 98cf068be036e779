"""Reading a tail by cursor, by last lines or by last chunks.

Owns where a reading begins and ends. It does not know what escape sequences mean (screen.py), nor segments (tail.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from handrail.terminal.screen import plain

if TYPE_CHECKING:
    from handrail.terminal.tail import Tail

Mode = Literal["text", "raw"]
LIMIT = 256 * 1024
"""Bytes looked at in one reading, unless told otherwise: bounds its work whatever a terminal printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One piece of a tail."""

    data: str | bytes
    """str in mode text, bytes in mode raw."""
    start: int
    """The offset of the first byte of `data`."""
    next: int
    """The offset to read after: `after=next` goes on exactly here."""
    end: int
    """The offset after the last byte recorded when this was read; `next < end` says that there is more."""
    first: int
    """The oldest offset still kept."""
    lines_dropped: int
    """Lines before `first`, no longer kept."""
    left_out: int
    """Bytes that were asked for and are not in `data`: dropped, or before the last `limit` bytes."""


def read(
    tail: Tail,
    *,
    after: int | None = None,
    chunks: int | None = None,
    lines: int | None = None,
    mode: Mode = "text",
    limit: int = LIMIT,
) -> Reading:
    """From `after` on; or the last chunks; or the last lines; or from the oldest byte kept."""
    first, end = tail.first, tail.end
    asked = first if after is None else after
    if chunks is not None:
        asked = max(first, end - limit)
    if lines is not None:
        asked = _last_lines(tail, first, end, lines, limit)
    start = max(asked, first)
    data = _bytes(tail, start, min(end, start + limit))
    return Reading(
        data=data if mode == "raw" else plain(data),
        start=start,
        next=start + len(data),
        end=end,
        first=first,
        lines_dropped=getattr(tail, "lines_dropped", 0),
        left_out=max(0, start - asked),
    )


def _last_lines(tail: Tail, first: int, end: int, lines: int, limit: int) -> int:
    start = max(first, end - limit)
    data = _bytes(tail, start, end)
    at = len(data) - data.endswith(b"\n")
    for _ in range(lines):
        at = data.rfind(b"\n", 0, at)
        if at < 0:
            return start
    return start + at + 1


def _bytes(tail: Tail, start: int, end: int) -> bytes:
    pieces: list[bytes] = []
    while start < end:
        data, following = tail.read(start, end - start)
        if not data:
            break
        pieces.append(data)
        start = following
    return b"".join(pieces)
