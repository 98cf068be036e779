"""What earlier output has set and later output relies on: modes, the scroll region, the title.

Owns finding these in a stretch of output that the emulator is not fed, and saying them again in few bytes. It does
not know screens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

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
