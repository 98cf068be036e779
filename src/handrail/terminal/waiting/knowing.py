"""Knowing what goes on in every terminal: what runs in its foreground, where, and whether it waits for input.

Owns when each terminal is looked at: once it is quiet, then ever more rarely until it stirs; so many idle terminals
cost next to nothing. Whether a look means a question is judged by asking.py; what is seen and asked stands on the
terminal itself.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import anyio

from handrail.terminal.keeper import KeeperError
from handrail.terminal.output import screen
from handrail.terminal.room import PEOPLE
from handrail.terminal.terminal import Asks
from handrail.terminal.waiting import asking

if TYPE_CHECKING:
    from handrail.keeper.protocol import Seen
    from handrail.store.value import Sure
    from handrail.terminal.output.tail import Tail
    from handrail.terminal.shells.marks import Marks
    from handrail.terminal.terminal import Terminal
    from handrail.terminal.terminals import Terminals

QUIET = 0.3
"""Seconds without output or input before the first look."""
RESTS = 0.5
"""Seconds of quiet before a program in raw mode is taken to wait."""
BUSY_APART = 8.0
IDLE_APART = 60.0
"""Seconds between looks at most: while something runs, which may begin to read without a word, and at a prompt."""
NOISY_APART = 5.0
ASKING_APART = 1.0
"""Seconds between looks while output flows without a pause: what runs may change, and a question be answered."""
SAME_LINE_BYTES = 16 * 1024
"""Output since a question that is searched for a line's end: an answer being typed changes the line, not the question."""


class MarksOf(Protocol):
    """Where the marks of a terminal's shell are known."""

    async def of(self, id: str, nonce: str, tail: Tail) -> Marks | None: ...


@dataclass(slots=True)
class _Watched:
    """When a terminal last stirred, and is looked at next; in monotonic seconds."""

    terminal: Terminal
    stirred_at: float
    due: float
    looked_at: float = -math.inf
    asked_at: int = 0
    """How far its output was when it asked."""
    shown: tuple[tuple[int, tuple[int, int]], screen.Shown] | None = None
    """What was rendered last, and of what: a screen that did not change is not rendered again."""


class Knowing:
    """Looks at all live terminals, in one task."""

    def __init__(self, terminals: Terminals, marks: MarksOf | None = None) -> None:
        self._terminals = terminals
        self._marks = marks
        self._watched: dict[str, _Watched] = {}
        self._wakes_at = math.inf
        self._bell = anyio.Event()
        terminals.stirred = self.stir

    async def run(self) -> None:
        """Until cancelled."""
        for terminal in self._terminals.live.values():
            self.stir(terminal)
        while True:
            bell = self._bell
            self._wakes_at = min((watched.due for watched in self._watched.values()), default=math.inf)
            with anyio.move_on_after(max(0.0, self._wakes_at - time.monotonic())):
                await bell.wait()
            for watched in [item for item in self._watched.values() if item.due <= time.monotonic()]:
                await self._attend(watched)

    def stir(self, terminal: Terminal) -> None:
        """It was opened, printed something, or somebody typed."""
        if terminal.exit is not None or terminal.pipes:
            self._watched.pop(terminal.id, None)
            return
        now = time.monotonic()
        watched = self._watched.get(terminal.id)
        if watched is None:
            watched = self._watched[terminal.id] = _Watched(terminal, now, math.inf)
        watched.stirred_at = now
        watched.due = min(watched.due, now + QUIET)
        if watched.due < self._wakes_at:
            self._wakes_at = watched.due
            self._bell.set()
            self._bell = anyio.Event()

    async def _attend(self, watched: _Watched) -> None:
        terminal, now = watched.terminal, time.monotonic()
        if terminal.exit is not None:
            self._watched.pop(terminal.id, None)
            return
        quiet = now - watched.stirred_at
        apart = ASKING_APART if terminal.asks is not None else NOISY_APART
        if quiet < QUIET and now < watched.looked_at + apart:
            watched.due = min(watched.stirred_at + QUIET, watched.looked_at + apart)
            return
        watched.looked_at = now
        try:
            seen = await terminal.look()
            await self._judge(watched, seen, quiet)
        except KeeperError:
            pass  # it has just ended, or the keeper is gone: whoever is told of that tells more
        watched.due = self._next(watched)

    def _next(self, watched: _Watched) -> float:
        """After half a second of quiet, then after twice as long each time."""
        now, terminal = time.monotonic(), watched.terminal
        quiet = now - watched.stirred_at
        if quiet < QUIET:
            return watched.stirred_at + QUIET
        if quiet < RESTS:
            return watched.stirred_at + RESTS
        most = BUSY_APART if terminal.seen is None or terminal.seen.busy or terminal.asks else IDLE_APART
        return now + min(max(quiet, RESTS), most)

    async def _judge(self, watched: _Watched, seen: Seen, quiet: float) -> None:
        """Say what it asks, or that it asks no longer."""
        terminal, note = watched.terminal, watched.terminal.note
        marks = None
        if self._marks is not None and note.nonce and not seen.busy:
            marks = await self._marks.of(terminal.id, note.nonce, terminal.tail)
        sure = asking.sureness(seen, note.of, marks and marks.at_prompt, terminal.argv)
        if sure is None:
            terminal.ask(None)
        elif sure == "certain" or quiet >= RESTS:
            await self._ask(watched, sure, seen)

    async def _ask(self, watched: _Watched, sure: Sure, seen: Seen) -> None:
        terminal = watched.terminal
        stirred_at, end = watched.stirred_at, terminal.tail.end
        shown = await _shown(watched, end)
        if watched.stirred_at != stirred_at or terminal.exit is not None:
            return  # it went on meanwhile: what was seen is of no use
        if not seen.canonical and not asking.rests_behind_text(shown):
            terminal.ask(None)
        elif not self._is_same_question(watched, seen.secret):
            watched.asked_at = end
            terminal.ask(Asks(prompt=asking.prompt(shown), sure=sure, secret=seen.secret, since=time.time()))

    def _is_same_question(self, watched: _Watched, secret: bool) -> bool:
        """What it asked before still stands on its line, perhaps with half an answer behind it."""
        asks = watched.terminal.asks
        if asks is None or asks.secret != secret:
            return False
        since, following = watched.terminal.tail.read(watched.asked_at, SAME_LINE_BYTES)
        return b"\n" not in since and following >= watched.terminal.tail.end


async def _shown(watched: _Watched, end: int) -> screen.Shown:
    terminal = watched.terminal
    stand = (end, terminal.size)
    if watched.shown is None or watched.shown[0] != stand:
        shown = await PEOPLE.run(screen.render, terminal.tail, *terminal.size)
        watched.shown = (stand, shown)
    return watched.shown[1]
