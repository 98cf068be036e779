"""What one person is typing into a terminal, until it is an entry of its history.

Owns where an entry ends: at Enter, where keys follow text or text follows keys, and where its typist pauses, which
others notice. It holds nothing of what a terminal hides, and knows neither the terminal nor what becomes of an entry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from handrail.terminal.typing.entry import TEXT_MAX, Entry, of_keys, of_lines
from handrail.terminal.typing.keystrokes import BACKSPACE, ENTER, Key, Keystrokes, Passed, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEYS_MAX = 64
"""Keys of one entry; more are counted."""


@dataclass(slots=True)
class Draft:
    """One person's. Only one of the three holds anything: text, or keys, or that it was hidden."""

    by: str
    goes_on: Callable[[Entry], bool]
    """Whether an entry would belong to the one before: an empty line only counts among others."""
    strokes: Keystrokes = field(default_factory=Keystrokes)
    offset: int = 0
    text: str = ""
    keys: list[str] = field(default_factory=list[str])
    more: int = 0
    """Lines of the text, or keys, for which there was no room."""
    hidden: bool = False
    at: float = 0.0
    """When the last key came."""

    @property
    def is_empty(self) -> bool:
        return not (self.text or self.keys or self.hidden)

    def hide(self, offset: int, now: float) -> Iterator[Entry]:
        """Something was typed that the terminal hid."""
        self.at = now
        if not self.hidden:
            yield from self.close(now)
            self.hidden, self.offset = True, offset
        self.strokes = Keystrokes()  # nothing of it may wait here for its rest

    def feed(self, data: bytes, offset: int, now: float) -> Iterator[Entry]:
        """Something was typed; the entries that are whole now."""
        self.at = now
        for found in self.strokes.feed(data):
            if self._ends_with(found):
                yield from self.close(now)
            if self.is_empty:
                self.offset = offset
            if isinstance(found, Passed):
                yield from self._pass(found, offset, now)
            elif isinstance(found, Text):
                self._add(found.text)
            elif found.name == BACKSPACE and self.text:
                self.text = self.text[:-1]
            elif found.name == ENTER and self._is_line(now):
                yield self._line(now, ended=True)
            else:
                self._press(found.name)

    def close(self, now: float) -> Iterator[Entry]:
        """What was typed so far is an entry."""
        if self.text:
            yield self._line(now, ended=False)
        elif self.keys:
            keys, more, self.keys, self.more = self.keys, self.more, [], 0
            yield of_keys(self.by, self.offset, keys, more, now)
        elif self.hidden:
            self.hidden = False
            yield Entry(by=self.by, person=True, offset=self.offset, begun=now, last=now)

    def _ends_with(self, found: Text | Key | Passed) -> bool:
        """Whether what was typed before is an entry of its own."""
        if isinstance(found, Key):
            return self.hidden or (bool(self.text) and found.name not in (BACKSPACE, ENTER))
        return self.hidden or (isinstance(found, Text) and bool(self.keys))

    def _pass(self, passed: Passed, offset: int, now: float) -> Iterator[Entry]:
        """So much came at once that the rest is only counted."""
        if self.keys and not passed.lines:
            self.more += passed.size
            return
        more = max(1, passed.lines)
        if self.text:
            more = passed.lines - 1  # the first end is that of the line begun
            yield self._line(now, ended=True)
        yield from self.close(now)
        if more > 0:
            yield of_lines(self.by, offset, None, more, now, ended=True)

    def _is_line(self, now: float) -> bool:
        empty = of_lines(self.by, self.offset, "", 0, now, ended=True)
        return bool(self.text) or (self.is_empty and self.goes_on(empty))

    def _line(self, now: float, *, ended: bool) -> Entry:
        text, more, self.text, self.more = self.text, self.more, "", 0
        return of_lines(self.by, self.offset, text, more, now, ended=ended)

    def _add(self, text: str) -> None:
        room = TEXT_MAX - len(self.text)
        self.text += text[:room]
        self.more += text.count("\n", room)

    def _press(self, name: str) -> None:
        if len(self.keys) < KEYS_MAX:
            self.keys.append(name)
        else:
            self.more += 1
