"""Turns: the prompts of a thread, taken one after the other, each as one operation.

Owns what is written of a prompt and its answer, and that nothing of one is left when the next begins. It does not know
who decides the order (floor.py), how an agent is asked (asking.py), nor what it says (recorder.py).
"""

import logging
from collections.abc import Generator
from contextlib import contextmanager

import anyio
import anyio.lowlevel

from handrail.agents.talk.asking import Asking
from handrail.agents.talk.floor import Floor, Turn
from handrail.agents.talk.talk import Talk
from handrail.agents.talk.talks import Talks
from handrail.gate.gate import Gate
from handrail.gate.operation import Operation
from handrail.store.thread.message import Message
from handrail.store.threads import Threads
from handrail.store.value import Stop

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
