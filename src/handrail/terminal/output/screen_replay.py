"""Which bytes of a tail show its screen: the last stretch, and what must come before it.

Owns the choice. It does not know the emulator; the bytes it gives end where the tail ended when it was asked.

What earlier output has set and later output relies on: modes, the scroll region, the title.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handrail.terminal.output.tail import Tail


KEPT = (1, 6, 7, 25, 66, 1000, 1002, 1003, 1004, 1006, 2004)
"""Private modes that matter to what is shown or typed: cursor keys, origin, wrapping, pasting …"""
ALTERNATE = frozenset((47, 1047, 1049))
LONGEST = 512
"""Bytes of the longest sequence looked for."""
_SETTING = re.compile(
    rb"\x1b(?:\[(?:\?([0-9;]{1,64})([hl])|([0-9]{0,5};[0-9]{0,5}|)r|(!p))|(c)|\]([02]);([^\x07\x1b]{0,400})[\x07\x1b])"
)


@dataclass(slots=True)
class Before:
    """The state after a stretch of output, as far as it was set in it."""

    modes: dict[int, bool] = field(default_factory=dict[int, bool])
    region: bytes = b""
    title: bytes = b""
    alternate_since: int | None = None
    """Where the sequence stands that turned the alternate screen on; None when it is off."""
    under: Before | None = None
    """The state when it was turned on."""

    def take(self, data: bytes, offset: int) -> None:
        """Read a stretch that begins at `offset`."""
        for found in _SETTING.finditer(data):
            modes, turn, region, soft, hard, _, title = found.groups()
            if modes is not None:
                self._set(modes, turn == b"h", offset + found.start())
            elif region is not None:
                self.region = region
            elif title is not None:
                self.title = title
            elif hard is not None:
                self.modes, self.region, self.alternate_since = {}, b"", None
            elif soft is not None:
                self.modes, self.region = {}, b""

    def again(self, rows: int) -> bytes:
        """Bytes that set the same on a screen of so many rows, but for the alternate screen.

        The cursor goes to the last line that scrolls, where a program that has printed much writes on.
        """
        modes = b"".join(
            b"\x1b[?%d%b" % (mode, b"h" if on else b"l") for mode, on in sorted(self.modes.items())
        )
        region = b"\x1b[%br" % self.region if self.region else b""
        title = b"\x1b]2;%b\x07" % self.title if self.title else b""
        bottom = self.region.partition(b";")[2] or b"%d" % rows
        return modes + region + title + b"\x1b[%b;1H" % bottom

    def _set(self, modes: bytes, on: bool, offset: int) -> None:
        for mode in (int(number) for number in modes.split(b";") if number and len(number) < 6):
            if mode in ALTERNATE:
                if not on:
                    self.alternate_since = None
                elif self.alternate_since is None:
                    self.alternate_since = offset
                    self.under = Before(dict(self.modes), self.region, self.title)
            elif mode in KEPT:
                self.modes[mode] = on


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
