"""The history of a conversation: facts in order of arrival, and the valid messages made from them.

Facts are prompts, responses, tool results and notes about interrupted answers. They are only appended, so
they can be saved one by one. The messages made from them are valid for every provider at any moment: a tool
call without a result gets an "interrupted" one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Any, Literal, cast

from pydantic_ai import messages
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
    UserContent,
    UserPromptPart,
)

from handrail.own_agent.sanitize import is_id, sanitize_json, sanitize_text, sanitize_tool_name
from handrail.own_agent.tools.agent_tool import Result

OnChange = Callable[[ModelMessage | None], None]
"""Called with each new fact, and with None when all facts were replaced."""

_CUT_OFF = "[The answer above is incomplete: {why}]"
_UNANSWERED = "[No answer was given here: {why}]"
_EMPTY = "(an empty prompt)"
_OUTCOMES: dict[str, Literal["success", "failed", "denied", "interrupted"]] = {
    "done": "success",
    "failed": "failed",
    "denied": "denied",
    "cancelled": "interrupted",
}


class History:
    """The history of one conversation."""

    def __init__(self, facts: Iterable[ModelMessage] = (), on_change: OnChange | None = None) -> None:
        self.facts = list(facts)
        """In order of arrival: what to save, and what to pass to the constructor later."""
        self.on_change = on_change
        self._order = build_order(self.facts)
        self._ids = {
            call.tool_call_id
            for each in self.facts
            if isinstance(each, ModelResponse)
            for call in calls_of(each)
        }

    @property
    def messages(self) -> list[ModelMessage]:
        """The conversation as valid messages."""
        return self._order.messages

    def beside(self) -> "History":
        """A new empty history that shares the set of used call ids, so that ids never collide with this
        one's."""
        other = History()
        other._ids = self._ids
        return other

    def add_prompt(self, content: str | Sequence[UserContent]) -> None:
        self._add(ModelRequest([UserPromptPart(_sanitized_content(content))]))

    def add_response(self, response: ModelResponse) -> list[ToolCallPart]:
        """Add a response. Returns its tool calls as stored: each with a unique id and an object as input."""
        stored = replace(response, parts=[self._sanitized(part) for part in sendable(response.parts)])
        self._add(stored)
        return calls_of(stored)

    def add_result(self, call: ToolCallPart, result: Result) -> None:
        """Add the result of a call; only the first one counts."""
        text = sanitize_text(result.text, "(no output)")
        content = [text, *result.images] if result.images else text
        outcome = _OUTCOMES[result.ended]
        self._add(ModelRequest([ToolReturnPart(call.tool_name, content, call.tool_call_id, outcome=outcome)]))

    def break_off(self, words: str, why: str) -> None:
        """Add an incomplete answer: the text received so far, and a note for the model on why it ended."""
        text = sanitize_text(words)
        if text:
            self._add(ModelResponse([TextPart(text)], state="interrupted"))
        self._add(ModelRequest([note((_CUT_OFF if text else _UNANSWERED).format(why=why))]))

    def replace(self, facts: Iterable[ModelMessage]) -> None:
        """Replace all facts."""
        self.facts = list(facts)
        self._order = build_order(self.facts)
        self._notify(None)

    def _add(self, fact: ModelMessage) -> None:
        self.facts.append(fact)
        self._order.add(fact)
        self._notify(fact)

    def _notify(self, fact: ModelMessage | None) -> None:
        if self.on_change is not None:
            self.on_change(fact)

    def _sanitized(self, part: ModelResponsePart) -> ModelResponsePart:
        match part:
            case TextPart():
                return replace(part, content=sanitize_text(part.content))
            case ToolCallPart():
                return replace(
                    part,
                    tool_name=sanitize_tool_name(part.tool_name),
                    tool_call_id=self._unique_id(part.tool_call_id),
                    args=_input_object(part),
                )
            case _:
                return part

    def _unique_id(self, id: str) -> str:
        """Give the call a valid, unique id: some servers restart at 0 in every answer, and some use ids that
        others reject."""
        unique = id if is_id(id) and id not in self._ids else f"call_{token_hex(8)}"
        self._ids.add(unique)
        return unique


def _input_object(call: ToolCallPart) -> dict[str, Any]:
    """The call's input as a JSON object, whatever the model sent."""
    sent = replace(call, args=sanitize_text(call.args)) if isinstance(call.args, str) else call
    return cast("dict[str, Any]", sanitize_json(sent.args_as_dict()))


def malformed(call: ToolCallPart) -> str | None:
    """The text that a model sent instead of a JSON object; None if it sent an object."""
    match call.args_as_dict():
        case {messages.INVALID_JSON_KEY: str(sent), **rest} if not rest:
            return sent
        case _:
            return None


def _sanitized_content(content: str | Sequence[UserContent]) -> str | list[UserContent]:
    if isinstance(content, str):
        return sanitize_text(content, _EMPTY)
    pieces = [sanitize_text(each) if isinstance(each, str) else each for each in content]
    return [each for each in pieces if each != ""] or [_EMPTY]


_OURS = {"handrail": "note"}
_UNKNOWN = "No result: this call was interrupted, and what it did is unknown."
_GAP = "[Part of the conversation is missing here.]"


def note(sentence: str) -> UserPromptPart:
    """A note from the agent to the model, marked so that it is not taken for the person's prompt."""
    return UserPromptPart([TextContent(sentence, metadata=dict(_OURS))])


def is_note(part: ModelRequestPart) -> bool:
    match part:
        case UserPromptPart(content=[TextContent(metadata=metadata)]):
            return metadata == _OURS
        case _:
            return False


def repair_messages(messages: Iterable[ModelMessage]) -> list[ModelMessage]:
    """The same conversation as valid messages. A call without a result gets an "interrupted" one."""
    return build_order(messages).messages


def build_order(messages: Iterable[ModelMessage]) -> "MessageOrder":
    """Build the ordered form of these messages; more can be added to it."""
    order = MessageOrder()
    for message in messages:
        order.add(message)
    return order


def sendable(parts: Sequence[ModelResponsePart]) -> list[ModelResponsePart]:
    """The parts of an answer that can be sent back: no blank text, and nothing if it was only thoughts."""
    worded = [part for part in parts if not isinstance(part, TextPart) or part.content.strip()]
    return worded if any(not isinstance(part, ThinkingPart) for part in worded) else []


def calls_of(response: ModelResponse) -> list[ToolCallPart]:
    return [part for part in response.parts if isinstance(part, ToolCallPart)]


class MessageOrder:
    """Builds a valid conversation incrementally."""

    def __init__(self) -> None:
        self._before: list[ModelMessage] = []
        """Messages that no longer change."""
        self._request: list[ModelRequestPart] = []
        """The parts of the last request; empty if the last message is a response."""
        self._pending: dict[str, int] = {}
        """Call id → index in `_request` where its result goes."""

    @property
    def messages(self) -> list[ModelMessage]:
        return [*self._before, *([ModelRequest(list(self._request))] if self._request else [])]

    def add(self, message: ModelMessage) -> None:
        if isinstance(message, ModelResponse):
            self._add_response(message)
        else:
            for part in message.parts:
                self._add_part(part)

    def _add_part(self, part: ModelRequestPart) -> None:
        if not isinstance(part, ToolReturnPart):
            self._request.append(part)
        elif (place := self._pending.pop(part.tool_call_id, None)) is not None:
            self._request[place] = part

    def _add_response(self, response: ModelResponse) -> None:
        parts = sendable(response.parts)
        if not parts:
            return
        request = self._request or [replace(note(_GAP), timestamp=response.timestamp)]
        self._before += [ModelRequest(request), replace(response, parts=parts)]
        calls = calls_of(response)
        self._request = [_interrupted(call, response) for call in calls]
        self._pending = {call.tool_call_id: place for place, call in enumerate(calls)}


def _interrupted(call: ToolCallPart, response: ModelResponse) -> ToolReturnPart:
    return ToolReturnPart(
        call.tool_name, _UNKNOWN, call.tool_call_id, timestamp=response.timestamp, outcome="interrupted"
    )
