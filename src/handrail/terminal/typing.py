"""Who typed what: the history of a terminal, made of what people type key by key and of what agents send.

Owns the one promise about it: **the history holds only what the terminal showed.** A person's line is kept with its
text only if that text then stands in the output; where the terminal hid it (keeper: echo off, line by line), it is not
even held until then. What agents send is in their calls anyway, and is one entry each. Does not know the journal.

Whatever comes is heard in a millisecond, and many lines that come in one go are one entry (entry.py): a file that is
pasted or piped in holds up nobody and fills no record. Only the oldest entry is looked for in the output, in a thread.

A terminal of an agent is a person's while they type into it, and some seconds longer: that is ended here, too.
"""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from handrail.terminal.echo import output_after, shown
from handrail.terminal.entry import TEXT_MAX, Entry, of_agent, of_keys, of_lines
from handrail.terminal.keystrokes import BACKSPACE, ENTER, Keystrokes, Passed, Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from handrail.terminal.tail import Tail
    from handrail.terminal.terminal import Terminal, Typist

    Record = Callable[[Terminal, str, bool, str | None, int], None]

PAUSE = 1.0
"""Seconds without a key after which what was typed stands for itself."""
KEYS_MAX = 64
CROWD = 16
WAITING_MAX = 256
"""What one terminal may hold in memory: keys of an entry; entries not told yet, of one person's typing and of all."""
HIDDEN_APART = 10.0
"""Seconds between two entries without text by the same person: a game of keys need not fill the record."""
SOFT_SECONDS = 10.0
"""After the last key, an agent may type into its terminal again."""
RELEASED_BY = "Handrail"


@dataclass(slots=True)
class _Draft:
    """What one person is typing. Only one of the three holds anything: text, or keys, or that it was hidden."""

    by: str
    strokes: Keystrokes = field(default_factory=Keystrokes)
    offset: int = 0
    text: str = ""
    keys: list[str] = field(default_factory=list[str])
    more: int = 0
    """Lines of the text, or keys, for which there was no room."""
    hidden: bool = False
    at: float = 0.0

    @property
    def is_empty(self) -> bool:
        return not (self.text or self.keys or self.hidden)


@dataclass(slots=True)
class _Page:
    """One terminal's history in the making, in the order it was typed."""

    terminal: Terminal
    drafts: dict[str, _Draft] = field(default_factory=dict[str, _Draft])
    waiting: deque[Entry] = field(default_factory=deque[Entry])
    soft_until: float | None = None
    hid_last: tuple[str, float] = ("", 0.0)


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
            self._wakes_at = -math.inf  # what is heard from here on is seen below
            for page in list(self._pages.values()):
                await self._attend(page)
            self._wakes_at = min(map(_due, self._pages.values()), default=math.inf)
            with anyio.move_on_after(max(0.0, self._wakes_at - time.monotonic())):
                await self._bell.wait()

    def hear(self, terminal: Terminal, typist: Typist, data: bytes | None, offset: int) -> None:
        """Somebody typed; no data where the terminal hid it."""
        page = self._pages.setdefault(terminal.id, _Page(terminal))
        now = time.monotonic()
        if not typist.person:
            self._push(page, of_agent(typist.name, offset, data or b""))
        else:
            draft = page.drafts.setdefault(typist.name, _Draft(typist.name))
            if data is None:
                self._hidden(page, draft, offset, now)
            else:
                self._typed(page, draft, data, offset, now)
            draft.at = now
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
                self._close(page, draft, now)
        self._tell_settled(page, now)
        if page.waiting and page.waiting[0].due[0] <= now:
            await _look(page.waiting[0], page.terminal.tail, now)
            self._tell_settled(page, now)
        _soften(page, now)
        if has_ended and _due(page) == math.inf:
            del self._pages[page.terminal.id]

    def _hidden(self, page: _Page, draft: _Draft, offset: int, now: float) -> None:
        if not draft.hidden:
            self._close(page, draft, now)
            draft.hidden, draft.offset = True, offset
        draft.strokes = Keystrokes()  # nothing of it may wait here for its rest

    def _typed(self, page: _Page, draft: _Draft, data: bytes, offset: int, now: float) -> None:
        for found in draft.strokes.feed(data):
            if draft.hidden:
                self._close(page, draft, now)
            if draft.is_empty:
                draft.offset = offset
            if isinstance(found, Passed):
                self._passed(page, draft, found, offset, now)
            elif isinstance(found, Text):
                self._text(page, draft, found.text, offset, now)
            elif found.name == BACKSPACE and draft.text:
                draft.text = draft.text[:-1]
            elif found.name == ENTER and (draft.text or (draft.is_empty and _goes_on(page, draft, now))):
                self._close_line(page, draft, now)
            else:
                self._key(page, draft, found.name, offset, now)

    def _passed(self, page: _Page, draft: _Draft, passed: Passed, offset: int, now: float) -> None:
        """So much came at once that the rest is only counted."""
        if draft.keys and not passed.lines:
            draft.more += passed.size
            return
        more = (
            passed.lines - 1 if draft.text else max(1, passed.lines)
        )  # the first end is that of the line begun
        self._close(page, draft, now, ended=True)
        if more > 0:
            self._push(page, of_lines(draft.by, offset, None, more, now, ended=True))

    def _text(self, page: _Page, draft: _Draft, text: str, offset: int, now: float) -> None:
        if draft.keys:
            self._close(page, draft, now)
            draft.offset = offset
        room = TEXT_MAX - len(draft.text)
        draft.text += text[:room]
        draft.more += text.count("\n", room)

    def _key(self, page: _Page, draft: _Draft, name: str, offset: int, now: float) -> None:
        if draft.text:
            self._close(page, draft, now)
            draft.offset = offset
        if len(draft.keys) < KEYS_MAX:
            draft.keys.append(name)
        else:
            draft.more += 1

    def _close_line(self, page: _Page, draft: _Draft, now: float) -> None:
        """A line was ended; an empty one only counts where it stands among others."""
        self._push(page, of_lines(draft.by, draft.offset, draft.text, draft.more, now, ended=True))
        draft.text, draft.more = "", 0

    def _close(self, page: _Page, draft: _Draft, now: float, *, ended: bool = False) -> None:
        """What was typed so far is an entry."""
        if draft.text:
            self._push(page, of_lines(draft.by, draft.offset, draft.text, draft.more, now, ended=ended))
        elif draft.keys:
            self._push(page, of_keys(draft.by, draft.offset, draft.keys, draft.more, now))
        elif draft.hidden:
            self._push(page, Entry(by=draft.by, person=True, offset=draft.offset, begun=now, last=now))
        draft.text, draft.keys, draft.more, draft.hidden = "", [], 0, False

    def _push(self, page: _Page, entry: Entry) -> None:
        last = page.waiting[-1] if page.waiting else None
        if last is not None and last.may_take(entry, len(page.waiting) >= CROWD):
            last.take(entry)
            return
        page.waiting.append(entry)
        if len(page.waiting) > WAITING_MAX:
            page.waiting[0].give_up()

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


def _goes_on(page: _Page, draft: _Draft, now: float) -> bool:
    """Whether an empty line stands among others that come in one go."""
    last = page.waiting[-1] if page.waiting else None
    return last is not None and last.may_take(of_lines(draft.by, 0, "", 0, now, ended=True), crowded=False)


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
