"""A talk: one agent's part in one conversation, and our side of its session.

Owns the session while it is open, how it is opened again, and on whose behalf the agent asks for things. It does not
know whose turn it is (floor.py), how a session is spoken to (session.py), or what its requests do (hands.py).
"""

import logging
from collections.abc import Mapping

import anyio

from handrail.agents.hands.hands import Hands
from handrail.agents.hands.who import Who
from handrail.agents.loose import name, record, text
from handrail.agents.program.about import Folder
from handrail.agents.program.agent import Agent
from handrail.agents.program.extension import TOLD
from handrail.agents.program.session import Session
from handrail.agents.talk.activities import Activities
from handrail.agents.talk.recorder import Recorder
from handrail.agents.talk.telling import Ours
from handrail.config import AgentSection
from handrail.errors import Conflict
from handrail.gate.operation import Operation
from handrail.store.actor import Actor
from handrail.store.thread.message import Message
from handrail.store.thread.record import SessionRecord
from handrail.store.value import Caller, Handover, Json, Stop

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
