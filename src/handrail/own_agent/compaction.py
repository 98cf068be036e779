"""Compaction: the model summarises the older part of a conversation so that the rest fits its context.

Decides when compaction is due and where to cut. On failure or cancellation the conversation is left
unchanged.
"""

from collections.abc import Sequence
from dataclasses import replace

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

from handrail.lazy_dataclass import dataclass
from handrail.own_agent.activity import Activity
from handrail.own_agent.budget import PER_TOKEN, characters, tokens
from handrail.own_agent.history import is_note, note, repair_messages
from handrail.own_agent.model_request import AgentContext, SilentListener, request
from handrail.own_agent.models.model import ModelError

_KEEP_SHARE = 0.2
"""The share of the context window that recent steps may keep; of the conversation if the window is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A conversation split into the part to summarise and the part to keep."""

    old: Sequence[ModelMessage]
    prompt: Sequence[ModelRequestPart] = ()
    """The current prompt if it is in `old`; it is kept too."""
    recent: Sequence[ModelMessage] = ()
    """The messages to keep; the first is a model response."""

    @property
    def worthwhile(self) -> bool:
        """Whether `old` holds any model response, so that there is something to summarise."""
        return any(isinstance(message, ModelResponse) for message in self.old)

    @property
    def kept(self) -> str:
        """A description of the kept part, for the note to the person."""
        steps = sum(isinstance(message, ModelResponse) for message in self.recent)
        last = (
            "the last answer and its results" if steps == 1 else f"the last {steps} answers and their results"
        )
        return " and ".join(["the prompt"] * bool(self.prompt) + [last] * bool(steps)) or "nothing"


def cut(messages: Sequence[ModelMessage], window: int | None) -> Cut:
    """Split so that the current prompt and the recent steps are kept."""
    place = _recent_start(messages, window or tokens(messages))
    old, recent = messages[:place], messages[place:]
    return Cut(old=old, prompt=_prompt(old, recent), recent=recent)


def _recent_start(messages: Sequence[ModelMessage], window: int) -> int:
    """The index where the recent steps begin; the last step is always recent."""
    place = len(messages) - 2
    while place > 3 and characters(messages[place - 2 :]) < _KEEP_SHARE * window * PER_TOKEN:
        place -= 2
    return max(place, 0)


def _prompt(old: Sequence[ModelMessage], recent: Sequence[ModelMessage]) -> Sequence[ModelRequestPart]:
    """The person's last prompt, unless it is among the recent messages."""
    if any(_prompt_parts(message) for message in recent):
        return ()
    return next((parts for message in reversed(old) if (parts := _prompt_parts(message))), ())


def _prompt_parts(message: ModelMessage) -> list[ModelRequestPart]:
    if isinstance(message, ModelResponse):
        return []
    return [part for part in message.parts if isinstance(part, UserPromptPart) and not is_note(part)]


_RETRY_GROWTH = 1.1  # growth factor before a failed compaction is tried again
_CLIP_CHARACTERS = 1_000  # of each tool result, when the conversation is too long even to be summarised

_ASK = """\
[The conversation is getting too long for you, and will be replaced by your summary of it. Write that summary now, in \
plain text, without calling any tool. Whoever goes on from it knows nothing else. Say: what the person wants, in their \
own words where these matter, with every wish and limit they gave; what was done and found out, with exact names of \
files, functions, commands, handles and ids, and what failed; what was decided and why; what is left to do, and the next \
step.{focus}]"""
_SUMMARY = "[The conversation so far was summed up to save room. The summary:]\n\n{summary}"


async def compact(context: AgentContext, activity: Activity, focus: str | None = None) -> bool:
    """Summarise the older part. True if the conversation is shorter now.

    Without a `focus`, the current prompt and recent steps are kept. With a `focus`, even an empty one, a
    person ran `/compact`: everything is summarised, with special care for the focus.
    """
    messages = context.history.messages
    context.tried = tokens(messages)
    two = cut(messages, context.window) if focus is None else Cut(old=messages)
    if not two.worthwhile:
        return False
    with activity.begin("compaction", "Summing up the conversation") as compaction:
        try:
            summary = await _summary(context, two.old, focus or "", compaction)
        except ModelError as error:
            compaction.ending, compaction.detail = "failed", error.sentence
            context.host.note(
                f"The conversation could not be summed up, and goes on as it is. {error.sentence}"
            )
            return False
        if summary is None:
            compaction.ending = "cancelled"
            return False
        compaction.detail = _replace(context, two, summary)
        context.host.note(compaction.detail)
        context.host.usage(context.tried, context.window, context.costs.total)
        return True
    return False


def is_full(context: AgentContext) -> bool:
    """Whether the conversation has reached the compaction threshold."""
    if context.window is None:
        return False
    return tokens(context.history.messages) > max(
        context.compact_at * context.window, context.tried * _RETRY_GROWTH
    )


async def _summary(
    context: AgentContext, old: Sequence[ModelMessage], focus: str, compaction: Activity
) -> str | None:
    """Ask the model for a summary. None if the request was cancelled. Raises ModelError."""
    question = ModelRequest(
        [note(_ASK.format(focus=f" Take special care of this: {focus}" if focus else ""))]
    )
    with compaction.begin("model", context.model.name) as asking:
        try:
            answer = await request(
                context, repair_messages([*old, question]), asking, SilentListener(context.host)
            )
        except ModelError as error:
            if not error.too_long:
                raise
            answer = await request(
                context, repair_messages([*_clipped(old), question]), asking, SilentListener(context.host)
            )
        summary = "".join(part.content for part in answer.parts if isinstance(part, TextPart))
        if not summary.strip():
            raise ModelError("The model gave no summary.")
        return summary
    return None


def _clipped(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The messages with each tool result cut to its beginning."""
    return [
        replace(message, parts=[_clip(part) for part in message.parts])
        if isinstance(message, ModelRequest)
        else message
        for message in messages
    ]


def _clip(part: ModelRequestPart) -> ModelRequestPart:
    if not isinstance(part, ToolReturnPart):
        return part
    return replace(part, content=f"{part.model_response_str()[:_CLIP_CHARACTERS]} […]")


def _replace(context: AgentContext, two: Cut, summary: str) -> str:
    """Replace the old part with its summary, and return a sentence about it."""
    before, length = tokens(context.history.messages), characters(context.history.messages)
    beginning = ModelRequest([note(_SUMMARY.format(summary=summary)), *two.prompt])
    new = [beginning, *(_uncounted(message) for message in two.recent)]
    context.history.replace(new)
    context.tried = tokens(new)
    after = round(before * characters(new) / max(length, 1))
    return f"Summed up the conversation: about {before:,} → {after:,} tokens. Kept as it was: {two.kept}."


def _uncounted(message: ModelMessage) -> ModelMessage:
    """Drop the usage numbers: they count the conversation before compaction."""
    return replace(message, usage=RequestUsage()) if isinstance(message, ModelResponse) else message
