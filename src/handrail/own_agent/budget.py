"""Limits of one prompt (steps, tokens, seconds), the cost of a conversation, and token estimates."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import field
from decimal import Decimal
from itertools import takewhile
from typing import Literal, cast

import anyio
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelResponse,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from handrail.lazy_dataclass import dataclass

Stop = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
"""Why an operation ended: ACP's stop reasons."""

MOST_AGENTS = 100
"""Sub-agents of one prompt at all levels together. Each has its own step limit, so without this bound they
could multiply without end."""


@dataclass(frozen=True, slots=True)
class LimitReached:
    """A limit that was reached, with the sentence to show."""

    stop: Stop
    sentence: str


@dataclass(slots=True, kw_only=True)
class Budget:
    """The budget of one prompt, or of a sub-agent, which also counts against `above`. 0 means no limit."""

    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    above: "Budget | None" = None
    taken: int = field(default=0, init=False)
    """Steps taken so far."""
    used: int = field(default=0, init=False)
    """Input and output tokens used so far."""
    agents: int = field(default=0, init=False)
    """Sub-agents started so far, nested ones included."""
    _time: anyio.CancelScope | None = field(default=None, init=False)

    def below(self) -> "Budget":
        """The budget of a sub-agent: its own steps, with the tokens and the time of this one."""
        return Budget(steps=self.steps, above=self)

    def step(self) -> int:
        """Count one more step and return its number."""
        self.taken += 1
        return self.taken

    def spend(self, tokens: int) -> None:
        self.used += tokens
        if self.above is not None:
            self.above.spend(tokens)

    def hire(self) -> bool:
        """Count one more sub-agent, here and above. False if the prompt has reached its limit."""
        if self.above is not None and not self.above.hire():
            return False
        self.agents += 1
        return self.agents <= MOST_AGENTS

    def over(self) -> LimitReached | None:
        """The limit that forbids another step, if any."""
        if self.late:
            return LimitReached("max_turn_requests", "Stopped: the time that this prompt may take is over.")
        if self.steps and self.taken >= self.steps:
            return LimitReached(
                "max_turn_requests", f"Stopped after {self.taken} steps, the most there may be."
            )
        return self.spent()

    def spent(self) -> LimitReached | None:
        """The token limit, here or above, if it is reached."""
        if self.tokens and self.used >= self.tokens:
            sentence = f"Stopped: it used {self.used:,} tokens of the {self.tokens:,} it may use."
            return LimitReached("max_tokens", sentence)
        return None if self.above is None else self.above.spent()

    @property
    def late(self) -> bool:
        """Whether the time limit has passed and the work is being cancelled for it."""
        own = self._time is not None and self._time.cancel_called
        return own or (self.above is not None and self.above.late)

    @property
    def why(self) -> str:
        """Why the work was cancelled, as a phrase for the model."""
        return "the time for it was over." if self.late else "the person cancelled it."

    @contextmanager
    def clock(self) -> "Generator[None]":
        """Cancel the body of the `with` when the time limit has passed."""
        with anyio.move_on_after(self.seconds or None) as self._time:
            yield


@dataclass(slots=True)
class Costs:
    """Cost of a whole conversation in US dollars, sub-agents included; None until a price is known."""

    total: Decimal | None = None

    def add(self, cost: Decimal | None) -> None:
        if cost is not None:
            self.total = cost + (self.total or Decimal(0))


PER_TOKEN = 4  # characters per token, for English text and code
_PICTURE = 6_000  # characters counted for an image


def tokens(messages: Sequence[ModelMessage]) -> int:
    later = list(takewhile(lambda message: not _counted(message), reversed(messages)))
    counted = 0 if len(later) == len(messages) else _counted(messages[-1 - len(later)])
    return counted + characters(later) // PER_TOKEN


def characters(messages: Sequence[ModelMessage]) -> int:
    return sum(_length(part) for message in messages for part in message.parts)


def _counted(message: ModelMessage) -> int:
    if not isinstance(message, ModelResponse):
        return 0
    return message.usage.input_tokens + message.usage.output_tokens


def _length(part: object) -> int:
    match part:
        case TextPart(content=str(text)) | ThinkingPart(content=str(text)):
            return len(text)
        case ToolCallPart():
            return len(part.tool_name) + len(part.args_as_json_str())
        case UserPromptPart(content=content) | ToolReturnPart(content=content):
            return _content(content)
        case _:
            return 0


def _content(content: object) -> int:
    match content:
        case str(text) | TextContent(content=text):
            return len(text)
        case BinaryContent():
            return _PICTURE
        case list() | tuple():
            return sum(_content(each) for each in cast("Sequence[object]", content))
        case _:
            return 0
