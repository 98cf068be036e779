"""Sending one prompt to an agent: summarise missed messages, convert the parts; or steer the prompt that it works on.

Failures end up in the answer as an error part. It does not know the order of prompts (`thread_prompts.py`),
how its session is opened (`agent_sessions.py`), nor how the answer is recorded (`recorder.py`).
"""

import base64
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import field, replace

import anyio
from pydantic import JsonValue

from handrail.agents.acp.agent import Agent
from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.acp.capabilities import AgentInfo
from handrail.agents.acp.session import Session
from handrail.agents.conversation.agent_sessions import AgentSessions
from handrail.agents.conversation.denials import OUTPUT, Denials, format_denials
from handrail.agents.conversation.participants import Participant, Participants
from handrail.agents.conversation.tool_calls import ShownCall
from handrail.agents.lenient_json import text
from handrail.gate.operation import Operation
from handrail.lazy_dataclass import dataclass
from handrail.store.threads.message import Message
from handrail.store.threads.thread_records import MessagePart, MessageRecord
from handrail.store.threads.threads import Threads
from handrail.store.values import Handover, Json, PartKind, ProcessSeen, Stop
from handrail.terminal.descendants import Identity, end_descendants, list_descendants

LONGEST = 60_000
"""Bytes of a summary; bounds its share of the agent's context. The agent's tools can look up the rest."""
_BEFORE = "This is what was said in this conversation before. It is for your information; what is asked of you follows it."
_STOPS = {
    "cancelled": "cancelled",
    "failed": "failed",
    "interrupted": "interrupted",
    "refusal": "refused",
}


@dataclass(frozen=True, slots=True)
class Summary:
    """The text sent to an agent about messages it has not seen."""

    text: str
    messages: int
    left_out: int
    """Older messages that did not fit."""


def summarize_messages(messages: Sequence[MessageRecord]) -> Summary | None:
    """Summarise the newest messages that fit, oldest first; None if there are none."""
    texts = [text_of_message for each in messages if (text_of_message := _format_message(each))]
    chosen: list[str] = []
    room = LONGEST - len(_BEFORE)
    for text_of_message in reversed(texts):
        size = len(text_of_message.encode()) + 2
        if size > room:
            if not chosen:
                chosen.append(_cut_to_fit(text_of_message, room))
            break
        chosen.append(text_of_message)
        room -= size
    if not chosen:
        return None
    left_out = len(texts) - len(chosen)
    begin = [f"({left_out} older messages are left out.)"] if left_out else []
    whole = "\n\n".join([_BEFORE, *begin, *reversed(chosen), "(End of what was said before.)"])
    return Summary(whole, len(chosen), left_out)


def describe_handover(agent: str, how: Handover, sent: Summary | None) -> str:
    """One sentence for the person: how the agent got the earlier messages. Empty if there is nothing to
    report."""
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


def _format_message(message: MessageRecord) -> str:
    body = "\n".join(filter(None, _format_parts(message.parts)))
    if not body:
        return ""
    stop = _STOPS.get(message.stop or "")
    who = "Person" if message.role == "user" else message.agent or message.role.capitalize()
    return f"{who}{f' ({stop})' if stop else ''}:\n{body}"


def _format_parts(parts: Iterable[MessagePart]) -> Iterable[str]:
    """Texts, and titles of calls; no thoughts and no output."""
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


def _cut_to_fit(words: str, room: int) -> str:
    """The beginning and end of a message that alone exceeds the limit."""
    half, whole = (room - 100) // 2, words.encode()
    begin, end = (piece.decode(errors="ignore") for piece in (whole[:half], whole[-half:]))
    return f"{begin}\n… {len(words) - len(begin) - len(end):,} characters left out …\n{end}"


LoadImage = Callable[[str], Awaitable[bytes | None]]
"""Loads an image by its hash; None if it is no longer stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPart:
    """A part of a prompt: text, a link to a file, or a stored image."""

    kind: PartKind
    text: str = ""
    data: Json = field(default_factory=dict[str, JsonValue])


def prompt_parts_from_message(message: Message) -> tuple[PromptPart, ...]:
    """The pieces of a stored message."""
    return tuple(PromptPart(kind=part.kind, text=part.text, data=part.data) for part in message.parts)


def first_line(pieces: Iterable[PromptPart]) -> str:
    """The first non-empty line of a prompt's text, or an empty string."""
    lines = [line.strip() for piece in pieces if piece.kind == "text" for line in piece.text.splitlines()]
    return next(filter(None, lines), "")


async def blocks_of(
    pieces: Iterable[PromptPart], about: AgentInfo, load_image: LoadImage
) -> tuple[list[Json], list[str]]:
    """The content blocks, and a sentence for each piece that was left out."""
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
                content = await load_image(text(piece.data.get("image")))
                if content is None:
                    unsent.append("A picture above is no longer kept, so it was not sent.")
                else:
                    mime = text(piece.data.get("mime")) or "image/png"
                    data = base64.b64encode(content).decode()
                    blocks.append({"type": "image", "mimeType": mime, "data": data})
            case _:
                blocks.append({"type": "text", "text": piece.text})
    return blocks, unsent


@dataclass(frozen=True, slots=True)
class CancelledPrompt:
    """A prompt that was cancelled, and the work that it had begun."""

    answer: Message
    processes_before: frozenset[Identity]
    """The descendants of the agent when the prompt began."""
    calls: list[ShownCall] = field(default_factory=list[ShownCall])
    """The agent's own tool calls that ran at the cancel."""


async def end_leftovers(
    agent: Agent, new: frozenset[Identity], cancelled: CancelledPrompt, participants: Participants
) -> None:
    """End the commands of a cancelled prompt that its agent left running; list them in the receipts and the answer."""
    ended = await end_descendants(agent.pid, new, LEFT_SECONDS, LEFT_GRACE)
    answer = cancelled.answer
    if ended.stopped or ended.left:
        own_calls = [shown.ours.id for shown in cancelled.calls if shown.ours is not None]
        await participants.add_to_receipts(own_calls, ended)
    if ended.stopped:
        words = f"{agent.name} left a command running after the cancel. Handrail stopped"
        answer.add("note", f"{words} {_name_processes(ended.stopped)}.")
    if ended.left:
        words = f"Still running, and perhaps a part of {agent.name} itself:"
        answer.add("note", f"{words} {_name_processes(ended.left)}.")


def _name_processes(processes: Iterable[ProcessSeen]) -> str:
    return ", ".join(f"{process.name} ({process.pid})" for process in processes)


def _has_output(answer: Message) -> bool:
    """Whether the agent has produced any output."""
    return any(part.kind in OUTPUT for part in answer.parts)


log = logging.getLogger(__name__)

OnTaken = Callable[[], None]
_STOP_REASONS: dict[str, Stop] = {
    "max_tokens": "max_tokens",
    "max_turn_requests": "max_turn_requests",
    "refusal": "refusal",
    "cancelled": "cancelled",
}
"""The stop reasons of the protocol; any other counts as `end_turn`."""

LOOK_SECONDS = 2.0
"""Bounds how long a cancelled prompt waits for the list of processes."""
LEFT_SECONDS = 3.0
"""Seconds that the commands of a cancelled prompt get to end by themselves."""
LEFT_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL for such a command."""


class PromptSender:
    """Sends prompts to agents."""

    def __init__(
        self, threads: Threads, sessions: AgentSessions, denials: Denials, participants: Participants
    ) -> None:
        self._threads = threads
        self._sessions = sessions
        self._denials = denials
        self._participants = participants

    async def ask(
        self,
        participant: Participant,
        pieces: tuple[PromptPart, ...],
        prompt: Message,
        answer: Message,
        operation: Operation,
    ) -> Stop:
        """Prompt the agent; returns its stop reason. A failure is recorded in the answer and returned as
        "failed"."""
        try:
            return await self._send_prompt(participant, pieces, prompt, answer)
        except AgentError as problem:
            failure = problem
        except Exception as problem:
            log.exception("the prompt of operation %s broke", operation.id)
            failure = AgentError(f"Handrail itself failed here: {type(problem).__name__}: {problem}.")
        operation.error = failure.sentence
        participant.recorder.fail(failure)
        return "failed"

    async def steer(
        self, participant: Participant, pieces: tuple[PromptPart, ...], on_taken: OnTaken
    ) -> bool:
        """Give the agent a message for the prompt that it works on; False if it does not take it.

        `on_taken` is called before any later update of the session is recorded.
        """
        session = participant.session
        if session is None or not session.agent.about.steers:
            return False
        blocks, unsent = await blocks_of(pieces, session.agent.about, self._participants.look)
        try:
            taken = bool(blocks) and await session.steer(blocks, on_taken)
        except AgentError as problem:
            log.warning("%s could not be steered: %s", participant.agent, problem)
            return False
        for sentence in unsent if taken else ():
            participant.recorder.note(sentence)
        return taken

    async def _send_prompt(
        self, participant: Participant, pieces: tuple[PromptPart, ...], prompt: Message, answer: Message
    ) -> Stop:
        how = await self._sessions.open(participant)
        try:
            return await self._send_in_session(participant, pieces, prompt, answer, how)
        except AgentError as problem:
            if not participant.was_cancelled or not problem.is_refusal or _has_output(answer):
                raise
            words = f"{participant.agent} could not go on after the cancel, so it was given a new session."
            participant.recorder.note(f"{words} {problem.sentence}")
        how = await self._sessions.open(participant, anew=True)
        return await self._send_in_session(participant, pieces, prompt, answer, how)

    async def _send_in_session(
        self,
        participant: Participant,
        pieces: tuple[PromptPart, ...],
        prompt: Message,
        answer: Message,
        how: Handover,
    ) -> Stop:
        session = participant.session
        if session is None:
            raise AgentError(f"{participant.agent} ended just as it was to be asked.")
        sent = await self._summarize_unseen(participant, prompt)
        if words := describe_handover(participant.agent, how, sent):
            participant.recorder.note(words)
        blocks, unsent = await blocks_of(pieces, session.agent.about, self._participants.look)
        for sentence in unsent:
            participant.recorder.note(sentence)
        denials = await self._denials.untold(participant.thread, participant.agent, prompt.n)
        for denial in denials:
            participant.recorder.note(f"{participant.agent} was told: {denial}")
        texts = [sent.text if sent else "", format_denials(denials)]
        first: list[Json] = [{"type": "text", "text": words} for words in texts if words]
        return await self._send_blocks(
            participant, session, [*first, *blocks], answer, "transcript" if sent else how
        )

    async def _send_blocks(
        self, participant: Participant, session: Session, blocks: list[Json], answer: Message, how: Handover
    ) -> Stop:
        """Send the blocks. The agent counts as knowing the prompt, unless it failed without any output."""
        before, participant.upto = participant.upto, answer.n
        self._threads.bind(participant.thread, participant.agent, session.id, how, participant.upto)
        cancelled = CancelledPrompt(answer, await list_descendants(session.agent.pid))
        begun, is_alone = session.agent.prompts_begun, session.agent.prompts_running == 0
        try:
            result = await session.prompt(
                blocks, lambda: cancelled.calls.extend(participant.recorder.running_calls())
            )
        except anyio.get_cancelled_exc_class():
            participant.was_cancelled = True
            if is_alone and session.agent.prompts_begun == begun + 1:
                cancelled = replace(cancelled, answer=participant.recorder.message or answer)
                await self._look_for_leftovers(session.agent, cancelled)
            raise
        except AgentError:
            if not _has_output(answer) and participant.upto == answer.n:  # else it was steered
                participant.upto = before
                self._threads.bind(participant.thread, participant.agent, session.id, how, before)
            raise
        participant.was_cancelled = False
        return _STOP_REASONS.get(result.stop, "end_turn")

    async def _look_for_leftovers(self, agent: Agent, cancelled: CancelledPrompt) -> None:
        """After a cancel: end what the agent started for the prompt and does not end itself.

        Called only if no other prompt ran in the same program, whose commands would look alike.
        """
        with anyio.move_on_after(LOOK_SECONDS, shield=True):
            if agent.is_over:
                return
            new = await list_descendants(agent.pid) - cancelled.processes_before
            if new:
                self._participants.run_in_background(end_leftovers, agent, new, cancelled, self._participants)

    async def _summarize_unseen(self, participant: Participant, prompt: Message) -> Summary | None:
        """Summarise the messages before this prompt that the agent has not seen."""
        messages = await self._threads.transcript(participant.thread, participant.upto)
        return summarize_messages([each for each in messages if each.n < prompt.n])
