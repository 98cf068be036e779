"""Participants: one agent's part in one thread, with its session, its recorder and its requests.

A Participant is the handler of its agent's session. Participants holds all of them, links journaled calls to
their conversations, and stores titles and images. It does not know the order of prompts
(`thread_prompts.py`).
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from handrail.agents.acp.agent import Agent
from handrail.agents.acp.capabilities import ACTIVITY_UPDATE, Folder
from handrail.agents.acp.session import Session
from handrail.agents.conversation._session_history import SessionHistory
from handrail.agents.conversation.recorder import Activities, Recorder
from handrail.agents.conversation.session_state import STATE_NAMES
from handrail.agents.conversation.tool_calls import OwnCall
from handrail.agents.conversation.unasked_work import UnaskedWork, merge_fields
from handrail.agents.lenient_json import name, record, text
from handrail.agents.requests.handlers import RequestHandlers
from handrail.agents.requests.request_context import RequestContext
from handrail.config import OWN_AGENT, AgentSection
from handrail.errors import Conflict
from handrail.gate.operation import Operation
from handrail.store.actor import HANDRAIL, Actor, actor_from_text, agent_actor
from handrail.store.blobs import Blobs, BlobUnavailable
from handrail.store.events import CallOpened, CallSettled, CallStopped, Entry, Event
from handrail.store.journal import Journal
from handrail.store.records import Records
from handrail.store.threads.message import Message
from handrail.store.threads.thread_records import SessionRecord
from handrail.store.threads.threads import Threads
from handrail.store.values import Caller, Ending, Handover, Json, Stop
from handrail.terminal.descendants import EndedProcesses

log = logging.getLogger(__name__)

RunInBackground = Callable[..., None]
"""Starts work with its arguments, in a task that nobody waits for."""


class Participant:
    """One agent's part in one thread: the handler of its session."""

    def __init__(
        self,
        caller: Caller,
        spec: AgentSection | None,
        request_handlers: RequestHandlers,
        recorder: Recorder,
        activities: Activities,
        unasked: UnaskedWork,
        run_in_background: RunInBackground,
    ) -> None:
        self.recorder = recorder
        self._unasked = unasked
        self._run_in_background = run_in_background
        self.activities = activities
        self.session: Session | None = None
        self.upto = 0
        """The number of the last message that this agent knows."""
        self.opening = anyio.Lock()
        self.steers: bool | None = None
        """Whether the agent takes messages while it works, as the thread shows it; None if it shows nothing yet."""
        self.history: SessionHistory | None = None
        """Set while the agent replays the history of a session that the thread adopts."""
        self.was_cancelled = False
        """Whether its last prompt was cancelled: some agents keep a session then that their model refuses."""
        self.env: Mapping[str, str] = {}
        """Variables with keys that a person supplied for this thread. Kept in memory only."""
        self._caller = caller
        self._spec = spec
        self._request_handlers = request_handlers
        self._tool_calls: dict[str, str] = {}
        """Our call id to the agent's tool call id, for permission and form requests not yet read from the journal."""
        self._cwd, self._has_own_tools = "", False
        self._operation: Operation | None = None
        self._busy = False

    @property
    def agent(self) -> str:
        return self._caller.client

    @property
    def thread(self) -> str:
        return self._caller.key

    @property
    def workspace(self) -> str | None:
        return self._caller.workspace

    @property
    def caller(self) -> Caller:
        """The caller of its requests: the running operation's, or a cancelled one's until the next prompt."""
        last = self._operation
        over = last is None or (last.ended and last.cancelled_by is None)
        return self._caller if over or last is None else last.caller

    def begin(self, operation: Operation, message: Message) -> None:
        """Start a prompt: record into this message, and attribute requests to this operation."""
        self._operation, self._busy = operation, True
        self.recorder.begin(message)
        self.activities.begin(operation)
        self._unasked.begin(operation)

    def end(self, stop: Stop) -> None:
        """The prompt has ended."""
        self._busy = False
        begun = [each for each in self._unasked.mentioned if self._is_begun(each)]
        self.recorder.end(stop)
        self.activities.end()
        for tool_call in begun:
            self._look_for_unasked(tool_call, "done" if stop == "end_turn" else "interrupted")

    def _is_begun(self, tool_call: str) -> bool:
        return self.recorder.known(tool_call).get("status") == "in_progress"

    def works_for(self, operation: str) -> bool:
        """Whether it currently works for this operation."""
        last = self._operation
        return self._busy and last is not None and last.id == operation and not last.ended

    async def cancel_activity(self, id: str, by: Actor) -> None:
        """Cancel one activity. Raises LookupError, AgentError, and Conflict if it has ended."""
        if self.activities.is_root(id) and self._operation is not None:
            self._operation.cancel(by)
            return
        self.activities.note_cancel(id, by)
        if self.session is None or not self.session.agent.about.tells_activities:
            raise Conflict(f"{self.agent} cannot end a part of its work. Cancel the whole of it instead.")
        if not await self.session.cancel_activity(id):
            raise Conflict(f"The activity {id} had ended before.")

    async def open(self, agent: Agent, folder: Folder, stored: SessionRecord | None) -> Handover:
        """Open a session, or resume the stored one if the agent can. Raises AgentError."""
        self._set_folder(folder)
        if stored is not None and (resumed := await agent.resume(stored.session, folder, self)) is not None:
            self.session, how = resumed
            self.upto = stored.upto
            return how
        if self.recorder.state:  # left from a session that has ended
            self.recorder.state.clear()
            self.recorder.show_state()
        self.session = await agent.open(folder, self)
        self.upto = 0
        return "new"

    async def adopt(
        self, agent: Agent, folder: Folder, session: str, history: SessionHistory
    ) -> Handover | None:
        """Load a session of the agent's own, or resume it; None if the agent can do neither. Raises AgentError."""
        self._set_folder(folder)
        self.history = history
        try:
            taken = await agent.load(session, folder, self)
        finally:
            history.end()
            self.history = None
        if taken is None:
            return None
        self.session, how = taken
        return how

    async def copy_session(self, agent: Agent, folder: Folder, session: str) -> bool:
        """Open a copy of a session; False if the agent cannot copy it. Raises AgentError."""
        self._set_folder(folder)
        self.session = await agent.copy_session(session, folder, self)
        return self.session is not None

    def _set_folder(self, folder: Folder) -> None:
        self._cwd, self.session = folder.cwd, None
        self._has_own_tools = folder.mcp is not None

    # SessionHandler

    def update(self, update: Json) -> None:
        if self.history is not None:
            self.history.update(update)
            return
        self._record_update(update)
        self._note_tool_call_update(update)

    def _record_update(self, update: Json) -> None:
        try:
            if text(update.get("sessionUpdate")) == ACTIVITY_UPDATE:
                self.activities.record(record(update.get("activity")))
            else:
                self.recorder.update(update)
        except Exception:  # a bad update must not end the connection
            log.exception("an update of %s could not be recorded", self.agent)

    def _note_tool_call_update(self, update: Json) -> None:
        """Look at a tool call that has ended: was anybody asked about it?"""
        if update.get("sessionUpdate") not in ("tool_call", "tool_call_update"):
            return
        if tool_call := name(update.get("toolCallId")):
            self._unasked.mentioned.add(tool_call)
            if (ending := _ENDINGS.get(text(update.get("status")))) is not None:
                self._look_for_unasked(tool_call, ending)

    def _look_for_unasked(self, tool_call: str, ending: Ending) -> None:
        if self._operation is not None:  # a loaded session repeats old tool calls before the first prompt
            self._run_in_background(self._record_unasked, tool_call, ending, self._operation.caller)

    async def _record_unasked(self, tool_call: str, ending: Ending, caller: Caller) -> None:
        shown = self.recorder.shown(tool_call)
        if shown is None or self._spec is None or self.agent == OWN_AGENT:  # ours has no hands of its own
            return
        if await self._unasked.is_unasked(tool_call, shown, self._cwd):
            context = replace(self._context(self._spec), caller=caller)
            await self._request_handlers.record_unasked(tool_call, merge_fields(shown), ending, context)

    async def serve(self, method: str, params: Json) -> Json | None:
        assert self._spec is not None, "an agent without a section sends no requests"
        if method == "session/request_permission":
            self._record_tool_call(record(params.get("toolCall")))
        return await self._request_handlers.serve(method, params, self._context(self._spec))

    def _context(self, spec: AgentSection) -> RequestContext:
        return RequestContext(
            caller=self.caller,
            cwd=self._cwd,
            quirks=spec,
            on_asked=self._note_tool_call,
            known=self.recorder.known,
            has_own_tools=self._has_own_tools,
        )

    def _record_tool_call(self, tool_call_update: Json) -> None:
        """Some agents describe a tool call only in their permission request. Earlier values win."""
        if tool_call := name(tool_call_update.get("toolCallId")):
            known = self.recorder.known(tool_call)
            new_values = {key: value for key, value in tool_call_update.items() if not known.get(key)}
            self._record_update({**new_values, "sessionUpdate": "tool_call_update"})
            self._unasked.asked[tool_call] = self.recorder.shown(tool_call)

    def lost(self, why: str) -> None:
        self.session = None
        self._request_handlers.forget(self._caller)
        cancelled = self._operation is not None and self._operation.cancelled_by is not None
        if self._busy and cancelled and why:  # otherwise the waiting prompt reports it
            self.recorder.note(why)

    @property
    def prompts_after_denial(self) -> bool:
        """Whether the agent is told the reasons of denials as soon as its turn has ended."""
        return self._spec is not None and self._spec.prompt_after_denial

    def _note_tool_call(self, tool_call: str, call: str) -> None:
        self._tool_calls[call] = tool_call

    def link(self, own_call: OwnCall) -> bool:
        """Show a call of ours as this agent's; False if the thread has no message to show it in."""
        return self.recorder.link(self._tool_calls.pop(own_call.id, ""), own_call)


_ENDINGS: dict[str, Ending] = {"completed": "done", "failed": "failed"}
"""How a tool call ended, by the agent's word for it."""
LONGEST_TITLE = 60
"""Characters of a title made from a prompt."""
LONGEST_AGENT_TITLE = 200
"""Characters of a title that an agent sets."""
MAX_UNWRITTEN_BYTES = 64 * 1024 * 1024
"""Bytes of images waiting to be written; bounds memory. Further images are dropped."""
DEFAULT = "Default"
"""The title of the default thread; agents do not change it."""


class Participants:
    """All participants, by thread and agent."""

    def __init__(
        self,
        journal: Journal,
        threads: Threads,
        records: Records,
        request_handlers: RequestHandlers,
        specs: Callable[[str], AgentSection | None],
        images: Blobs,
    ) -> None:
        self.group: TaskGroup | None = None
        """The group for background work; None before the start and after the end."""
        self._journal = journal
        self._threads = threads
        self._records = records
        self._request_handlers = request_handlers
        self._specs = specs
        self._images = images
        self._participants: dict[tuple[str, str], Participant] = {}
        self._speakers: dict[str, str] = {}
        """The agent whose state each thread shows, if already loaded."""
        self._calls: dict[str, Participant] = {}
        """The participant of each open call."""
        self._titles: dict[tuple[str, str], str] = {}
        """The newest titles from agents that are not yet stored."""
        self._unwritten_bytes = 0
        """Bytes of images waiting to be written."""

    def get(self, caller: Caller) -> Participant:
        """The participant for this agent and thread; created if needed."""
        thread, agent = caller.key, caller.client
        participant = self._participants.get((thread, agent))
        if participant is None:
            recorder = Recorder(
                lambda name, data: self._put_state(thread, agent, name, data),
                self._store_image,
                lambda title: self._queue_title(thread, agent, title),
                notes=agent == OWN_AGENT,
            )
            activities = Activities(self._journal, thread)
            participant = Participant(
                caller,
                self._specs(agent),
                self._request_handlers,
                recorder,
                activities,
                UnaskedWork(self._journal, thread),
                self.run_in_background,
            )
            self._participants[thread, agent] = participant
        return participant

    def working_for(self, operation: str) -> Participant | None:
        """The participant that works for a running operation."""
        return next(
            (participant for participant in self._participants.values() if participant.works_for(operation)),
            None,
        )

    async def speaker(self, thread: str) -> str:
        """The agent whose state the thread shows; empty before the first prompt."""
        if thread not in self._speakers:
            state = (await self._threads.snapshot(thread, 1)).state
            self._speakers.setdefault(thread, text(state.get("agent", {}).get("name")))
        return self._speakers[thread]

    async def introduce(self, participant: Participant) -> None:
        """Make this agent the one whose modes, options, commands, usage and plan the thread shows."""
        before = await self.speaker(participant.thread)
        if (
            before == participant.agent and not participant.recorder.state
        ):  # it was the speaker under an earlier daemon
            state = (await self._threads.snapshot(participant.thread, 1)).state
            participant.recorder.state.update({name: state[name] for name in STATE_NAMES if state.get(name)})
        elif before != participant.agent:
            self._speakers[participant.thread] = participant.agent
            participant.steers = None
            self._threads.put_state(participant.thread, "agent", {"name": participant.agent})
            if before:
                participant.recorder.show_state()

    def show_steering(self, participant: Participant, *, steers: bool) -> None:
        """Show whether the agent takes messages while it works."""
        if participant.steers != steers:
            participant.steers = steers
            self._threads.put_state(
                participant.thread, "agent", {"name": participant.agent, "steers": steers}
            )

    def build_history(self, participant: Participant, said_at: int | None) -> SessionHistory:
        """The recorder of a session's history, for the thread that adopts it."""
        return SessionHistory(
            *(self._threads, participant.thread, participant.agent),
            *(participant.recorder, self._store_image, said_at),
        )

    def part(self, thread: str) -> list[Participant]:
        """Remove and return the participants of a thread."""
        self._speakers.pop(thread, None)
        return [self._participants.pop(key) for key in list(self._participants) if key[0] == thread]

    def wants(self, event: Event) -> bool:
        """Whether `link_calls` has work for this event: most calls are made in no thread."""
        if isinstance(event, CallOpened):
            return event.caller.thread is not None
        return isinstance(event, CallSettled) and event.call in self._calls

    async def link_calls(self, entries: Sequence[Entry]) -> None:
        """Link calls in the journal to the threads whose agents made them, over MCP or ACP."""
        for entry in entries:
            match entry.event:
                case CallOpened() as opened:
                    participant = self._participants.get((opened.caller.thread or "", opened.caller.client))
                    own_call = OwnCall(opened.call, opened.tool, opened.title, opened.input)
                    if participant is not None and participant.link(own_call):
                        self._calls[own_call.id] = participant
                case CallSettled(call=call, ending=ending):
                    participant = self._calls.pop(call, None)
                    if participant is not None:
                        participant.recorder.settled(call, ending)
                case _:
                    continue

    async def add_to_receipts(self, calls: Sequence[str], ended: EndedProcesses) -> None:
        """List processes in the receipts of settled calls: leftovers of the work that they allowed."""
        await self._journal.committed(self._journal.head)
        for call in calls:
            history = await self._records.calls.get(call)
            if history is not None and history.receipt is not None:
                receipt = replace(
                    history.receipt,
                    stopped=not ended.left,
                    processes_stopped=ended.stopped,
                    processes_left=ended.left,
                )
                self._journal.append(CallStopped(call=call, receipt=receipt))

    async def look(self, sha: str) -> bytes | None:
        """Load a stored image."""
        try:
            return await anyio.to_thread.run_sync(self._images.get, sha)
        except BlobUnavailable:
            return None

    def title(self, thread: str, words: str) -> None:
        """Title an untitled thread by its first prompt."""
        short = words if len(words) <= LONGEST_TITLE else f"{words[: LONGEST_TITLE - 1].rstrip()}…"
        self._threads.rename(thread, short, HANDRAIL)

    def _queue_title(self, thread: str, agent: str, title: str) -> None:
        """Queue an agent's title for the thread; the newest wins."""
        is_queued = (thread, agent) in self._titles
        self._titles[thread, agent] = title
        if not is_queued:
            self.run_in_background(self._store_title, thread, agent)

    async def _store_title(self, thread: str, agent: str) -> None:
        """Store an agent's title, unless a person has set one."""
        await self._threads.written()
        title = self._titles.pop((thread, agent))
        record = await self._records.threads.get(thread)
        if record is None or record.title in (title, DEFAULT):
            return
        if not record.title or actor_from_text(record.titled_by).kind in ("handrail", "agent"):
            self._threads.rename(thread, title[:LONGEST_AGENT_TITLE], agent_actor(agent))

    def _put_state(self, thread: str, agent: str, name: str, data: Json) -> None:
        if self._speakers.get(thread) == agent:  # otherwise it is shown when this agent is prompted again
            self._threads.put_state(thread, name, data)

    def _store_image(self, content: bytes) -> str | None:
        if self._unwritten_bytes + len(content) > MAX_UNWRITTEN_BYTES:
            return None
        self._unwritten_bytes += len(content)
        self.run_in_background(self._write_image, content)
        return hashlib.sha256(content).hexdigest()

    async def _write_image(self, content: bytes) -> None:
        try:
            await anyio.to_thread.run_sync(self._images.put, content)
        finally:
            self._unwritten_bytes -= len(content)

    def run_in_background(self, work: Callable[..., Awaitable[object]], *arguments: object) -> None:
        if self.group is not None:
            self.group.start_soon(_run_logged, work, *arguments)


async def _run_logged(work: Callable[..., Awaitable[object]], *arguments: object) -> None:
    """Run background work; its failure must not cancel the group."""
    try:
        await work(*arguments)
    except Exception:
        log.exception("background work for an agent's conversation failed")
