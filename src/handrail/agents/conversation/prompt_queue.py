"""The floor of one conversation: whose turn it is, and who waits for theirs.

Owns the order of prompts on one thread: one at a time, the newest in place of those that have not begun, the queued
ones after it. It neither awaits nor knows what a turn does; somebody else takes the turns it gives out.

Turns: the prompts of a thread, taken one after the other, each as one operation.
"""

import logging
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

from handrail.agents.conversation.participants import Talk, Talks
from handrail.agents.conversation.send_prompt import Asking, Piece
from handrail.gate.gate import Gate
from handrail.gate.operation import Operation
from handrail.store.actor import Actor
from handrail.store.threads.message import Message
from handrail.store.threads.threads import Threads
from handrail.store.values import Caller, Stop

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


log = logging.getLogger(__name__)


class Turns:
    """Takes the turns that floors give out."""

    def __init__(self, gate: Gate, threads: Threads, talks: Talks, asking: Asking) -> None:
        self._gate = gate
        self._threads = threads
        self._talks = talks
        self._asking = asking

    async def take_all(self, floor: Floor) -> None:
        """Take turns until everybody waits for the person."""
        stop: Stop | None = None
        try:
            while (turn := floor.next(stop)) is not None:
                floor.turn = turn
                stop = await self._take(floor, turn)
                floor.turn = None
        finally:
            floor.taken, floor.turn = False, None
            floor.idle.set()

    def write(self, turn: Turn, operation: Operation | None) -> Message:
        """The prompt's own message: waiting, or at its place once its work begins."""
        if turn.message is not None and operation is not None:
            return self._threads.sent(turn.message.id, operation.id)
        message = self._threads.open_message(
            turn.caller.key,
            "user",
            agent=turn.caller.client,
            operation=None if operation is None else operation.id,
            queued=operation is None,
        )
        for piece in turn.pieces:
            message.add(piece.kind, piece.text, piece.data)
        message.end("end_turn")
        return message

    async def _take(self, floor: Floor, turn: Turn) -> Stop:
        """One prompt, from its beginning to the end of all that was done for it."""
        talk, answer = self._talks.get(turn.caller), None
        try:
            async with self._gate.operation(turn.caller) as operation:
                floor.last = turn.operation = operation
                prompt = turn.message = self.write(turn, operation)
                answer = self._threads.open_message(
                    talk.thread, "assistant", agent=talk.agent, operation=operation.id
                )
                talk.begin(operation, answer)
                turn.begun.set()
                with _interrupting(operation):
                    await _heed(turn, talk, operation)
                    operation.stop = await self._asking.ask(talk, turn.pieces, prompt, answer, operation)
        except Exception as problem:  # it could not even begin: the journal cannot be written
            log.exception("a prompt on thread %s could not be taken", talk.thread)
            turn.fail(problem)
        finally:
            stop = _stop(turn)
            if answer is not None:
                talk.end(stop)
                answer.end(stop)
        return stop


async def _heed(turn: Turn, talk: Talk, operation: Operation) -> None:
    """Somebody may have said something else before this began."""
    if turn.replaced_by is not None:
        talk.recorder.note(f"Another prompt came before {talk.agent} was asked.")
        operation.cancel(turn.replaced_by)
        await anyio.lowlevel.checkpoint()


@contextmanager
def _interrupting(operation: Operation) -> Generator[None]:
    """A cancel that is not the operation's own is the end of the daemon."""
    try:
        yield
    except anyio.get_cancelled_exc_class():
        operation.stop = operation.stop or "interrupted"
        raise


def _stop(turn: Turn) -> Stop:
    if turn.problem is not None:
        return "failed"
    return (None if turn.operation is None else turn.operation.stop) or "interrupted"
