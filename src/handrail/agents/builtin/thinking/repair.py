"""A conversation put in order, so that every provider takes it: pure, and the same each time.

Owns what a valid conversation is: it begins with a request, requests and answers alternate, every call of an answer has
its result first thing in the request that follows, no result is without its call, nothing is blank. It does not know
how a conversation came to be (history.py).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

_OURS = {"handrail": "note"}
_UNKNOWN = "No result: this call was interrupted, and what it did is unknown."
_GAP = "[Part of the conversation is missing here.]"


def note(sentence: str) -> UserPromptPart:
    """Something the model is told by us, not by the person."""
    return UserPromptPart([TextContent(sentence, metadata=dict(_OURS))])


def is_note(part: ModelRequestPart) -> bool:
    match part:
        case UserPromptPart(content=[TextContent(metadata=metadata)]):
            return metadata == _OURS
        case _:
            return False


def repaired(messages: Iterable[ModelMessage]) -> list[ModelMessage]:
    """The same conversation, valid. A call without a result is told to be interrupted."""
    return ordered(messages).messages


def ordered(messages: Iterable[ModelMessage]) -> "Order":
    """The same, to be added to."""
    order = Order()
    for message in messages:
        order.add(message)
    return order


def sendable(parts: Sequence[ModelResponsePart]) -> list[ModelResponsePart]:
    """What of an answer can be sent back: no blank text, and nothing at all where it was thoughts alone."""
    worded = [part for part in parts if not isinstance(part, TextPart) or part.content.strip()]
    return worded if any(not isinstance(part, ThinkingPart) for part in worded) else []


def calls_of(response: ModelResponse) -> list[ToolCallPart]:
    return [part for part in response.parts if isinstance(part, ToolCallPart)]


class Order:
    """A valid conversation, as it grows."""

    def __init__(self) -> None:
        self._before: list[ModelMessage] = []
        """What changes no more."""
        self._asking: list[ModelRequestPart] = []
        """The request at the end; nothing, where an answer is."""
        self._awaited: dict[str, int] = {}
        """Where in it the result of which call goes."""

    @property
    def messages(self) -> list[ModelMessage]:
        return [*self._before, *([ModelRequest(list(self._asking))] if self._asking else [])]

    def add(self, message: ModelMessage) -> None:
        if isinstance(message, ModelResponse):
            self._answer(message)
        else:
            for part in message.parts:
                self._say(part)

    def _say(self, part: ModelRequestPart) -> None:
        if not isinstance(part, ToolReturnPart):
            self._asking.append(part)
        elif (place := self._awaited.pop(part.tool_call_id, None)) is not None:
            self._asking[place] = part

    def _answer(self, response: ModelResponse) -> None:
        parts = sendable(response.parts)
        if not parts:
            return
        asking = self._asking or [replace(note(_GAP), timestamp=response.timestamp)]
        self._before += [ModelRequest(asking), replace(response, parts=parts)]
        calls = calls_of(response)
        self._asking = [_interrupted(call, response) for call in calls]
        self._awaited = {call.tool_call_id: place for place, call in enumerate(calls)}


def _interrupted(call: ToolCallPart, response: ModelResponse) -> ToolReturnPart:
    return ToolReturnPart(
        call.tool_name, _UNKNOWN, call.tool_call_id, timestamp=response.timestamp, outcome="interrupted"
    )
