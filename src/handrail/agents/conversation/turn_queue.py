"""The turns of one thread: the prompt that runs, and the prompts that wait.

Decides the order of prompts. It runs nothing (`thread_prompts.py`).
"""

from collections import deque
from dataclasses import field

import anyio

from handrail.agents.conversation.send_prompt import PromptPart
from handrail.gate.operation import Operation
from handrail.lazy_dataclass import dataclass
from handrail.store.actor import Actor
from handrail.store.threads.message import Message
from handrail.store.values import Caller, Stop

GOOD: tuple[Stop, ...] = ("end_turn", "max_tokens", "max_turn_requests")
"""Stop reasons after which the queue goes on. After a cancel, a refusal or a failure it is held for the
person."""


@dataclass(eq=False, slots=True, kw_only=True)
class Turn:
    """One prompt, from its arrival until its work has ended."""

    caller: Caller
    pieces: tuple[PromptPart, ...]
    by: Actor
    message: Message | None = None
    """The prompt's message, opened when it is queued or when it begins."""
    replaced: str | None = None
    """The operation that it cancels."""
    replaced_by: Actor | None = None
    """Who replaced it before it had begun."""
    operation: Operation | None = None
    begun: anyio.Event = field(default_factory=anyio.Event)
    problem: Exception | None = None
    """Why it could not begin."""

    def fail(self, problem: Exception) -> None:
        """Mark it as failed before it began, and wake the waiting caller."""
        self.problem = problem
        self.begun.set()


class TurnQueue:
    """The running turn of one thread, and those that wait."""

    def __init__(self) -> None:
        self.arriving = anyio.Lock()
        """Keeps prompts in order of arrival while each is being set up."""
        self.turn: Turn | None = None
        """The running turn, until its work has unwound."""
        self.is_running = False
        """Whether a task runs the turns."""
        self.idle = anyio.Event()
        self.idle.set()
        self.last: Operation | None = None
        """The newest operation, running or ended."""
        self.is_loaded = False
        """Whether the prompts queued under an earlier daemon have been loaded."""
        self.closed = False
        self._pressed: deque[Turn] = deque()
        self._queued: deque[Turn] = deque()
        self._held: deque[Turn] = deque()
        """Queued turns that wait until the person continues."""

    @property
    def busy(self) -> bool:
        return self.is_running or self.turn is not None or bool(self._pressed)

    def press(self, turn: Turn) -> None:
        """Run this turn next: cancel the running one, and replace those that were to run next."""
        for other in self._pressed:
            other.replaced_by = turn.by
        if self.turn is not None and self.turn.operation is not None and self.turn.operation.cancel(turn.by):
            turn.replaced = self.turn.operation.id
        self._pressed.append(turn)

    def queue(self, turn: Turn) -> None:
        """Run this turn after all turns before it."""
        self._queued.append(turn)

    def hold(self, turn: Turn) -> None:
        """Hold this turn until the person continues."""
        self._held.append(turn)

    def requeue(self, turn: Turn) -> None:
        """Put a turn that was taken out of the queue back, to its front."""
        self._queued.appendleft(turn)

    def release(self) -> None:
        """Move the held turns to the front of the queue."""
        self._queued.extendleft(reversed(self._held))
        self._held.clear()

    def take_out(self, message: str) -> Turn | None:
        """Remove and return a waiting turn; None if it does not wait (any more)."""
        for waiting_turns in (self._pressed, self._queued, self._held):
            for turn in waiting_turns:
                if turn.message is not None and turn.message.id == message:
                    waiting_turns.remove(turn)
                    return turn
        return None

    def next(self, stop: Stop | None) -> Turn | None:
        """The next turn after a turn with this stop reason; None if all wait for the person."""
        if self._pressed:
            return self._pressed.popleft()
        if stop is not None and stop not in GOOD:
            self._held.extend(self._queued)
            self._queued.clear()
        return self._queued.popleft() if self._queued else None

    def close(self, by: Actor) -> list[Turn]:
        """Close the queue and cancel the running operation; returns the turns that waited."""
        self.closed = True
        waiting = [*self._pressed, *self._queued, *self._held]
        for waiting_turns in (self._pressed, self._queued, self._held):
            waiting_turns.clear()
        if self.turn is not None and self.turn.operation is not None:
            self.turn.operation.cancel(by)
        return waiting
