"""Handing a conversation over to an agent that has not heard all of it.

Owns the words by which it is told what was said before, and by which the person is told how it knows. Pure. It does not
know how agents keep their own records, nor when one is needed (talk.py).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from handrail.agents.loose import text
from handrail.store.thread.record import MessagePart, MessageRecord
from handrail.store.value import Handover

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
