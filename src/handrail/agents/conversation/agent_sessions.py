"""The sessions of agents for threads: open, resume, adopt, fork and release them.

A session that the agent keeps is resumed by its id, which the store holds for each thread and agent. Adopting takes up
a session that the agent lists; forking copies that of another thread. It does not know prompts (`send_prompt.py`).
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import anyio
from typing_extensions import TypedDict

from handrail.agents.acp.agent import Agent
from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.acp.capabilities import Folder, McpEntry
from handrail.agents.acp.session_list import ListedSession, list_sessions
from handrail.agents.conversation.participants import Participant, Participants
from handrail.agents.lenient_json import record
from handrail.agents.pool import Agents
from handrail.store.threads.threads import Threads
from handrail.store.values import Handover, Json

McpEntryBuilder = Callable[[str, str | None, str], McpEntry | None]
"""Builds the entry of our MCP server for a thread, a workspace and an agent's name, or None."""

LEAVE_SECONDS = 5.0
"""Bounds each step of an agent's release of a deleted thread."""
ORIGIN = "origin"
"""The state of a thread that began as a session of its agent, or as a fork: how the agent got its messages."""


class Origin(TypedDict):
    """State `origin`."""

    agent: str
    how: Handover
    """loaded, resumed: the thread continues a session that the agent had. forked: it copied its session for this fork.
    transcript: it gets a summary of this fork."""
    sentence: str


_ADOPTED: dict[Handover, str] = {
    "loaded": "Continued from a session of {}, which sent its messages.",
    "resumed": "Continued from a session of {}. It knows its earlier messages, but does not send them.",
}
_FORKED = "{} copied its session, so it knows this conversation."
_BUSY = "{} was working when this was forked."
NOT_LISTED = "{} does not list its sessions."
NOT_ADOPTED = "{} can neither load nor resume that session."


def is_adopted(state: Mapping[str, Json]) -> bool:
    """Whether a thread continues a session that the agent had before, and whose record is not ours to delete."""
    return state.get(ORIGIN, {}).get("how") in _ADOPTED


class AgentSessions:
    """The sessions of all agents."""

    def __init__(
        self, threads: Threads, agents: Agents, door: McpEntryBuilder, participants: Participants
    ) -> None:
        self._threads = threads
        self._agents = agents
        self._door = door
        self._participants = participants

    async def listed(self, agent: str, folder: str | None, cwd: str | None) -> list[ListedSession]:
        """The sessions that an agent has kept, of one folder or of all. Raises AgentError.

        The agent is started in `folder` if it does not run there.
        """
        program = await self._agents.get(agent, folder=folder)
        if not program.about.session("list"):
            raise AgentError(NOT_LISTED.format(agent))
        return await list_sessions(program, cwd)

    async def open(self, participant: Participant, *, anew: bool = False) -> Handover:
        """Make sure that the agent has a session for the thread; with `anew`, one without its own record.

        Raises AgentError, and LookupError if the thread was deleted.
        """
        async with participant.opening:
            agent = await self._start(participant)
            if participant.session is not None and participant.session.agent is agent and not anew:
                return "known"
            stored = None
            if not anew:
                stored = (await self._threads.sessions(participant.thread)).get(participant.agent)
            how = await participant.open(agent, self._session_folder(participant), stored)
            await self._bind(participant, how)
            return how

    async def adopt(self, participant: Participant, session: ListedSession) -> Handover:
        """Take up a session that the agent lists, with its history if the agent sends it. Raises AgentError."""
        async with participant.opening:
            agent = await self._start(participant)
            history = self._participants.build_history(participant, session.updated_at)
            how = await participant.adopt(agent, self._session_folder(participant), session.id, history)
            if how is None:
                raise AgentError(NOT_ADOPTED.format(participant.agent))
            participant.upto = history.messages
            self._show_origin(participant, how, _ADOPTED[how].format(participant.agent))
            await self._bind(participant, how)
            return how

    async def fork(self, participant: Participant, source: str, shared: int, *, is_busy: bool) -> Handover:
        """Copy the session that the agent has for the thread `source`, whose first `shared` messages the participant's
        thread has. If that fails, the next prompt carries a summary. The thread shows which it was, and why."""
        why = _BUSY.format(participant.agent) if is_busy else ""
        why = why or await self._copy_session(participant, source, shared)
        told = f" {participant.agent} gets a summary of it with your next message." if why else ""
        how: Handover = "transcript" if why else "forked"
        self._show_origin(participant, how, (why or _FORKED.format(participant.agent)) + told)
        return how

    async def _copy_session(self, participant: Participant, source: str, shared: int) -> str:
        """Why it was not copied, as a sentence; empty if it was."""
        stored = (await self._threads.sessions(source)).get(participant.agent)
        if stored is None:
            return f"{participant.agent} has no session for the conversation yet."
        known = sum(each.n <= stored.upto for each in await self._threads.transcript(source))
        if known > shared:
            return f"The session of {participant.agent} goes on after that message."
        try:
            async with participant.opening:
                agent = await self._start(participant)
                if not await participant.copy_session(
                    agent, self._session_folder(participant), stored.session
                ):
                    return f"{participant.agent} cannot copy its session."
                participant.upto = known
                await self._bind(participant, "forked")
        except AgentError as problem:
            return problem.sentence
        return ""

    async def leave(self, participant: Participant) -> None:
        """The thread is deleted: release the agent's session, and delete its record if possible; bounded."""
        with anyio.move_on_after(LEAVE_SECONDS):
            async with participant.opening:  # a concurrent `open` releases the session then
                pass
        state = (await self._threads.snapshot(participant.thread, 1)).state
        await self._release(participant, delete=not is_adopted(state))

    def _show_origin(self, participant: Participant, how: Handover, sentence: str) -> None:
        origin: Origin = {"agent": participant.agent, "how": how, "sentence": sentence}
        self._threads.put_state(participant.thread, ORIGIN, record(origin))

    async def _start(self, participant: Participant) -> Agent:
        """The agent's program, which the thread now shows."""
        await self._participants.introduce(participant)
        agent = await self._agents.get(
            participant.agent, participant.thread, participant.env, participant.workspace
        )
        self._participants.show_steering(participant, steers=agent.about.steers)
        return agent

    async def _bind(self, participant: Participant, how: Handover) -> None:
        assert participant.session is not None
        try:
            self._threads.bind(
                participant.thread, participant.agent, participant.session.id, how, participant.upto
            )
        except LookupError:  # deleted while the agent opened it
            await self._release(participant, delete=how in ("new", "forked"))
            raise

    async def _release(self, participant: Participant, *, delete: bool) -> None:
        session, participant.session = participant.session, None
        if session is not None and not session.agent.is_over:
            deletes = delete and session.agent.about.session("delete")
            with anyio.move_on_after(LEAVE_SECONDS), suppress(AgentError):
                await (session.delete() if deletes else session.close())
        with anyio.move_on_after(LEAVE_SECONDS):
            await self._agents.end(
                participant.agent,
                f"The thread that {participant.agent} worked for was deleted.",
                participant.thread,
            )

    def _session_folder(self, participant: Participant) -> Folder:
        workspace = participant.workspace
        self._threads.queued(
            participant.thread
        )  # raises LookupError for a deleted thread, before a credential is issued
        door = self._door(participant.thread, workspace, participant.agent)
        return Folder(cwd=workspace or str(Path.home()), mcp=door)
