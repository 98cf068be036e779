"""One entry of a terminal's history in the making: a line, keys, or many lines that came in one go.

Owns what an entry holds until it is told, which of the next it takes in, and how it reads in the end. It looks for no
echo (echo.py) and knows no terminal. However much is typed, an entry stays small: what is beyond is counted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import groupby

from handrail.terminal.typing.keystrokes import readable

JOIN = 0.25
"""Seconds between the ends of two lines below which nobody typed both by hand: they are one entry."""
BURST_SECONDS = 10.0
"""After which a stream of lines without a pause is told of, and the next entry begins."""
ECHO_AFTER = (JOIN, 0.4, 1.0, 2.5)
"""Seconds after an entry's end at which it is looked for in the output; not found by the last, it was hidden."""
LINES_MAX = 20
TEXT_MAX = 4000
"""Lines and characters that one entry holds."""


@dataclass(slots=True, kw_only=True)
class Entry:
    """Settled from the beginning, or lines to be looked for in the output when they are `due`."""

    by: str
    person: bool
    offset: int
    said: str | None = None
    """What is told of it, once it is settled; None when the terminal did not show it."""
    lines: list[str] = field(default_factory=list[str])
    more: int = 0
    """Lines beyond those it holds; pieces, where keys are among them."""
    due: deque[float] = field(default_factory=deque[float])
    begun: float = 0.0
    last: float = 0.0
    is_open: bool = False
    """Its last line was ended: what follows at once may belong to it."""
    takes_all: bool = False
    """So much came that all of it goes in here, keys too, until there is a pause."""

    @property
    def is_settled(self) -> bool:
        return not self.due

    def may_take(self, other: Entry, crowded: bool) -> bool:
        """Whether what was just typed came in one go with this."""
        if not (self.person and other.person and self.by == other.by):
            return False
        if other.last - self.last > JOIN or other.last - self.begun > BURST_SECONDS:
            return False
        return self.takes_all or crowded or (self.is_open and not (other.is_settled or self.is_settled))

    def take(self, other: Entry) -> None:
        """Hold what there is room for, and count the rest."""
        self.takes_all |= other.is_settled or self.is_settled
        for line in other.lines:
            if self.more or self.takes_all or not self._has_room(line):
                self.more += 1
            else:
                self.lines.append(line)
        self.more += other.more or (not other.lines)
        self.last, self.is_open = other.last, other.is_open
        self.wait(other.last)

    def wait(self, now: float) -> None:
        """Look for its lines later than anything that may still join it."""
        self.due = deque(now + after for after in ECHO_AFTER)

    def judge(self, shown: int, now: float) -> None:
        """So many of its lines are shown by now. With all of them it is settled; when it is too late, with these."""
        while self.due and self.due[0] <= now:
            self.due.popleft()
        if shown == len(self.lines) or not self.due:
            self.due.clear()
            text = "\n".join(self.lines[:shown]) if self.lines else self.said
            self.more += len(self.lines) - shown
            self.said = with_more(text, self.more, "piece" if self.takes_all else "line") if text else None
            self.lines = []

    def give_up(self) -> None:
        """Nothing is known of it but that it was typed."""
        self.said, self.lines = None, []
        self.due.clear()

    def _has_room(self, line: str) -> bool:
        return len(self.lines) < LINES_MAX and sum(map(len, self.lines)) + len(line) <= TEXT_MAX


def of_lines(by: str, offset: int, text: str | None, more: int, now: float, *, ended: bool) -> Entry:
    """What a person typed, to be told if the terminal shows it; without a text, only that there were more lines."""
    lines = [] if text is None else text.split("\n")
    entry = Entry(by=by, person=True, offset=offset, begun=now, last=now, is_open=ended)
    entry.lines, entry.more = lines[:LINES_MAX], more + len(lines[LINES_MAX:])
    entry.wait(now)
    return entry


def of_keys(by: str, offset: int, names: list[str], more: int, now: float) -> Entry:
    """Keys in order; one that was held down says how often."""
    runs = [(name, len(list(same))) for name, same in groupby(names)]
    text = " ".join(name if times == 1 else f"{name} x{times}" for name, times in runs)
    said = with_more(text, more, "key", " ")
    return Entry(by=by, person=True, offset=offset, said=said, begun=now, last=now)


def of_agent(by: str, offset: int, data: bytes) -> Entry:
    """All that an agent sent at once."""
    text, more = readable(data)
    more += text[TEXT_MAX:].count("\n")
    return Entry(by=by, person=False, offset=offset, said=with_more(text[:TEXT_MAX], more, "line"))


def with_more(text: str, more: int, what: str, between: str = "\n") -> str:
    """A text that says how much follows of which it shows nothing."""
    return f"{text}{between}… and {more:,} more {what}{'s' * (more != 1)}" if more else text
