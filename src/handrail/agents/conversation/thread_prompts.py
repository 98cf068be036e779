"""Prompts: one prompt on a thread is one operation, and a thread has one at a time.

Owns the verbs of a person in a conversation: prompt, send now, drop, set, forget. It does not know how turns are
ordered (floor.py) and taken (turns.py), how an agent is asked (asking.py), nor what it says (recorder.py).

The floor of one conversation: whose turn it is, and who waits for theirs.
"""

import logging
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import anyio
import anyio.lowlevel
from anyio.abc import TaskStatus

from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.conversation.participants import Talk, Talks
from handrail.agents.conversation.send_prompt import Asking, Door, Piece, first_line, pieces_of
from handrail.agents.pool import Agents
from handrail.agents.requests.handlers import Hands
from handrail.config import AgentSection
from handrail.errors import Conflict
from handrail.gate.call import Outcome
from handrail.gate.gate import Gate
from handrail.gate.operation import Operation
from handrail.store.actor import PERSON, Actor
from handrail.store.blobs import Blobs
from handrail.store.records import Records
from handrail.store.threads.message import Message
from handrail.store.threads.thread_records import ThreadRecord
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompted:
    """What became of a prompt."""

    message: str
    operation: str | None
    """None while it is queued."""
    replaced: str | None = None
    """The operation that was cancelled for it."""


class Prompts:
    """What people say to agents. `run` must run before anything can be said."""

    def __init__(
        self,
        gate: Gate,
        threads: Threads,
        agents: Agents,
        hands: Hands,
        records: Records,
        *,
        specs: Callable[[str], AgentSection | None],
        door: Door,
        images: Blobs,
    ) -> None:
        self._gate = gate
        self._journal = gate.journal
        self._threads = threads
        self._records = records
        self._talks = Talks(gate.journal, threads, records, hands, specs, images)
        self._asking = Asking(threads, agents, door, self._talks)
        self._turns = Turns(gate, threads, self._talks, self._asking)
        self._floors: dict[str, Floor] = {}

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Take what people say to the agents, until cancelled."""
        journal = self._journal
        async with anyio.create_task_group() as group:
            self._talks.group = group
            group.start_soon(journal.follow, journal.head, self._talks.hear)
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                self._talks.group = None

    async def prompt(
        self,
        thread: str,
        pieces: Sequence[Piece],
        *,
        by: Actor,
        agent: str | None = None,
        queue: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> Prompted:
        """Say something to an agent; returns when its work has begun, or when it is queued.

        What runs is cancelled for it, and has unwound before it begins. `env` is what this agent's program shall find
        around it from now on, on this thread. Raises LookupError where there is no thread.
        """
        floor = self._floor(thread)
        async with floor.arriving:
            record = await self._arrived(thread, floor)
            turn = Turn(caller=_caller(record, agent or record.agent), pieces=tuple(pieces), by=by)
            if env:
                self._talks.get(turn.caller).env = dict(env)
            if not record.title and (words := first_line(pieces)):
                self._talks.title(thread, words)
            waits = queue and floor.busy
            if floor.busy:
                turn.message = self._turns.write(turn, None)
            self._go(floor, turn, waits=waits)
        return _prompted(turn) if waits else await _begun(turn)

    async def send_now(self, thread: str, message: str, *, by: Actor) -> Prompted:
        """A queued prompt shall not wait any longer. Raises LookupError where it does not wait."""
        floor = self._floor(thread)
        async with floor.arriving:
            await self._arrived(thread, floor)
            turn = _waiting(floor, message)
            turn.by = by
            floor.release()
            self._go(floor, turn)
        return await _begun(turn)

    def drop(self, thread: str, message: str, *, by: Actor) -> None:
        """A queued prompt is taken back. Raises LookupError where it does not wait."""
        turn = self._floor(thread).take_out(message)
        self._threads.dropped(message, by)
        if turn is not None:
            turn.fail(LookupError(f"The prompt {message} was taken back by {by}."))

    async def cancel_activity(self, operation: str, activity: str, *, by: Actor) -> None:
        """End one thing that an operation is busy with; the operation goes on, as far as that is not all of it.

        Raises LookupError where there is no such thing, AgentError, and Conflict where it is over.
        """
        talk = self._talks.working_for(operation)
        if talk is None:
            raise Conflict(f"The operation {operation} has ended, and all that it was busy with.")
        await talk.cancel_activity(activity, by)

    def running(self, thread: str) -> str | None:
        """The operation that runs for a thread, or still unwinds."""
        floor = self._floors.get(thread)
        turn = None if floor is None else floor.turn
        return None if turn is None or turn.operation is None else turn.operation.id

    def calling(self, thread: str) -> str | None:
        """The operation that an agent's calls are made for now; one that was cancelled, until the next prompt."""
        floor = self._floors.get(thread)
        last = None if floor is None else floor.last
        return None if last is None or (last.ended and last.cancelled_by is None) else last.id

    async def set(
        self,
        thread: str,
        setting: Literal["mode", "option"],
        value: str | bool,
        *,
        id: str = "",
        agent: str | None = None,
    ) -> None:
        """Choose a mode, or the option `id`, of the agent that speaks. Raises AgentError and LookupError."""
        floor = self._floor(thread)
        async with floor.arriving:
            record = await self._arrived(thread, floor)
        speaker = agent or await self._talks.speaker(thread) or record.agent
        talk = self._talks.get(_caller(record, speaker))
        try:
            await self._asking.open(talk)
        except LookupError:  # it was deleted meanwhile
            self._talks.part(thread)
            raise
        if talk.session is None:
            raise AgentError(f"{talk.agent} ended just as it was to be told.")
        if setting == "mode":
            await talk.session.set_mode(str(value))
        else:
            await talk.session.set_option(id, value)

    async def forget(self, thread: str, *, by: Actor = PERSON) -> None:
        """End all that is done for a thread, and have its agents forget it."""
        floor = self._floor(thread)
        for turn in floor.close(by):
            turn.fail(LookupError(f"The thread {thread} was deleted by {by}."))
        await floor.idle.wait()
        for talk in self._talks.part(thread):
            await self._asking.leave(talk)
        self._floors.pop(thread, None)
        self._withdraw(thread, by)

    def _withdraw(self, thread: str, by: Actor) -> None:
        """What its agents asked for outside any prompt ends too, but for what runs by itself."""
        gone = Outcome(ending="cancelled", by=by, message="Its thread was deleted")
        for call in list(self._gate.open.values()):
            alone = call.status == "running" and (call.handed_back or call.client_gone)
            if call.caller.thread == thread and not alone:
                self._gate.end(call, gone)

    def _floor(self, thread: str) -> Floor:
        self._threads.queued(thread)  # raises LookupError where there is no such thread
        return self._floors.setdefault(thread, Floor())

    async def _arrived(self, thread: str, floor: Floor) -> ThreadRecord:
        """What is known of the thread, once all that waits there is known too."""
        await self._threads.written()
        record = await self._records.threads.get(thread)
        if record is None or floor.closed:
            raise LookupError(f"There is no thread {thread}.")
        if self._talks.group is None:
            raise AgentError("Nothing can be asked now: Handrail is just starting, or ending.")
        if not floor.known:
            floor.known = True
            for message in self._threads.queued(thread):
                caller = _caller(record, message.agent or record.agent)
                floor.hold(Turn(caller=caller, pieces=pieces_of(message), by=PERSON, message=message))
        return record

    def _go(self, floor: Floor, turn: Turn, *, waits: bool = False) -> None:
        """Let it have its turn, and see to it that somebody takes the turns."""
        (floor.queue if waits else floor.press)(turn)
        if not floor.taken and self._talks.group is not None:
            floor.taken, floor.idle = True, anyio.Event()
            self._talks.group.start_soon(self._turns.take_all, floor)


def _caller(record: ThreadRecord, agent: str) -> Caller:
    """Everything an agent does for a thread has one key, whichever way it comes."""
    return Caller(door="acp", client=agent, key=record.id, workspace=record.workspace, thread=record.id)


def _waiting(floor: Floor, message: str) -> Turn:
    turn = floor.take_out(message)
    if turn is None:
        raise LookupError(f"The prompt {message} is not waiting any more.")
    return turn


async def _begun(turn: Turn) -> Prompted:
    await turn.begun.wait()
    if turn.problem is not None:
        raise turn.problem
    return _prompted(turn)


def _prompted(turn: Turn) -> Prompted:
    assert turn.message is not None
    operation = None if turn.operation is None else turn.operation.id
    return Prompted(message=turn.message.id, operation=operation, replaced=turn.replaced)
