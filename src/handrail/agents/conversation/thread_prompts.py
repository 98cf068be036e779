"""Prompts on threads: one operation per prompt, one prompt at a time per thread, the rest queued or steered.

Implements a person's actions in a conversation: prompt, steer, send now, drop a queued prompt, set a mode or option,
adopt a session, fork, delete. The TurnRunner runs the turns of each thread's TurnQueue. How an agent is reached is in
`send_prompt.py` and `agent_sessions.py`.
"""

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

import anyio
import anyio.lowlevel
from anyio.abc import TaskStatus

from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.acp.session_list import ListedSession
from handrail.agents.conversation.agent_sessions import AgentSessions, McpEntryBuilder
from handrail.agents.conversation.denials import Denials
from handrail.agents.conversation.participants import Participant, Participants
from handrail.agents.conversation.send_prompt import (
    PromptPart,
    PromptSender,
    first_line,
    prompt_parts_from_message,
)
from handrail.agents.conversation.turn_queue import Turn, TurnQueue
from handrail.agents.pool import Agents
from handrail.agents.requests.handlers import RequestHandlers
from handrail.config import AgentSection
from handrail.errors import Conflict, Unwritable
from handrail.gate.call import Outcome
from handrail.gate.gate import Gate
from handrail.gate.operation import Operation
from handrail.lazy_dataclass import dataclass
from handrail.store.actor import HANDRAIL, PERSON, Actor
from handrail.store.blobs import Blobs
from handrail.store.records import Records
from handrail.store.threads.message import Message
from handrail.store.threads.thread_records import ThreadRecord
from handrail.store.threads.threads import Threads
from handrail.store.values import Caller, Stop

AFTER_DENIAL = PromptPart(kind="text", text="Go on with what was not denied, or say what you need.")
"""The prompt that carries the reasons of denials, for an agent with `prompt_after_denial`."""


log = logging.getLogger(__name__)


class TurnRunner:
    """Runs the turns of all queues."""

    def __init__(
        self,
        gate: Gate,
        threads: Threads,
        participants: Participants,
        sender: PromptSender,
        denials: Denials,
    ) -> None:
        self._gate = gate
        self._threads = threads
        self._participants = participants
        self._sender = sender
        self._denials = denials

    async def take_all(self, turns: TurnQueue) -> None:
        """Run turns until none is left, or all wait for the person."""
        stop: Stop | None = None
        try:
            while (turn := turns.next(stop)) is not None:
                turns.turn = turn
                stop = await self._run_turn(turns, turn)
                turns.turn = None
                if await self._is_to_be_told(turn):
                    turns.press(Turn(caller=turn.caller, pieces=(AFTER_DENIAL,), by=HANDRAIL))
        finally:
            turns.is_running, turns.turn = False, None
            turns.idle.set()

    async def _is_to_be_told(self, turn: Turn) -> bool:
        """Whether the agent gets the reasons of denials immediately, as a prompt; never after a cancel.

        Only if a person gave one: after rules alone, an agent that repeats itself would never stop.
        """
        is_over = turn.operation is None or turn.operation.cancelled_by is not None
        if is_over or not self._participants.get(turn.caller).prompts_after_denial:
            return False
        try:
            denials = await self._denials.untold(turn.caller.key, turn.caller.client)
        except (LookupError, Unwritable):  # the thread was deleted, or the journal cannot be written
            return False
        return any(denial.by.rule is None for denial in denials)

    def write(self, turn: Turn, operation: Operation | None) -> Message:
        """Write the prompt's message: queued without an operation, else in its place in the thread."""
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

    async def _run_turn(self, turns: TurnQueue, turn: Turn) -> Stop:
        """Run one turn, to the end of all work done for it."""
        participant, answer = self._participants.get(turn.caller), None
        try:
            async with self._gate.operation(turn.caller) as operation:
                turns.last = turn.operation = operation
                prompt = turn.message = self.write(turn, operation)
                answer = self._threads.open_message(
                    participant.thread, "assistant", agent=participant.agent, operation=operation.id
                )
                participant.begin(operation, answer)
                turn.begun.set()
                with _mark_interrupted(operation):
                    await _cancel_if_replaced(turn, participant, operation)
                    operation.stop = await self._sender.ask(
                        participant, turn.pieces, prompt, answer, operation
                    )
        except Exception as problem:  # it could not begin: the journal cannot be written
            log.exception("a prompt on thread %s could not be taken", participant.thread)
            turn.fail(problem)
        finally:
            stop = _stop_reason(turn)
            if answer is not None:
                participant.end(stop)
                (participant.recorder.message or answer).end(stop)
        return stop

    async def steer(self, turns: TurnQueue, turn: Turn) -> bool:
        """Give a queued turn's message to the agent while it works; False if it does not take it.

        The answer so far ends as `steered`, the message follows it, and the answer goes on in a new message.
        """
        running, participant = turns.turn, self._participants.get(turn.caller)
        if running is None or running.operation is None or not participant.works_for(running.operation.id):
            return False
        taken: list[Operation] = []

        def on_taken() -> None:
            if turns.turn is running and running.operation is not None:
                self._go_on(participant, turn, running.operation)
                taken.append(running.operation)

        await self._sender.steer(participant, turn.pieces, on_taken)
        turn.operation = taken[0] if taken else None
        return bool(taken)

    def _go_on(self, participant: Participant, turn: Turn, operation: Operation) -> None:
        assert turn.message is not None
        before = participant.recorder.message
        if before is not None:
            before.end("steered")
        self._threads.sent(turn.message.id, operation.id)
        answer = self._threads.open_message(
            participant.thread, "assistant", agent=participant.agent, operation=operation.id
        )
        participant.recorder.go_on(answer)
        participant.upto = answer.n
        if participant.session is not None:
            self._threads.bind(
                participant.thread, participant.agent, participant.session.id, "known", answer.n
            )


async def _cancel_if_replaced(turn: Turn, participant: Participant, operation: Operation) -> None:
    """Cancel a turn that was replaced before it began."""
    if turn.replaced_by is not None:
        participant.recorder.note(f"Another prompt came before {participant.agent} was asked.")
        operation.cancel(turn.replaced_by)
        await anyio.lowlevel.checkpoint()


@contextmanager
def _mark_interrupted(operation: Operation) -> Generator[None]:
    """Mark the operation as interrupted if the daemon, not a person, cancels it."""
    try:
        yield
    except anyio.get_cancelled_exc_class():
        operation.stop = operation.stop or "interrupted"
        raise


def _stop_reason(turn: Turn) -> Stop:
    if turn.problem is not None:
        return "failed"
    return (None if turn.operation is None else turn.operation.stop) or "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptReceipt:
    """The message and the operation of a prompt."""

    message: str
    operation: str | None
    """None while it is queued."""
    replaced: str | None = None
    """The operation that it cancelled."""
    steered: bool = False
    """The agent took it while it worked; `operation` is the one that runs."""


class Prompts:
    """The prompts of all threads. Nothing can be prompted unless `run` is running."""

    def __init__(
        self,
        gate: Gate,
        threads: Threads,
        agents: Agents,
        request_handlers: RequestHandlers,
        records: Records,
        *,
        specs: Callable[[str], AgentSection | None],
        door: McpEntryBuilder,
        images: Blobs,
    ) -> None:
        self._gate = gate
        self._journal = gate.journal
        self._threads = threads
        self._records = records
        self._participants = Participants(gate.journal, threads, records, request_handlers, specs, images)
        self.sessions = AgentSessions(threads, agents, door, self._participants)
        denials = Denials(threads, records)
        sender = PromptSender(threads, self.sessions, denials, self._participants)
        self._runner = TurnRunner(gate, threads, self._participants, sender, denials)
        self._turn_queues: dict[str, TurnQueue] = {}

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Accept prompts until cancelled."""
        journal, participants = self._journal, self._participants
        async with anyio.create_task_group() as group:
            participants.group = group
            group.start_soon(journal.follow, journal.head, participants.link_calls, participants.wants)
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                self._participants.group = None

    async def prompt(
        self,
        thread: str,
        pieces: Sequence[PromptPart],
        *,
        by: Actor,
        agent: str | None = None,
        queue: bool = False,
        steer: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> PromptReceipt:
        """Prompt an agent; returns when its work has begun, or when it is queued.

        The running prompt is cancelled first and has unwound before this one begins, unless `queue` is set. With
        `steer`, the running prompt takes it if the agent can; otherwise it is queued. `env` replaces the extra
        environment of this agent on this thread. Raises LookupError if there is no such thread.
        """
        turns = self._get_queue(thread)
        async with turns.arriving:
            record = await self._load_thread(thread, turns)
            turn = Turn(caller=_caller(record, agent or record.agent), pieces=tuple(pieces), by=by)
            if env:
                self._participants.get(turn.caller).env = dict(env)
            if not record.title and (words := first_line(pieces)):
                self._participants.title(thread, words)
            waits = (queue or steer) and turns.busy
            if turns.busy:
                turn.message = self._runner.write(turn, None)
            if steer and await self._runner.steer(turns, turn):
                return _result_of(turn, steered=True)
            self._add_turn(turns, turn, waits=waits)
        return _result_of(turn) if waits else await _wait_until_begun(turn)

    async def send_now(self, thread: str, message: str, *, by: Actor) -> PromptReceipt:
        """Run a queued prompt now. Raises LookupError if it does not wait."""
        turns = self._get_queue(thread)
        async with turns.arriving:
            await self._load_thread(thread, turns)
            turn = _take_waiting(turns, message)
            turn.by = by
            turns.release()
            self._add_turn(turns, turn)
        return await _wait_until_begun(turn)

    async def steer_now(self, thread: str, message: str) -> PromptReceipt:
        """Give a queued prompt to the agent while it works; if it does not take it, it stays queued.

        Raises LookupError if it does not wait.
        """
        turns = self._get_queue(thread)
        async with turns.arriving:
            await self._load_thread(thread, turns)
            turn = _take_waiting(turns, message)
            steered = await self._runner.steer(turns, turn)
            if not steered:
                turns.requeue(turn)
        return _result_of(turn, steered=steered)

    async def adopt(self, thread: str, session: ListedSession) -> None:
        """Take up a session of the thread's agent, in a new thread. Raises AgentError and LookupError."""
        record = await self._load_thread(thread, self._get_queue(thread))
        await self.sessions.adopt(self._participants.get(_caller(record, record.agent)), session)

    async def fork_session(self, thread: str, source: str, shared: int) -> None:
        """Copy the session of the agent that works on `source`, for its fork `thread`, which has its first `shared`
        messages. The fork then shows how the agent gets them. Raises LookupError."""
        record = await self._load_thread(thread, self._get_queue(thread))
        agent = await self._participants.speaker(source) or record.agent
        participant = self._participants.get(_caller(record, agent))
        await self.sessions.fork(participant, source, shared, is_busy=self.running(source) is not None)

    def drop(self, thread: str, message: str, *, by: Actor) -> None:
        """Remove a queued prompt. Raises LookupError if it does not wait."""
        turn = self._get_queue(thread).take_out(message)
        self._threads.dropped(message, by)
        if turn is not None:
            turn.fail(LookupError(f"The prompt {message} was taken back by {by}."))

    async def cancel_activity(self, operation: str, activity: str, *, by: Actor) -> None:
        """Cancel one activity of an operation; the operation goes on.

        Raises LookupError if there is no such activity, AgentError, and Conflict if it has ended.
        """
        participant = self._participants.working_for(operation)
        if participant is None:
            raise Conflict(f"The operation {operation} has ended, and all that it was busy with.")
        await participant.cancel_activity(activity, by)

    def running(self, thread: str) -> str | None:
        """The operation that runs for a thread, or still unwinds."""
        turns = self._turn_queues.get(thread)
        turn = None if turns is None else turns.turn
        return None if turn is None or turn.operation is None else turn.operation.id

    def calling(self, thread: str) -> str | None:
        """The operation that an agent's calls belong to; a cancelled one counts until the next prompt."""
        turns = self._turn_queues.get(thread)
        last = None if turns is None else turns.last
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
        """Set a mode, or the option `id`, of the thread's current agent. Raises AgentError and LookupError."""
        turns = self._get_queue(thread)
        async with turns.arriving:
            record = await self._load_thread(thread, turns)
        speaker = agent or await self._participants.speaker(thread) or record.agent
        participant = self._participants.get(_caller(record, speaker))
        try:
            await self.sessions.open(participant)
        except LookupError:  # deleted in the meantime
            self._participants.part(thread)
            raise
        if participant.session is None:
            raise AgentError(f"{participant.agent} ended just as it was to be told.")
        if setting == "mode":
            await participant.session.set_mode(str(value))
        else:
            await participant.session.set_option(id, value)

    async def forget(self, thread: str, *, by: Actor = PERSON) -> None:
        """End all work for a thread, and release it in its agents."""
        turns = self._get_queue(thread)
        for turn in turns.close(by):
            turn.fail(LookupError(f"The thread {thread} was deleted by {by}."))
        await turns.idle.wait()
        for participant in self._participants.part(thread):
            await self.sessions.leave(participant)
        self._turn_queues.pop(thread, None)
        self._cancel_calls(thread, by)

    def _cancel_calls(self, thread: str, by: Actor) -> None:
        """Cancel its agents' calls outside any prompt, except those that run in the background."""
        gone = Outcome(ending="cancelled", by=by, message="Its thread was deleted")
        for call in list(self._gate.open.values()):
            alone = call.status == "running" and (call.handed_back or call.client_gone)
            if call.caller.thread == thread and not alone:
                self._gate.end(call, gone)

    def _get_queue(self, thread: str) -> TurnQueue:
        self._threads.queued(thread)  # raises LookupError if there is no such thread
        return self._turn_queues.setdefault(thread, TurnQueue())

    async def _load_thread(self, thread: str, turns: TurnQueue) -> ThreadRecord:
        """The thread's record, once its queued prompts are loaded."""
        await self._threads.written()
        record = await self._records.threads.get(thread)
        if record is None or turns.closed:
            raise LookupError(f"There is no thread {thread}.")
        if self._participants.group is None:
            raise AgentError("Nothing can be asked now: Handrail is just starting, or ending.")
        if not turns.is_loaded:
            turns.is_loaded = True
            for message in self._threads.queued(thread):
                caller = _caller(record, message.agent or record.agent)
                turns.hold(
                    Turn(caller=caller, pieces=prompt_parts_from_message(message), by=PERSON, message=message)
                )
        return record

    def _add_turn(self, turns: TurnQueue, turn: Turn, *, waits: bool = False) -> None:
        """Add a turn, and start a task for the queue if none runs."""
        (turns.queue if waits else turns.press)(turn)
        if not turns.is_running and self._participants.group is not None:
            turns.is_running, turns.idle = True, anyio.Event()
            self._participants.group.start_soon(self._runner.take_all, turns)


def _caller(record: ThreadRecord, agent: str) -> Caller:
    """The caller of an agent on a thread: the same key over ACP and MCP."""
    return Caller(door="acp", client=agent, key=record.id, workspace=record.workspace, thread=record.id)


def _take_waiting(turns: TurnQueue, message: str) -> Turn:
    turn = turns.take_out(message)
    if turn is None:
        raise LookupError(f"The prompt {message} is not waiting any more.")
    return turn


async def _wait_until_begun(turn: Turn) -> PromptReceipt:
    await turn.begun.wait()
    if turn.problem is not None:
        raise turn.problem
    return _result_of(turn)


def _result_of(turn: Turn, *, steered: bool = False) -> PromptReceipt:
    assert turn.message is not None
    operation = None if turn.operation is None else turn.operation.id
    return PromptReceipt(
        message=turn.message.id, operation=operation, replaced=turn.replaced, steered=steered
    )
