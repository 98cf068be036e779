"""Which turn a request plays: the queue's, or the one of the script in its conversation.

Owns what was played and what has gone wrong on purpose. It does not know how an answer travels.
"""

import threading
from collections import Counter, deque
from collections.abc import Hashable
from dataclasses import dataclass, field

from tests.model.dialect import Dialect, Json
from tests.model.script import BESIDE, OVER, Said, Trouble, Turn, scripted


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """What one request gets."""

    turn: Turn
    trouble: Trouble | None = None
    """What goes wrong instead."""
    aside: bool = False
    """Not of the conversation."""


@dataclass
class Plays:
    """What was put in to be played, and how far it is."""

    _queues: dict[str, deque[Turn]] = field(default_factory=dict[str, deque[Turn]])
    _had: Counter[Hashable] = field(default_factory=Counter[Hashable])
    _played: Counter[str] = field(default_factory=Counter[str])
    _asides: Counter[Hashable] = field(default_factory=Counter[Hashable])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, turns: tuple[Turn, ...], marker: str) -> None:
        with self._lock:
            self._queues.setdefault(marker, deque()).extend(turns)

    @property
    def waiting(self) -> int:
        """Turns that nobody has asked for yet."""
        return sum(map(len, self._queues.values()))

    def next(self, body: Json, dialect: Dialect) -> Play:
        said = tuple(dialect.said(body))
        with self._lock:
            return self._queued(body, said) or self._scripted(said, dialect.has_tools(body))

    def _queued(self, body: Json, said: tuple[Said, ...]) -> Play | None:
        """From the queue with the longest marker that the conversation, or what it is told first, has."""
        text = f"{body.get('system', '')}{body.get('systemInstruction', '')}" + "".join(
            each.text for each in said
        )
        found = [marker for marker, queue in self._queues.items() if queue and marker in text]
        if not found:
            return None
        marker = max(found, key=len)
        queue = self._queues[marker]
        trouble = self._trouble(queue[0], (marker, self._played[marker]))
        self._played[marker] += trouble is None
        return Play(turn=queue[0] if trouble is not None else queue.popleft(), trouble=trouble)

    def _scripted(self, said: tuple[Said, ...], tools: bool) -> Play:
        found = scripted(said)
        if found is None:
            return Play(turn=BESIDE, aside=True)
        turns, played = found
        if not tools:
            return self._aside([turn for turn in turns if turn.aside], repr(turns))
        mains = [turn for turn in turns if not turn.aside]
        turn = mains[played] if played < len(mains) else OVER
        return Play(turn=turn, trouble=self._trouble(turn, said))

    def _aside(self, turns: list[Turn], key: str) -> Play:
        at = self._asides[key]
        if at >= len(turns):
            return Play(turn=BESIDE, aside=True)
        trouble = self._trouble(turns[at], (key, at))
        self._asides[key] += trouble is None
        return Play(turn=turns[at], trouble=trouble, aside=True)

    def _trouble(self, turn: Turn, key: Hashable) -> Trouble | None:
        """The next that this turn has for the same request made again."""
        if self._had[key] >= len(turn.trouble):
            return None
        self._had[key] += 1
        return turn.trouble[self._had[key] - 1]
