"""Read pages of a tail: from a cursor, the last lines, or the last chunks, as text or raw bytes.

`find_line_near_end` and `is_alternate_screen` choose the start for a viewer that cannot load all output. `window` cuts
out a line with its context. plain_text interprets escape sequences; tail reads the segments.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from handrail.lazy_dataclass import dataclass
from handrail.terminal.output.plain_text import PlainTextStream
from handrail.terminal.output.tail import Tail

if TYPE_CHECKING:
    from handrail.terminal.output.tail import KeptRange


Mode = Literal["text", "raw"]
LIMIT = 256 * 1024
"""Default bound for the bytes of one reading."""
_HELD = 4096
"""Longest unfinished sequence that is left for the next reading."""
_BACK = 64 * 1024
"""Bytes before a reading that are searched for the start of a string sequence (title, image) that continues in it."""
_OPEN = re.compile(rb"\x1b(?:\[[0-?]{0,256}[ -/]{0,8}|[ -/]{0,8}|[\]PX^_][^\x07\x18\x1a\x1b]*\x1b?)\Z")
_CUT_CHARACTER = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPage:
    """One page of a tail."""

    data: str | bytes
    """str in mode text, bytes in mode raw."""
    start: int
    """The offset of the first byte of `data`."""
    next: int
    """The cursor for the next reading: pass it as `after`.

    In raw mode, consecutive readings return every byte once. In text mode, a sequence or character cut off at the end
    is left for the next reading. An unfinished last line is returned in its current state; later output over it comes
    with the next reading. A reading that reached its limit ends at a line end.
    """
    end: int
    """The end offset of the tail at the time of the reading; `next < end` means that there is more."""
    first: int
    """The oldest offset still kept."""
    lines_dropped: int
    """Number of lines before `first`, which are no longer kept."""
    left_out: int
    """Requested bytes before `start` that are missing: dropped, or, for last lines and chunks, beyond the limit.

    For last lines beyond the limit it counts all kept bytes before `start`.
    """


def read_page(
    tail: Tail,
    *,
    after: int | None = None,
    chunks: int | None = None,
    lines: int | None = None,
    mode: Mode = "text",
    limit: int = LIMIT,
    extent: KeptRange | None = None,
) -> OutputPage:
    """Read from the cursor `after`, or the last `chunks`, or the last `lines`; by default from the oldest byte kept.

    `extent` is the tail's kept range, if the caller already has it.
    """
    extent = extent or tail.kept_range
    first, end = extent.first, extent.end
    limit = max(1, limit)
    if lines is not None:
        start, left_out = _find_last_lines(tail, first, end, max(0, lines), mode, limit)
    elif chunks is not None:
        requested = tail.chunks(max(0, chunks))
        start = max(requested, first, end - limit)
        left_out = start - requested
    else:
        requested = first if after is None else min(max(0, after), end)
        start = max(requested, first)
        left_out = start - requested
    back = max(first, start - _BACK) if mode == "text" else start
    start, before, data = _read_with_context(tail, back, start, min(end, start + limit))
    if mode == "text":
        data = _cut_unfinished(data, more=start + len(data) < end, may_grow=not tail.closed)
    text = data if mode == "raw" else _take_last_lines(_convert_to_text(before, data), lines)
    return OutputPage(
        data=text,
        start=start,
        next=start + len(data),
        end=end,
        first=first,
        lines_dropped=extent.lines_dropped,
        left_out=left_out,
    )


def _find_last_lines(tail: Tail, first: int, end: int, lines: int, mode: Mode, limit: int) -> tuple[int, int]:
    """The start of the last lines, and the bytes left out. In text mode, overwritten lines do not count."""
    printed = lines
    while True:
        start = _back_by_lines(tail, max(first, end - limit), end, printed)
        if start <= first:
            return first, 0
        if start <= end - limit:
            return start, start - first
        if (
            mode == "raw"
            or _count_lines(
                _convert_to_text(*_read_with_context(tail, max(first, start - _BACK), start, end)[1:])
            )
            >= lines
        ):
            return start, 0
        printed = 4 * printed


def _back_by_lines(tail: Tail, first: int, end: int, lines: int) -> int:
    """The start of the last `lines` lines, searched backwards down to `first`."""
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
    """The bytes between two offsets up to the first gap, and their start, which is later if some were dropped."""
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


def _read_with_context(tail: Tail, back: int, start: int, end: int) -> tuple[int, bytes, bytes]:
    """The actual start, the bytes from `back` to it, and the bytes from it to `end`; in one read."""
    begin, data = _contiguous(tail, back, end)
    if begin + len(data) < start:  # a gap before `start`: there is no context
        begin, data = _contiguous(tail, start, end)
    cut = max(0, start - begin)
    return max(start, begin), data[:cut], data[cut:]


def _cut_unfinished(data: bytes, *, more: bool, may_grow: bool) -> bytes:
    """Cut an unfinished line, sequence or character off the end, if its rest is still to come."""
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


def _convert_to_text(before: bytes, data: bytes) -> str:
    """The text of `data`; a sequence that is open at the end of `before` continues in it."""
    stream = PlainTextStream()
    escape = before.rfind(b"\x1b")
    if escape >= 0 and _OPEN.match(before, escape):
        stream.feed(before[escape:])
    return stream.feed(data) + stream.finish()


def _count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def _take_last_lines(text: str, lines: int | None) -> str:
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
"""Bytes of one such sequence: consecutive search ranges must overlap by this much."""
_PIECE = 1024 * 1024


def find_line_near_end(tail: Tail, reach: int) -> int:
    """The start of a line at most `reach` bytes from the end; exactly `reach` bytes, if no line starts there."""
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


def is_alternate_screen(tail: Tail, at: int) -> bool:
    """Whether the alternate screen was on at this offset, as far as the kept output shows.

    Reads the earlier output, so call it in a thread.
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
"""Upper bound for the bytes of one line."""
_LEAD = 1000
"""Bytes of them before a match, in a long line."""
_AROUND = 64 * 1024
"""Bytes read for the context lines before, and for those after."""


@dataclass(frozen=True, slots=True)
class Window:
    text: str
    before: tuple[str, ...]
    after: tuple[str, ...]


def window(
    read: Callable[[int, int], bytes], first: int, end: int, line: int, match: int, context: int
) -> Window:
    """The line at offset `line`, with a match at offset `match`, and `context` lines on each side."""
    shown = line if match - line <= WIDEST - _LEAD else match - _LEAD
    data = read(shown, min(end, shown + WIDEST))
    text = data.partition(b"\n")[0]
    before = _lines_before(read(max(first, line - _AROUND), line), context) if context else ()
    after = _lines_after(read(shown, min(end, shown + _AROUND)), context) if context else ()
    return Window(_decode_line(text), before, after)


def _lines_before(data: bytes, context: int) -> tuple[str, ...]:
    lines = data.split(b"\n")[:-1]
    return tuple(_decode_line(line[:WIDEST]) for line in lines[-context:])


def _lines_after(data: bytes, context: int) -> tuple[str, ...]:
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return tuple(_decode_line(line[:WIDEST]) for line in lines[1 : 1 + context])


def _decode_line(line: bytes) -> str:
    return line.removesuffix(b"\r").decode(errors="replace")
