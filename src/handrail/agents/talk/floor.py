"""The floor of one conversation: whose turn it is, and who waits for theirs.

Owns the order of prompts on one thread: one at a time, the newest in place of those that have not begun, the queued
ones after it. It neither awaits nor knows what a turn does; somebody else takes the turns it gives out.
"""

from collections import deque
from dataclasses import dataclass, field

import anyio

from handrail.agents.talk.blocks import Piece
from handrail.gate.operation import Operation
from handrail.store.actor import Actor
from handrail.store.thread.message import Message
from handrail.store.value import Caller, Stop

GOOD: tuple[Stop, ...] = ("end_turn", "max_tokens", "max_turn_requests")
"""After these the queue goes on; after a cancel, a refusal or a failure the person decides."""


@dataclass(eq=False, slots=True, kw_only=True)
class Turn:
    """One prompt, until its work has ended."""

    caller: Caller
    pieces: tuple[Piece, ...]
    by: Actor
    message: Message | None = None
    """The prompt's own, opened when it has to wait or when it begins."""
    replaced: str | None = None
    """The operation that is cancelled for it."""
    replaced_by: Actor | None = None
    """Who said something else before it had begun."""
    operation: Operation | None = None
    begun: anyio.Event = field(default_factory=anyio.Event)
    problem: Exception | None = None
    """Why it could not begin."""

    def fail(self, problem: Exception) -> None:
        """It does not begin; whoever waits for that is told."""
        self.problem = problem
        self.begun.set()


class Floor:
    """Who speaks on one thread, and who waits."""

    def __init__(self) -> None:
        self.arriving = anyio.Lock()
        """Keeps prompts in the order in which they came, while each is looked at."""
        self.turn: Turn | None = None
        """The one under way, until its work has unwound."""
        self.taken = False
        """Somebody takes turns."""
        self.idle = anyio.Event()
        self.idle.set()
        self.last: Operation | None = None
        """The newest operation, under way or over."""
        self.known = False
        """What waited here since an earlier daemon was found."""
        self.closed = False
        self._now: deque[Turn] = deque()
        self._queued: deque[Turn] = deque()
        self._held: deque[Turn] = deque()
        """Queued ones that wait for a word of the person."""

    @property
    def busy(self) -> bool:
        return self.taken or self.turn is not None or bool(self._now)

    def press(self, turn: Turn) -> None:
        """It goes next, in place of what runs and of whoever pressed before and has not begun."""
        for other in self._now:
            other.replaced_by = turn.by
        if self.turn is not None and self.turn.operation is not None and self.turn.operation.cancel(turn.by):
            turn.replaced = self.turn.operation.id
        self._now.append(turn)

    def queue(self, turn: Turn) -> None:
        """It goes when all before it have gone."""
        self._queued.append(turn)

    def hold(self, turn: Turn) -> None:
        """It goes when the person says so."""
        self._held.append(turn)

    def release(self) -> None:
        """The person goes on: what was held goes in its turn, before what was queued since."""
        self._queued.extendleft(reversed(self._held))
        self._held.clear()

    def take_out(self, message: str) -> Turn | None:
        """A turn that waits, out of its line; None when there is none, or no longer."""
        for line in (self._now, self._queued, self._held):
            for turn in line:
                if turn.message is not None and turn.message.id == message:
                    line.remove(turn)
                    return turn
        return None

    def next(self, stop: Stop | None) -> Turn | None:
        """Whose turn it is after one that ended so; None when everybody waits for the person."""
        if self._now:
            return self._now.popleft()
        if stop is not None and stop not in GOOD:
            self._held.extend(self._queued)
            self._queued.clear()
        return self._queued.popleft() if self._queued else None

    def close(self, by: Actor) -> list[Turn]:
        """Nobody speaks here any more; those who waited."""
        self.closed = True
        waiting = [*self._now, *self._queued, *self._held]
        for line in (self._now, self._queued, self._held):
            line.clear()
        if self.turn is not None and self.turn.operation is not None:
            self.turn.operation.cancel(by)
        return waiting
