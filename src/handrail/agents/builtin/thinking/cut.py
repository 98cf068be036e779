"""Where a conversation is cut in two: what is old enough to be summed up, and what stays as it was.

Owns that choice alone; pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponse, UserPromptPart

from handrail.agents.builtin.thinking.repair import is_note
from handrail.agents.builtin.thinking.size import PER_TOKEN, characters, tokens

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
