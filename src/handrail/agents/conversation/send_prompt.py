"""Asking an agent: its session opened or taken up again, what it has not heard handed over, the prompt sent.

Owns the steps of one prompt towards its agent, and the words for what goes wrong on the way. It does not know whose turn
it is (floor.py), nor what the agent then says (recorder.py).

Handing a conversation over to an agent that has not heard all of it.

What a person says, as an agent is sent it: pieces of a prompt become content blocks.
"""

import base64
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast, get_args

import anyio
from pydantic import JsonValue

from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.acp.capabilities import About, Folder, McpDoor
from handrail.agents.acp.session import Session
from handrail.agents.conversation.participants import Talk, Talks
from handrail.agents.lenient_json import text
from handrail.agents.pool import Agents
from handrail.gate.operation import Operation
from handrail.store.threads.message import Message
from handrail.store.threads.thread_records import MessagePart, MessageRecord
from handrail.store.threads.threads import Threads
from handrail.store.values import Handover, Json, PartKind, Stop

LONGEST = 60_000
"""Bytes of a summary: an agent's context is dear, and its tools can look up the rest."""
_BEFORE = "This is what was said in this conversation before. It is for your information; what is asked of you follows it."
_STOPS = {
    "cancelled": "cancelled",
    "failed": "failed",
    "interrupted": "interrupted",
    "refusal": "refused",
}


@dataclass(frozen=True, slots=True)
class Summary:
    """What an agent is sent of what it has not heard."""

    text: str
    messages: int
    left_out: int
    """Older ones that did not fit."""


def summary(unheard: Sequence[MessageRecord]) -> Summary | None:
    """The newest messages, oldest first, as many as fit; None when there is nothing to tell."""
    written = [words for each in unheard if (words := _message(each))]
    taken: list[str] = []
    room = LONGEST - len(_BEFORE)
    for words in reversed(written):
        size = len(words.encode()) + 2
        if size > room:
            if not taken:
                taken.append(_fitting(words, room))
            break
        taken.append(words)
        room -= size
    if not taken:
        return None
    left_out = len(written) - len(taken)
    begin = [f"({left_out} older messages are left out.)"] if left_out else []
    whole = "\n\n".join([_BEFORE, *begin, *reversed(taken), "(End of what was said before.)"])
    return Summary(whole, len(taken), left_out)


def told(agent: str, how: Handover, sent: Summary | None) -> str:
    """How an agent knows what was said before, as a sentence for the person; empty when it need not be said."""
    sentences = [_HOW[how].format(agent)] if how in _HOW else []
    if sent is not None:
        many = "1 message" if sent.messages == 1 else f"{sent.messages} messages"
        older = f"; {sent.left_out} older ones did not fit" if sent.left_out else ""
        sentences.append(f"{agent} was sent a summary of {many}{older}.")
    return " ".join(sentences)


_HOW: dict[Handover, str] = {
    "resumed": "{} resumed its own record.",
    "loaded": "{} loaded its own record.",
}


def _message(message: MessageRecord) -> str:
    body = "\n".join(filter(None, _parts(message.parts)))
    if not body:
        return ""
    stop = _STOPS.get(message.stop or "")
    who = "Person" if message.role == "user" else message.agent or message.role.capitalize()
    return f"{who}{f' ({stop})' if stop else ''}:\n{body}"


def _parts(parts: Iterable[MessagePart]) -> Iterable[str]:
    """What was said, and what was done by its title; not what was thought or printed."""
    for part in parts:
        match part.kind:
            case "text":
                yield part.text.strip()
            case "call":
                yield f"[{text(part.data.get('title')) or 'a call'}: {text(part.data.get('status'))}]"
            case "file":
                yield f"[file {text(part.data.get('uri'))}]"
            case "image":
                yield "[a picture]"
            case "thought" | "plan" | "note" | "error" | "raw":
                yield ""


def _fitting(words: str, room: int) -> str:
    """The beginning and the end of a message that is too long by itself."""
    half, whole = (room - 100) // 2, words.encode()
    begin, end = (piece.decode(errors="ignore") for piece in (whole[:half], whole[-half:]))
    return f"{begin}\n… {len(words) - len(begin) - len(end):,} characters left out …\n{end}"


Look = Callable[[str], Awaitable[bytes | None]]
"""The picture of a hash; None when it is no longer kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a prompt: text, a file it points to, or a picture that is kept by its hash (store/part.py)."""

    kind: PartKind
    text: str = ""
    data: Json = field(default_factory=dict[str, JsonValue])


def pieces_of(message: Message) -> tuple[Piece, ...]:
    """What a message was made of."""
    return tuple(Piece(kind=part.kind, text=part.text, data=part.data) for part in message.parts)


def first_line(pieces: Iterable[Piece]) -> str:
    """What a prompt begins with; empty when it says nothing."""
    lines = [line.strip() for piece in pieces if piece.kind == "text" for line in piece.text.splitlines()]
    return next(filter(None, lines), "")


async def blocks_of(pieces: Iterable[Piece], about: About, look: Look) -> tuple[list[Json], list[str]]:
    """The blocks, and a sentence for each piece that was left out."""
    blocks: list[Json] = []
    unsent: list[str] = []
    for piece in pieces:
        match piece.kind:
            case "file":
                uri = text(piece.data.get("uri"))
                blocks.append(
                    {"type": "resource_link", "uri": uri, "name": text(piece.data.get("name")) or uri}
                )
            case "image" if not about.takes_images:
                unsent.append(f"{about.name} takes no pictures, so it was not sent the one above.")
            case "image":
                content = await look(text(piece.data.get("image")))
                if content is None:
                    unsent.append("A picture above is no longer kept, so it was not sent.")
                else:
                    mime = text(piece.data.get("mime")) or "image/png"
                    data = base64.b64encode(content).decode()
                    blocks.append({"type": "image", "mimeType": mime, "data": data})
            case _:
                blocks.append({"type": "text", "text": piece.text})
    return blocks, unsent


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
