"""Compaction: older parts of a conversation, summed up by the model so that the rest fits.

Owns when that is due, and that whatever goes wrong or is cancelled leaves the conversation as it was. It does not know
which parts these are (cut.py), nor what the conversation is about.

Where a conversation is cut in two: what is old enough to be summed up, and what stays as it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from handrail.own_agent.activity import Activity
from handrail.own_agent.budget import PER_TOKEN, characters, tokens
from handrail.own_agent.history import is_note, note, repaired
from handrail.own_agent.model_request import Mind, Unheard, request
from handrail.own_agent.models.model import ModelError

_KEPT = 0.2
"""Of the context, or of the conversation where that is unknown: recent steps that stay as they were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A conversation in two."""

    old: Sequence[ModelMessage]
    prompt: Sequence[ModelRequestPart] = ()
    """What is being worked on, where it is among the old: it stays too."""
    recent: Sequence[ModelMessage] = ()
    """What stays, from an answer on."""

    @property
    def worthwhile(self) -> bool:
        """Whether anything was done that could be summed up."""
        return any(isinstance(message, ModelResponse) for message in self.old)

    @property
    def kept(self) -> str:
        """What stays, in words."""
        steps = sum(isinstance(message, ModelResponse) for message in self.recent)
        last = (
            "the last answer and its results" if steps == 1 else f"the last {steps} answers and their results"
        )
        return " and ".join(["the prompt"] * bool(self.prompt) + [last] * bool(steps)) or "nothing"


def cut(messages: Sequence[ModelMessage], window: int | None) -> Cut:
    """So that the prompt and the recent steps stay."""
    place = _place(messages, window or tokens(messages))
    old, recent = messages[:place], messages[place:]
    return Cut(old=old, prompt=_prompt(old, recent), recent=recent)


def _place(messages: Sequence[ModelMessage], window: int) -> int:
    """Where the recent steps begin: the last one in any case."""
    place = len(messages) - 2
    while place > 3 and characters(messages[place - 2 :]) < _KEPT * window * PER_TOKEN:
        place -= 2
    return max(place, 0)


def _prompt(old: Sequence[ModelMessage], recent: Sequence[ModelMessage]) -> Sequence[ModelRequestPart]:
    """The last words of the person, unless they are among the recent messages."""
    if any(_said(message) for message in recent):
        return ()
    return next((said for message in reversed(old) if (said := _said(message))), ())


def _said(message: ModelMessage) -> list[ModelRequestPart]:
    if isinstance(message, ModelResponse):
        return []
    return [part for part in message.parts if isinstance(part, UserPromptPart) and not is_note(part)]


_GROWN = 1.1  # times the size at which it was tried in vain, before it is tried again
_CLIPPED = 1_000  # characters of each result, where a conversation is too long even to be summed up

_ASK = """\
[The conversation is getting too long for you, and will be replaced by your summary of it. Write that summary now, in \
plain text, without calling any tool. Whoever goes on from it knows nothing else. Say: what the person wants, in their \
own words where these matter, with every wish and limit they gave; what was done and found out, with exact names of \
files, functions, commands, handles and ids, and what failed; what was decided and why; what is left to do, and the next \
step.{focus}]"""
_SUMMARY = "[The conversation so far was summed up to save room. The summary:]\n\n{summary}"


async def compact(mind: Mind, activity: Activity, focus: str | None = None) -> bool:
    """Sum up what is older. True where the conversation is shorter now.

    By itself, the current prompt and recent steps stay as they were. With a `focus`, perhaps an empty one, a person
    asked for it: everything is summed up, with special care for that.
    """
    messages = mind.history.messages
    mind.tried = tokens(messages)
    two = cut(messages, mind.window) if focus is None else Cut(old=messages)
    if not two.worthwhile:
        return False
    with activity.begin("compaction", "Summing up the conversation") as compaction:
        try:
            summary = await _summary(mind, two.old, focus or "", compaction)
        except ModelError as error:
            compaction.ending, compaction.detail = "failed", error.sentence
            mind.voice.note(
                f"The conversation could not be summed up, and goes on as it is. {error.sentence}"
            )
            return False
        if summary is None:
            compaction.ending = "cancelled"
            return False
        compaction.detail = _replace(mind, two, summary)
        mind.voice.note(compaction.detail)
        mind.voice.usage(mind.tried, mind.window, mind.costs.total)
        return True
    return False


def is_full(mind: Mind) -> bool:
    """Whether it is time to sum up."""
    if mind.window is None:
        return False
    return tokens(mind.history.messages) > max(mind.compact_at * mind.window, mind.tried * _GROWN)


async def _summary(mind: Mind, old: Sequence[ModelMessage], focus: str, compaction: Activity) -> str | None:
    """None where the request was cancelled. Raises ModelError."""
    wish = ModelRequest([note(_ASK.format(focus=f" Take special care of this: {focus}" if focus else ""))])
    with compaction.begin("model", mind.model.name) as asking:
        try:
            answer = await request(mind, repaired([*old, wish]), asking, Unheard(mind.voice))
        except ModelError as error:
            if not error.too_long:
                raise
            answer = await request(mind, repaired([*_clipped(old), wish]), asking, Unheard(mind.voice))
        summary = "".join(part.content for part in answer.parts if isinstance(part, TextPart))
        if not summary.strip():
            raise ModelError("The model gave no summary.")
        return summary
    return None


def _clipped(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """With the beginning of each result alone."""
    return [
        replace(message, parts=[_clip(part) for part in message.parts])
        if isinstance(message, ModelRequest)
        else message
        for message in messages
    ]


def _clip(part: ModelRequestPart) -> ModelRequestPart:
    if not isinstance(part, ToolReturnPart):
        return part
    return replace(part, content=f"{part.model_response_str()[:_CLIPPED]} […]")


def _replace(mind: Mind, two: Cut, summary: str) -> str:
    """The conversation with its summary in place of what is old; and a sentence that says so."""
    before, length = tokens(mind.history.messages), characters(mind.history.messages)
    beginning = ModelRequest([note(_SUMMARY.format(summary=summary)), *two.prompt])
    new = [beginning, *(_uncounted(message) for message in two.recent)]
    mind.history.replace(new)
    mind.tried = tokens(new)
    after = round(before * characters(new) / max(length, 1))
    return f"Summed up the conversation: about {before:,} → {after:,} tokens. Kept as it was: {two.kept}."


def _uncounted(message: ModelMessage) -> ModelMessage:
    """What a provider counted then is not what it would count now."""
    return replace(message, usage=RequestUsage()) if isinstance(message, ModelResponse) else message
