"""A talk: one agent's part in one conversation, and our side of its session.

Owns the session while it is open, how it is opened again, and on whose behalf the agent asks for things. It does not
know whose turn it is (floor.py), how a session is spoken to (session.py), or what its requests do (hands.py).

All talks: which agents take part in which conversations, and what the conversations show of them.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from handrail.agents.acp.agent import Agent
from handrail.agents.acp.capabilities import TOLD, Folder
from handrail.agents.acp.session import Session
from handrail.agents.conversation.recorder import Activities, Recorder
from handrail.agents.conversation.session_state import NAMES
from handrail.agents.conversation.tool_calls import Ours
from handrail.agents.lenient_json import name, record, text
from handrail.agents.requests.handlers import Hands
from handrail.agents.requests.request_context import Who
from handrail.config import OWN_AGENT, AgentSection
from handrail.errors import Conflict
from handrail.gate.operation import Operation
from handrail.store.actor import HANDRAIL, Actor, actor_from_text, agent_actor
from handrail.store.blobs import Blobs, NotKept
from handrail.store.events import CallOpened, CallSettled, Entry
from handrail.store.journal import Journal
from handrail.store.records import Records
from handrail.store.threads.message import Message
from handrail.store.threads.thread_records import SessionRecord
from handrail.store.threads.threads import Threads
from handrail.store.values import Caller, Handover, Json, Stop

log = logging.getLogger(__name__)


class Talk:
    """Our side of what one agent does for one thread: its desk."""

    def __init__(
        self,
        caller: Caller,
        spec: AgentSection | None,
        hands: Hands,
        recorder: Recorder,
        activities: Activities,
    ) -> None:
        self.recorder = recorder
        self.activities = activities
        self.session: Session | None = None
        self.upto = 0
        """The place of the last message this agent knows."""
        self.opening = anyio.Lock()
        self.env: Mapping[str, str] = {}
        """Keys that a person gave it for this thread. They are nowhere but in memory."""
        self._caller = caller
        self._spec = spec
        self._hands = hands
        self._asked: dict[str, str] = {}
        """Our call id to the agent's tool call id, for permission and form requests not yet read from the journal."""
        self._cwd = ""
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
        """On whose behalf it asks: the prompt's, while that runs; and of one that was cancelled, even later."""
        last = self._operation
        over = last is None or (last.ended and last.cancelled_by is None)
        return self._caller if over or last is None else last.caller

    def begin(self, operation: Operation, message: Message) -> None:
        """From now on, what it says is said in this message, and what it asks for is asked for this prompt."""
        self._operation, self._busy = operation, True
        self.recorder.begin(message)
        self.activities.begin(operation)

    def end(self, stop: Stop) -> None:
        """The prompt's work has ended."""
        self._busy = False
        self.recorder.end(stop)
        self.activities.end()

    def works_for(self, operation: str) -> bool:
        """It does the work of this one, now."""
        last = self._operation
        return self._busy and last is not None and last.id == operation and not last.ended

    async def cancel_activity(self, id: str, by: Actor) -> None:
        """End one thing that it is busy with. Raises LookupError, AgentError, and Conflict where it is over."""
        if self.activities.is_root(id) and self._operation is not None:
            self._operation.cancel(by)
            return
        self.activities.note_cancel(id, by)
        if self.session is None or not self.session.agent.about.tells_activities:
            raise Conflict(f"{self.agent} cannot end a part of its work. Cancel the whole of it instead.")
        if not await self.session.cancel_activity(id):
            raise Conflict(f"The activity {id} had ended before.")

    async def open(self, agent: Agent, folder: Folder, kept: SessionRecord | None) -> Handover:
        """A session of this agent, by its own record where it has one. Raises AgentError."""
        self._cwd, self.session = folder.cwd, None
        if kept is not None and (found := await agent.resume(kept.session, folder, self)) is not None:
            self.session, how = found
            self.upto = kept.upto
            return how
        if self.recorder.state:  # of a session that is no more
            self.recorder.state.clear()
            self.recorder.show_state()
        self.session = await agent.open(folder, self)
        self.upto = 0
        return "new"

    # The desk

    def update(self, update: Json) -> None:
        try:
            if text(update.get("sessionUpdate")) == TOLD:
                self.activities.hear(record(update.get("activity")))
            else:
                self.recorder.update(update)
        except Exception:  # what one update does to us must not cost the agent its line
            log.exception("an update of %s could not be taken down", self.agent)

    async def serve(self, method: str, params: Json) -> Json | None:
        assert self._spec is not None, "who has no program asks for nothing"
        if method == "session/request_permission":
            self._hear(record(params.get("toolCall")))
        who = Who(
            caller=self.caller,
            cwd=self._cwd,
            quirks=self._spec,
            on_asked=self._note_asked,
            known=self.recorder.known,
        )
        return await self._hands.serve(method, params, who)

    def _hear(self, asked: Json) -> None:
        """Some say only when they ask what they will do; what was said before stands."""
        if tool_call := name(asked.get("toolCallId")):
            known = self.recorder.known(tool_call)
            unsaid = {key: value for key, value in asked.items() if not known.get(key)}
            self.update({**unsaid, "sessionUpdate": "tool_call_update"})

    def lost(self, why: str) -> None:
        self.session = None
        self._hands.forget(self._caller)
        cancelled = self._operation is not None and self._operation.cancelled_by is not None
        if self._busy and cancelled and why:  # else whoever waits for it says so
            self.recorder.note(why)

    def _note_asked(self, tool_call: str, call: str) -> None:
        self._asked[call] = tool_call

    def link(self, ours: Ours) -> bool:
        """Show a call of ours as this agent's; False when the conversation has no message to show it in."""
        return self.recorder.link(self._asked.pop(ours.id, ""), ours)


LONGEST_TITLE = 60
"""Of one made of a prompt."""
LONGEST_GIVEN = 200
"""Of one that an agent gives."""
MOST_UNKEPT = 64 * 1024 * 1024
"""Bytes of pictures that may wait for the disk; what an agent shows beyond is not kept."""
DEFAULT = "Default"
"""The title of a thread that nobody began; it stays."""


class Talks:
    """Who takes part in what."""

    def __init__(
        self,
        journal: Journal,
        threads: Threads,
        records: Records,
        hands: Hands,
        specs: Callable[[str], AgentSection | None],
        images: Blobs,
    ) -> None:
        self.group: TaskGroup | None = None
        """Where what cannot be done at once is done; None while nothing can."""
        self._journal = journal
        self._threads = threads
        self._records = records
        self._hands = hands
        self._specs = specs
        self._images = images
        self._talks: dict[tuple[str, str], Talk] = {}
        self._speakers: dict[str, str] = {}
        """The agent whose state each thread shows, as far as that is known."""
        self._calls: dict[str, Talk] = {}
        """Whose our open calls are."""
        self._titles: dict[tuple[str, str], str] = {}
        """That agents gave, and that are not yet taken."""
        self._unkept = 0
        """Bytes of pictures that are on their way to disk."""

    def get(self, caller: Caller) -> Talk:
        """The talk of this agent on this thread."""
        thread, agent = caller.key, caller.client
        talk = self._talks.get((thread, agent))
        if talk is None:
            recorder = Recorder(
                lambda name, data: self._put_state(thread, agent, name, data),
                self._keep,
                lambda title: self._titled(thread, agent, title),
                notes=agent == OWN_AGENT,
            )
            activities = Activities(self._journal, thread)
            talk = Talk(caller, self._specs(agent), self._hands, recorder, activities)
            self._talks[thread, agent] = talk
        return talk

    def working_for(self, operation: str) -> Talk | None:
        """Who does the work of an operation that has not ended."""
        return next((talk for talk in self._talks.values() if talk.works_for(operation)), None)

    async def speaker(self, thread: str) -> str:
        """The agent whose state the thread shows; empty where none has spoken yet."""
        if thread not in self._speakers:
            state = (await self._threads.snapshot(thread, 1)).state
            self._speakers.setdefault(thread, text(state.get("agent", {}).get("name")))
        return self._speakers[thread]

    async def introduce(self, talk: Talk) -> None:
        """From now on the thread shows what this agent says of it as a whole."""
        before = await self.speaker(talk.thread)
        if before == talk.agent and not talk.recorder.state:  # it spoke here before the daemon began
            state = (await self._threads.snapshot(talk.thread, 1)).state
            talk.recorder.state.update({name: state[name] for name in NAMES if state.get(name)})
        elif before != talk.agent:
            self._speakers[talk.thread] = talk.agent
            self._threads.put_state(talk.thread, "agent", {"name": talk.agent})
            if before:
                talk.recorder.show_state()

    def part(self, thread: str) -> list[Talk]:
        """Nobody speaks on this thread any more; who did."""
        self._speakers.pop(thread, None)
        return [self._talks.pop(key) for key in list(self._talks) if key[0] == thread]

    async def hear(self, entries: Sequence[Entry]) -> None:
        """Link the calls in the journal to the conversations whose agents made them, over MCP or ACP."""
        for entry in entries:
            match entry.event:
                case CallOpened() as opened:
                    talk = self._talks.get((opened.caller.thread or "", opened.caller.client))
                    ours = Ours(opened.call, opened.tool, opened.title, opened.input)
                    if talk is not None and talk.link(ours):
                        self._calls[ours.id] = talk
                case CallSettled(call=call, ending=ending):
                    talk = self._calls.pop(call, None)
                    if talk is not None:
                        talk.recorder.settled(call, ending)
                case _:
                    continue

    async def look(self, sha: str) -> bytes | None:
        """A picture that is kept."""
        try:
            return await anyio.to_thread.run_sync(self._images.get, sha)
        except NotKept:
            return None

    def title(self, thread: str, words: str) -> None:
        """Name a thread that has no name yet by what was said in it first."""
        short = words if len(words) <= LONGEST_TITLE else f"{words[: LONGEST_TITLE - 1].rstrip()}…"
        self._threads.rename(thread, short, HANDRAIL)

    def _titled(self, thread: str, agent: str, title: str) -> None:
        """An agent gives the thread a title; of many, the newest counts."""
        begun = (thread, agent) in self._titles
        self._titles[thread, agent] = title
        if not begun:
            self._soon(self._retitle, thread, agent)

    async def _retitle(self, thread: str, agent: str) -> None:
        """Take an agent's own title, unless a person gave it one."""
        await self._threads.written()
        title = self._titles.pop((thread, agent))
        record = await self._records.threads.get(thread)
        if record is None or record.title in (title, DEFAULT):
            return
        if not record.title or actor_from_text(record.titled_by).kind in ("handrail", "agent"):
            self._threads.rename(thread, title[:LONGEST_GIVEN], agent_actor(agent))

    def _put_state(self, thread: str, agent: str, name: str, data: Json) -> None:
        if self._speakers.get(thread) == agent:  # else it is shown when this agent speaks again
            self._threads.put_state(thread, name, data)

    def _keep(self, content: bytes) -> str | None:
        if self._unkept + len(content) > MOST_UNKEPT:
            return None
        self._unkept += len(content)
        self._soon(self._put, content)
        return hashlib.sha256(content).hexdigest()

    async def _put(self, content: bytes) -> None:
        try:
            await anyio.to_thread.run_sync(self._images.put, content)
        finally:
            self._unkept -= len(content)

    def _soon(self, work: Callable[..., Awaitable[object]], *arguments: object) -> None:
        if self.group is not None:
            self.group.start_soon(_alone, work, *arguments)


async def _alone(work: Callable[..., Awaitable[object]], *arguments: object) -> None:
    """What goes wrong here takes nothing else along."""
    try:
        await work(*arguments)
    except Exception:
        log.exception("something an agent said could not be kept")
