"""Who typed what: the history of a terminal, made of what people type key by key and of what agents send.

Owns the one promise about it: **the history holds only what the terminal showed.** A person's line is kept with its
text only if that text then stands in the output; where the terminal hid it (keeper: echo off, line by line), it is not
even held until then. What agents send is in their calls anyway, and is one entry each. Does not know the journal.

Whatever comes is heard in a millisecond, and many lines that come in one go are one entry (entry.py): a file that is
pasted or piped in holds up nobody and fills no record. Only the oldest entry is looked for in the output, in a thread.

A terminal of an agent is a person's while they type into it, and some seconds longer: that is ended here, too.

One entry of a terminal's history in the making: a line, keys, or many lines that came in one go.
"""

from __future__ import annotations

import math
import re
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from handrail.terminal.input.keys import BACKSPACE, ENTER, Key, Keystrokes, Passed, Text, readable
from handrail.terminal.output import screen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from handrail.terminal.output.tail import Tail
    from handrail.terminal.terminal import Terminal, Typist

    Record = Callable[[Terminal, str, bool, str | None, int], None]


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


ECHO_BYTES = 64 * 1024
"""Output looked through for one entry: bounds the work, and what may be taken for an echo."""
SURE_LENGTH = 4
"""Characters below which a text may stand in any output by chance, and must begin it to be an echo."""
_SPACE = re.compile(r"\s+")


def shown(lines: Sequence[str], data: bytes) -> int:
    """How many of the lines, from the first on, the output holds that came after somebody began to type them."""
    wanted = [_SPACE.sub("", line) for line in lines]
    if not any(wanted):
        return 0
    count = _found(wanted, screen.plain(data))
    if count < len(wanted) and b"\r" in data:
        count = max(count, _found(wanted, screen.plain(data.replace(b"\r", b""))))
    return count if any(wanted[:count]) else 0


def output_after(tail: Tail, after: int) -> bytes:
    """What came after somebody began to type, across segments."""
    data, following = tail.read(after, ECHO_BYTES)
    return data + tail.read(following, ECHO_BYTES - len(data))[0] if data else b""


def _found(wanted: list[str], plain: str) -> int:
    """How many stand there one after the other; a short one only right behind the one before, or at the beginning."""
    flat, at = _SPACE.sub("", plain), 0
    for count, text in enumerate(wanted):
        begin = at if flat.startswith(text, at) else -1
        if begin < 0 and len(text) >= SURE_LENGTH:
            begin = flat.find(text, at)
        if begin < 0:
            return count
        at = begin + len(text)
    return len(wanted)


PAUSE = 1.0
"""Seconds without a key after which what was typed stands for itself."""
CROWD = 16
WAITING_MAX = 256
"""Entries not told yet that one terminal holds: of one person's typing without a pause, and of all."""
HIDDEN_APART = 10.0
"""Seconds between two entries without text by the same person: a game of keys need not fill the record."""
SOFT_SECONDS = 10.0
"""After the last key, an agent may type into its terminal again."""
RELEASED_BY = "Handrail"


@dataclass(slots=True)
class _Page:
    """One terminal's history in the making, in the order it was typed."""

    terminal: Terminal
    drafts: dict[str, Draft] = field(default_factory=dict[str, Draft])
    waiting: deque[Entry] = field(default_factory=deque[Entry])
    soft_until: float | None = None
    hid_last: tuple[str, float] = ("", 0.0)

    def draft(self, by: str) -> Draft:
        if by not in self.drafts:
            self.drafts[by] = Draft(by, self.goes_on)
        return self.drafts[by]

    def goes_on(self, entry: Entry) -> bool:
        """Whether it came in one go with the one before."""
        return bool(self.waiting) and self.waiting[-1].may_take(entry, crowded=False)

    def push(self, entry: Entry) -> None:
        if self.waiting and self.waiting[-1].may_take(entry, len(self.waiting) >= CROWD):
            self.waiting[-1].take(entry)
            return
        self.waiting.append(entry)
        if len(self.waiting) > WAITING_MAX:
            self.waiting[0].give_up()


class Typing:
    """All terminals' histories in the making. `run` tells what became of what was typed."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._pages: dict[str, _Page] = {}
        self._wakes_at = -math.inf
        self._bell = anyio.Event()

    async def run(self) -> None:
        """Tell of everything in time, until cancelled. Costs nothing while nobody types."""
        while True:
            bell, self._wakes_at = self._bell, -math.inf  # what is typed from here on is seen below
            for page in list(self._pages.values()):
                await self._attend(page)
            self._wakes_at = min(map(_due, self._pages.values()), default=math.inf)
            with anyio.move_on_after(max(0.0, self._wakes_at - time.monotonic())):
                await bell.wait()

    def hear(self, terminal: Terminal, typist: Typist, data: bytes | None, offset: int) -> None:
        """Somebody typed; no data where the terminal hid it."""
        page = self._pages.setdefault(terminal.id, _Page(terminal))
        now = time.monotonic()
        if not typist.person:
            page.push(of_agent(typist.name, offset, data or b""))
        else:
            draft = page.draft(typist.name)
            for entry in draft.hide(offset, now) if data is None else draft.feed(data, offset, now):
                page.push(entry)
            if terminal.taken is not None and not terminal.taken.holds:
                page.soft_until = now + SOFT_SECONDS
        self._tell_settled(page, now)
        if _due(page) < self._wakes_at:
            self.ring()

    def ring(self) -> None:
        """Something may be due earlier than thought: somebody typed, a terminal ended."""
        self._bell.set()
        self._bell = anyio.Event()

    async def _attend(self, page: _Page) -> None:
        """Tell of what is due, but look for no more than one echo: every terminal has its turn."""
        now, has_ended = time.monotonic(), page.terminal.exit is not None
        for draft in page.drafts.values():
            if not draft.is_empty and (has_ended or draft.at + PAUSE <= now):
                for entry in draft.close(now):
                    page.push(entry)
        self._tell_settled(page, now)
        if page.waiting and page.waiting[0].due[0] <= now:
            await _look(page.waiting[0], page.terminal.tail, now)
            self._tell_settled(page, now)
        _soften(page, now)
        if has_ended and _due(page) == math.inf:
            del self._pages[page.terminal.id]

    def _tell_settled(self, page: _Page, now: float) -> None:
        while page.waiting and page.waiting[0].is_settled:
            self._tell(page, page.waiting.popleft(), now)

    def _tell(self, page: _Page, entry: Entry, now: float) -> None:
        by, at = page.hid_last
        if entry.said is None:
            if by == entry.by and now - at < HIDDEN_APART:
                return
            page.hid_last = (entry.by, now)
        else:
            page.hid_last = ("", 0.0)
        self._record(page.terminal, entry.by, entry.person, entry.said, entry.offset)


async def _look(entry: Entry, tail: Tail, now: float) -> None:
    """Look for its echo, in a thread: a screen that was drawn over and over takes long to read."""
    lines, offset = tuple(entry.lines), entry.offset
    found = await anyio.to_thread.run_sync(lambda: shown(lines, output_after(tail, offset))) if lines else 0
    if not entry.is_settled:  # somebody may have given it up meanwhile
        entry.judge(found, now)


def _soften(page: _Page, now: float) -> None:
    taken = page.terminal.taken
    if taken is None or taken.holds:
        page.soft_until = None
    elif page.soft_until is not None and page.soft_until <= now:
        page.soft_until = None
        page.terminal.release(RELEASED_BY)


def _due(page: _Page) -> float:
    """When to come again."""
    times = [draft.at + PAUSE for draft in page.drafts.values() if not draft.is_empty]
    times += [page.waiting[0].due[0]] if page.waiting else []
    times += [page.soft_until] if page.soft_until is not None else []
    return min(times, default=math.inf)
