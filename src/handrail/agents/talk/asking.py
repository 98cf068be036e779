"""Asking an agent: its session opened or taken up again, what it has not heard handed over, the prompt sent.

Owns the steps of one prompt towards its agent, and the words for what goes wrong on the way. It does not know whose turn
it is (floor.py), nor what the agent then says (recorder.py).
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import cast, get_args

import anyio

from handrail.agents.agents import Agents
from handrail.agents.failure import AgentError
from handrail.agents.program.about import Folder, McpDoor
from handrail.agents.program.session import Session
from handrail.agents.talk.blocks import Piece, blocks_of
from handrail.agents.talk.handover import Summary, summary, told
from handrail.agents.talk.talk import Talk
from handrail.agents.talk.talks import Talks
from handrail.gate.operation import Operation
from handrail.store.thread.message import Message
from handrail.store.threads import Threads
from handrail.store.value import Handover, Json, Stop

log = logging.getLogger(__name__)

Door = Callable[[str, str | None, str], McpDoor | None]
"""Our MCP server for a thread, its workspace and an agent's name; None where there is none."""

LEAVE_SECONDS = 5.0
"""What an agent gets to let go of a conversation that is deleted."""


class Asking:
    """How prompts reach agents."""

    def __init__(self, threads: Threads, agents: Agents, door: Door, talks: Talks) -> None:
        self._threads = threads
        self._agents = agents
        self._door = door
        self._talks = talks

    async def ask(
        self, talk: Talk, pieces: tuple[Piece, ...], prompt: Message, answer: Message, operation: Operation
    ) -> Stop:
        """Prompt the agent; returns when it has stopped, however it did. What went wrong is said in its answer."""
        try:
            return await self._ask(talk, pieces, prompt, answer)
        except AgentError as problem:
            failure = problem
        except Exception as problem:
            log.exception("the prompt of operation %s broke", operation.id)
            failure = AgentError(f"Handrail itself failed here: {type(problem).__name__}: {problem}.")
        operation.error = failure.sentence
        talk.recorder.fail(failure)
        return "failed"

    async def open(self, talk: Talk) -> Handover:
        """See to it that the agent has a session for the thread. Raises AgentError, and LookupError where it is gone."""
        async with talk.opening:
            await self._talks.introduce(talk)
            agent = await self._agents.get(talk.agent, talk.thread, talk.env)
            if talk.session is not None and talk.session.agent is agent:
                return "known"
            kept = (await self._threads.sessions(talk.thread)).get(talk.agent)
            how = await talk.open(agent, self._folder(talk), kept)
            assert talk.session is not None
            try:
                self._threads.bind(talk.thread, talk.agent, talk.session.id, how, talk.upto)
            except LookupError:  # deleted while the agent opened it
                await self._let_go(talk)
                raise
            return how

    async def leave(self, talk: Talk) -> None:
        """The conversation is deleted: the agent forgets it too, as far as it can, and within a bound."""
        with anyio.move_on_after(LEAVE_SECONDS):
            async with talk.opening:  # else whoever opens it lets go of it then
                pass
        await self._let_go(talk)

    async def _let_go(self, talk: Talk) -> None:
        session, talk.session = talk.session, None
        if session is not None and not session.agent.is_over:
            with anyio.move_on_after(LEAVE_SECONDS), suppress(AgentError):
                await (session.delete() if session.agent.about.session("delete") else session.close())
        with anyio.move_on_after(LEAVE_SECONDS):
            await self._agents.end(
                talk.agent, f"The thread that {talk.agent} worked for was deleted.", talk.thread
            )

    async def _ask(self, talk: Talk, pieces: tuple[Piece, ...], prompt: Message, answer: Message) -> Stop:
        how = await self.open(talk)
        session = talk.session
        if session is None:
            raise AgentError(f"{talk.agent} ended just as it was to be asked.")
        sent = await self._unheard(talk, prompt)
        if words := told(talk.agent, how, sent):
            talk.recorder.note(words)
        blocks, unsent = await blocks_of(pieces, session.agent.about, self._talks.look)
        for sentence in unsent:
            talk.recorder.note(sentence)
        first: list[Json] = [] if sent is None else [{"type": "text", "text": sent.text}]
        return await self._send(talk, session, [*first, *blocks], answer, "transcript" if sent else how)

    async def _send(
        self, talk: Talk, session: Session, blocks: list[Json], answer: Message, how: Handover
    ) -> Stop:
        """Whatever becomes of it, the agent knows the prompt; unless it failed before it said a word."""
        before, talk.upto = talk.upto, answer.n
        self._threads.bind(talk.thread, talk.agent, session.id, how, talk.upto)
        try:
            ended = await session.prompt(blocks)
        except AgentError:
            if not any(part.kind in ("text", "thought", "call") for part in answer.parts):
                talk.upto = before
                self._threads.bind(talk.thread, talk.agent, session.id, how, before)
            raise
        return cast("Stop", ended.stop) if ended.stop in get_args(Stop) else "end_turn"

    async def _unheard(self, talk: Talk, prompt: Message) -> Summary | None:
        """What was said before this prompt that the agent does not know."""
        said = await self._threads.transcript(talk.thread, talk.upto)
        return summary([each for each in said if each.n < prompt.n])

    def _folder(self, talk: Talk) -> Folder:
        workspace = talk.workspace
        self._threads.queued(talk.thread)  # raises LookupError: for a thread that is gone, nothing is lent
        door = self._door(talk.thread, workspace, talk.agent)
        return Folder(cwd=workspace or str(Path.home()), mcp=door)
