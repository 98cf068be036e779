"""Who typed what: the history of a terminal, made of what people type key by key and of what agents send.

Owns the one promise about it: **the history holds only what the terminal showed.** A person's line is kept with its
text only if that text then stands in the output; where the terminal hid it (keeper: echo off, line by line), it is not
even held until then. What agents send is in their calls anyway, and is one entry each. Does not know the journal.

A terminal of an agent is a person's while they type into it, and some seconds longer: that is ended here, too.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

import anyio

from handrail.terminal.echo import output_after, shown
from handrail.terminal.keystrokes import BACKSPACE, ENTER, Keystrokes, Text, readable

if TYPE_CHECKING:
    from collections.abc import Callable

    from handrail.terminal.tail import Tail
    from handrail.terminal.terminal import Terminal, Typist

    Record = Callable[[Terminal, str, bool, str | None, int], None]

PAUSE = 1.0
"""Seconds without a key after which what was typed stands for itself."""
ECHO_AFTER = (0.03, 0.15, 0.4, 1.0, 2.5)
"""Seconds after a line's end at which it is looked for in the output; not found by the last, it was hidden."""
TEXT_MAX = 4000
KEYS_MAX = 64
WAITING_MAX = 256
"""What one terminal may hold in memory: characters of a line, keys of an entry, entries not told yet."""
HIDDEN_APART = 10.0
"""Seconds between two entries without text by the same person: a game of keys need not fill the record."""
SOFT_SECONDS = 10.0
"""After the last key, an agent may type into its terminal again."""
RELEASED_BY = "Handrail"


@dataclass(slots=True)
class _Entry:
    """A line or keys, on their way into the record; `due` is when to look for the echo next."""

    by: str
    person: bool
    text: str | None
    offset: int
    due: deque[float] = field(default_factory=deque[float])

    @property
    def is_settled(self) -> bool:
        return not self.due


@dataclass(slots=True)
class _Draft:
    """What one person is typing. Only one of the three holds anything: text, or keys, or that it was hidden."""

    by: str
    strokes: Keystrokes = field(default_factory=Keystrokes)
    offset: int = 0
    text: str = ""
    keys: list[str] = field(default_factory=list[str])
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
    waiting: deque[_Entry] = field(default_factory=deque[_Entry])
    soft_until: float | None = None
    hid_last: tuple[str, float] = ("", 0.0)


class Typing:
    """All terminals' histories in the making. `run` tells what became of what was typed."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._pages: dict[str, _Page] = {}
        self._bell = anyio.Event()

    async def run(self) -> None:
        """Tell of everything in time, until cancelled. Costs nothing while nobody types."""
        while True:
            bell = self._bell
            due = self.settle(time.monotonic())
            with anyio.move_on_after(None if due is None else max(0.0, due - time.monotonic())):
                await bell.wait()

    def hear(self, terminal: Terminal, typist: Typist, data: bytes | None, offset: int) -> None:
        """Somebody typed; no data where the terminal hid it."""
        page = self._pages.setdefault(terminal.id, _Page(terminal))
        now = time.monotonic()
        if not typist.person:
            self._push(page, _Entry(typist.name, False, readable(data or b"")[:TEXT_MAX], offset))
        else:
            draft = page.drafts.setdefault(typist.name, _Draft(typist.name))
            if data is None:
                self._hidden(page, draft, offset)
            else:
                self._typed(page, draft, data, offset)
            draft.at = now
        if terminal.taken is not None and not terminal.taken.holds and typist.person:
            page.soft_until = now + SOFT_SECONDS
        self._settle(page, now)
        self.ring()

    def ring(self) -> None:
        """Something may be due earlier than thought: somebody typed, a terminal ended."""
        self._bell.set()
        self._bell = anyio.Event()

    def settle(self, now: float) -> float | None:
        """Tell of all that is due; when to come again."""
        due = [at for page in list(self._pages.values()) if (at := self._settle(page, now)) is not None]
        return min(due, default=None)

    def _settle(self, page: _Page, now: float) -> float | None:
        terminal = page.terminal
        for draft in page.drafts.values():
            if not draft.is_empty and (draft.at + PAUSE <= now or terminal.exit is not None):
                self._close(page, draft, now)
        for entry in page.waiting:
            _look(entry, terminal.tail, now)
        while page.waiting and page.waiting[0].is_settled:
            self._tell(page, page.waiting.popleft(), now)
        self._soften(page, now)
        times = [entry.due[0] for entry in page.waiting if entry.due]
        times += [draft.at + PAUSE for draft in page.drafts.values() if not draft.is_empty]
        times += [page.soft_until] if page.soft_until is not None else []
        if not times and terminal.exit is not None:
            del self._pages[terminal.id]
        return min(times, default=None)

    def _soften(self, page: _Page, now: float) -> None:
        taken = page.terminal.taken
        if taken is None or taken.holds:
            page.soft_until = None
        elif page.soft_until is not None and page.soft_until <= now:
            page.soft_until = None
            page.terminal.release(RELEASED_BY)

    def _hidden(self, page: _Page, draft: _Draft, offset: int) -> None:
        if not draft.hidden:
            self._close(page, draft, time.monotonic())
            draft.hidden, draft.offset = True, offset
        draft.strokes = Keystrokes()  # nothing of it may wait here for its rest

    def _typed(self, page: _Page, draft: _Draft, data: bytes, offset: int) -> None:
        now = time.monotonic()
        for found in draft.strokes.feed(data):
            if draft.hidden:
                self._close(page, draft, now)
            if draft.is_empty:
                draft.offset = offset
            if isinstance(found, Text):
                self._text(page, draft, found.text, offset)
            elif found.name == BACKSPACE and draft.text:
                draft.text = draft.text[:-1]
            elif found.name == ENTER and draft.text:
                self._close(page, draft, now)
            else:
                self._key(page, draft, found.name, offset)

    def _text(self, page: _Page, draft: _Draft, text: str, offset: int) -> None:
        if draft.keys:
            self._close(page, draft, time.monotonic())
            draft.offset = offset
        draft.text = (draft.text + text)[:TEXT_MAX]

    def _key(self, page: _Page, draft: _Draft, name: str, offset: int) -> None:
        if draft.text or len(draft.keys) >= KEYS_MAX:
            self._close(page, draft, time.monotonic())
            draft.offset = offset
        draft.keys.append(name)

    def _close(self, page: _Page, draft: _Draft, now: float) -> None:
        """What was typed so far is an entry."""
        if draft.text:
            due = deque(now + after for after in ECHO_AFTER)
            self._push(page, _Entry(draft.by, True, draft.text, draft.offset, due))
        elif draft.keys:
            self._push(page, _Entry(draft.by, True, _keys(draft.keys), draft.offset))
        elif draft.hidden:
            self._push(page, _Entry(draft.by, True, None, draft.offset))
        draft.text, draft.keys, draft.hidden = "", [], False

    def _push(self, page: _Page, entry: _Entry) -> None:
        page.waiting.append(entry)
        if len(page.waiting) > WAITING_MAX:
            oldest = page.waiting[0]
            if not oldest.is_settled:
                oldest.text, oldest.due = None, deque()

    def _tell(self, page: _Page, entry: _Entry, now: float) -> None:
        by, at = page.hid_last
        if entry.text is None:
            if by == entry.by and now - at < HIDDEN_APART:
                return
            page.hid_last = (entry.by, now)
        else:
            page.hid_last = ("", 0.0)
        self._record(page.terminal, entry.by, entry.person, entry.text, entry.offset)


def _look(entry: _Entry, tail: Tail, now: float) -> None:
    """Look for the echo, if it is time to."""
    if not entry.due or entry.due[0] > now or entry.text is None:
        return
    if shown(entry.text, output_after(tail, entry.offset)):
        entry.due.clear()
        return
    while entry.due and entry.due[0] <= now:
        entry.due.popleft()
    if not entry.due:
        entry.text = None


def _keys(names: list[str]) -> str:
    """Keys in order; one that was held down says how often."""
    runs = [(name, len(list(same))) for name, same in groupby(names)]
    return " ".join(name if times == 1 else f"{name} x{times}" for name, times in runs)
