"""Reading a tail by cursor, by its last lines or by its last chunks.

Owns where a reading begins and ends, and its bounds. It does not know what escape sequences mean (text.py), nor
segments (tail.py).

Where to begin, for whoever shows a terminal's output and cannot take all of it.

A line and those around it, cut to what can be shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from handrail.terminal.output.plain_text import Paper
from handrail.terminal.output.tail import Tail

if TYPE_CHECKING:
    from handrail.terminal.output.tail import Extent


Mode = Literal["text", "raw"]
LIMIT = 256 * 1024
"""Bytes looked at in one reading, unless told otherwise: bounds its work whatever a terminal printed."""
_HELD = 4096
"""Bytes of an unfinished sequence that wait for their end; one that is longer is not waited for."""
_BACK = 64 * 1024
"""How far before a reading a string sequence (a title, a picture) may have begun that goes on in it."""
_OPEN = re.compile(rb"\x1b(?:\[[0-?]{0,256}[ -/]{0,8}|[ -/]{0,8}|[\]PX^_][^\x07\x18\x1a\x1b]*\x1b?)\Z")
_CUT_CHARACTER = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One piece of a tail."""

    data: str | bytes
    """str in mode text, bytes in mode raw."""
    start: int
    """The offset of the first byte of `data`."""
    next: int
    """The offset to read after: `after=next` goes on exactly here.

    In raw, readings that follow each other this way have every byte once. In text, what is cut off at the end (an
    escape sequence, a character) is left for the next reading; an unfinished last line is given as it stands, and
    what is printed over it later comes with the next reading. A reading that reached its limit ends with a line.
    """
    end: int
    """The offset after the last byte recorded when this was read; `next < end` says that there is more."""
    first: int
    """The oldest offset still kept."""
    lines_dropped: int
    """Lines before `first`, no longer kept."""
    left_out: int
    """Bytes before `start` that were asked for: dropped, or, of last lines and chunks, beyond the limit.

    Of lines beyond the limit it is all that is kept before `start`.
    """


def read(
    tail: Tail,
    *,
    after: int | None = None,
    chunks: int | None = None,
    lines: int | None = None,
    mode: Mode = "text",
    limit: int = LIMIT,
    extent: Extent | None = None,
) -> Reading:
    """From the cursor `after` on; or the last chunks; or the last lines; or from the oldest byte kept.

    `extent` is the tail's, from who has just looked.
    """
    extent = extent or tail.extent
    first, end = extent.first, extent.end
    limit = max(1, limit)
    if lines is not None:
        start, left_out = _last_lines(tail, first, end, max(0, lines), mode, limit)
    elif chunks is not None:
        asked = tail.chunks(max(0, chunks))
        start = max(asked, first, end - limit)
        left_out = start - asked
    else:
        asked = first if after is None else min(max(0, after), end)
        start = max(asked, first)
        left_out = start - asked
    back = max(first, start - _BACK) if mode == "text" else start
    start, before, data = _parted(tail, back, start, min(end, start + limit))
    if mode == "text":
        data = _whole(data, more=start + len(data) < end, may_grow=not tail.closed)
    text = data if mode == "raw" else _last(_text(before, data), lines)
    return Reading(
        data=text,
        start=start,
        next=start + len(data),
        end=end,
        first=first,
        lines_dropped=extent.lines_dropped,
        left_out=left_out,
    )


def _last_lines(tail: Tail, first: int, end: int, lines: int, mode: Mode, limit: int) -> tuple[int, int]:
    """Where the last lines begin, and what is left out. In text, lines that were overwritten do not count."""
    printed = lines
    while True:
        start = _back_by_lines(tail, max(first, end - limit), end, printed)
        if start <= first:
            return first, 0
        if start <= end - limit:
            return start, start - first
        if mode == "raw" or _count(_text(*_parted(tail, max(first, start - _BACK), start, end)[1:])) >= lines:
            return start, 0
        printed = 4 * printed


def _back_by_lines(tail: Tail, first: int, end: int, lines: int) -> int:
    """The beginning of the last so many lines, looking back no further than `first`."""
    at, step, missing = end, 4096, lines
    if lines and end > first and _contiguous(tail, end - 1, end)[1] == b"\n":
        at -= 1
    while at > first and missing > 0:
        start = max(first, at - step)
        data = _contiguous(tail, start, at)[1]
        there = data.count(b"\n")
        if there >= missing:
            cut = len(data)
            for _ in range(missing):
                cut = data.rfind(b"\n", 0, cut)
            return start + cut + 1
        missing -= there
        at, step = start, min(step * 2, 1 << 20)
    return end if not lines else first


def _contiguous(tail: Tail, start: int, end: int) -> tuple[int, bytes]:
    """The bytes between two offsets up to the first gap, and where they begin: later, where some were dropped."""
    pieces: list[bytes] = []
    at = start
    while at < end:
        data, following = tail.read(at, end - at)
        begin = following - len(data)
        if not data or (pieces and begin != at):
            break
        if not pieces:
            start = begin
        pieces.append(data[: max(0, end - begin)])
        at = following
    return start, b"".join(pieces)


def _parted(tail: Tail, back: int, start: int, end: int) -> tuple[int, bytes, bytes]:
    """Where what is kept from `start` on begins, what stands before it from `back` on, and it; read in one go."""
    begin, data = _contiguous(tail, back, end)
    if begin + len(data) < start:  # a gap before it: nothing leads up to it
        begin, data = _contiguous(tail, start, end)
    cut = max(0, start - begin)
    return max(start, begin), data[:cut], data[cut:]


def _whole(data: bytes, *, more: bool, may_grow: bool) -> bytes:
    """Without what is cut off at the end, as far as its rest is to come."""
    if more:
        line = data.rfind(b"\n") + 1
        if line:
            return data[:line]
    if not more and not may_grow:
        return data
    for cut in (
        _OPEN.search(data, max(0, len(data) - _HELD)),
        _CUT_CHARACTER.search(data, max(0, len(data) - 3)),
    ):
        if cut is not None and (cut.start() or not more):
            return data[: cut.start()]
    return data


def _text(before: bytes, data: bytes) -> str:
    """Of `data`, which `before` led up to."""
    paper = Paper()
    escape = before.rfind(b"\x1b")
    if escape >= 0 and _OPEN.match(before, escape):
        paper.feed(before[escape:])  # it goes on in what is read
    return paper.feed(data) + paper.finish()


def _count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def _last(text: str, lines: int | None) -> str:
    if lines is None:
        return text
    at = len(text) - text.endswith("\n")
    for _ in range(lines):
        at = text.rfind("\n", 0, at)
        if at < 0:
            return text
    return text[at + 1 :] if lines else ""


_ALTERNATE = re.compile(rb"\x1b\[\?(?:\d+;)*(?:1049|1047|47)(?:;\d+)*([hl])")
_LONGEST = 64
"""Bytes of one such sequence: two pieces that are looked through must overlap by as much."""
_PIECE = 1024 * 1024


def near_end(tail: Tail, reach: int) -> int:
    """The start of a line, at most `reach` bytes from the end; anywhere, when no line begins there."""
    first, end = tail.first, tail.end
    start = max(first, end - reach)
    if start == 0:
        return 0
    at = start - (start > first)  # a line that begins exactly at `start` has its newline one before
    while at < end:
        data, following = tail.read(at, min(_PIECE, end - at))
        if not data:
            break
        newline = data.find(b"\n")
        if newline >= 0:
            return following - len(data) + newline + 1
        at = following
    return start


def is_alternate(tail: Tail, at: int) -> bool:
    """Whether a full-screen program had the alternate screen at this offset, as far back as output is kept.

    Reads what was printed before, so call it in a thread.
    """
    first, high = tail.first, at
    while high > first:
        low = max(first, high - _PIECE)
        *_, last = [b"", *_ALTERNATE.findall(tail.read_range(low, min(at, high + _LONGEST)))]
        if last:
            return last == b"h"
        high = low
    return False


WIDEST = 4000
"""Bytes shown of one line."""
_LEAD = 1000
"""Of these, before a match far into a long line."""
_AROUND = 64 * 1024
"""Bytes looked at for the lines before, and for those after."""


@dataclass(frozen=True, slots=True)
class Window:
    text: str
    before: tuple[str, ...]
    after: tuple[str, ...]


def window(
    read: Callable[[int, int], bytes], first: int, end: int, line: int, match: int, context: int
) -> Window:
    """Of the line that begins at `line`, in which something begins at `match`; `context` lines on each side."""
    shown = line if match - line <= WIDEST - _LEAD else match - _LEAD
    data = read(shown, min(end, shown + WIDEST))
    text = data.partition(b"\n")[0]
    before = _before(read(max(first, line - _AROUND), line), context) if context else ()
    after = _after(read(shown, min(end, shown + _AROUND)), context) if context else ()
    return Window(_show(text), before, after)


def _before(data: bytes, context: int) -> tuple[str, ...]:
    lines = data.split(b"\n")[:-1]
    return tuple(_show(line[:WIDEST]) for line in lines[-context:])


def _after(data: bytes, context: int) -> tuple[str, ...]:
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return tuple(_show(line[:WIDEST]) for line in lines[1 : 1 + context])


def _show(line: bytes) -> str:
    return line.removesuffix(b"\r").decode(errors="replace")
