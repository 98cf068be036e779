"""Which bytes of a tail show its screen: the last stretch, and what must come before it.

Owns the choice. It does not know the emulator; the bytes it gives end where the tail ended when it was asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from handrail.terminal.output.before import LONGEST, Before

if TYPE_CHECKING:
    from handrail.terminal.output.tail import Tail

ENOUGH = 1 << 20
"""Bytes at the end that surely show every row of an ordinary screen anew: a thousand lines of a thousand cells."""
FULL_SCREEN = 16 << 20
"""As many are fed of a full-screen program, which may have drawn something long ago that still stands."""
_UNDER = 64 * 1024
"""Bytes before a full-screen program began: what it will uncover when it ends."""
_STEP = 1 << 18


def feeding(tail: Tail, cols: int, rows: int, end: int) -> Iterator[bytes]:
    """Bytes for an emulator of this size that has seen nothing yet."""
    first = tail.first
    start = _line_start(tail, max(first, end - max(ENOUGH, 4 * cols * rows)), first)
    if start == first:
        yield from stretch(tail, first, end)
        return
    before = Before()
    _look(tail, first, start, before)
    since = before.alternate_since
    if since is None or before.under is None:
        yield before.again(rows)
        yield from stretch(tail, start, end)
        return
    begin = _line_start(tail, max(first, since - _UNDER), first)
    if begin:
        yield before.under.again(rows)
    if end - since <= FULL_SCREEN:
        yield from stretch(tail, begin, end)
    else:
        yield from stretch(tail, begin, since)
        yield b"\x1b[?1049h" + before.again(rows)
        yield from stretch(tail, start, end)


def stretch(tail: Tail, start: int, end: int) -> Iterator[bytes]:
    """The bytes between two offsets, as far as they are kept."""
    while start < end:
        data, following = tail.read(start, min(_STEP, end - start))
        if not data:
            return
        yield data[: max(0, end - (following - len(data)))]
        start = following


def _look(tail: Tail, start: int, end: int, before: Before) -> None:
    rest = b""
    for data in stretch(tail, start, end):
        before.take(rest + data, start - len(rest))
        start += len(data)
        cut = data.rfind(b"\x1b", max(0, len(data) - LONGEST))
        rest = data[cut:] if cut >= 0 else b""  # a sequence may be cut off; to read one twice does no harm


def _line_start(tail: Tail, at: int, first: int) -> int:
    """The first line that begins at or after `at`, unless it is far."""
    if at <= first:
        return first
    data, following = tail.read(at - 1, _STEP)
    found = data.find(b"\n")
    return following - len(data) + found + 1 if found >= 0 else at
