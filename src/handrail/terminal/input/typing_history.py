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

from handrail.terminal.input.typed_line import Draft, Entry, of_agent, output_after, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from handrail.terminal.output.tail import Tail
    from handrail.terminal.terminal import Terminal, Typist

    Record = Callable[[Terminal, str, bool, str | None, int], None]


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
