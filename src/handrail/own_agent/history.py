"""What a conversation was, for the model: facts as they came, in an order that every provider takes.

Owns the facts, one after the other: a prompt, an answer, a call's result, that an answer was cut off. They are only ever
added to, so they can be kept as they come; the messages are made of them (repair.py) and are valid at every moment,
because a call whose result is not there yet is told to be interrupted. It does not know who keeps them.

A conversation put in order, so that every provider takes it: pure, and the same each time.
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

from handrail.own_agent.sanitize import is_id, plain, sound, tool_name
from handrail.own_agent.tools.agent_tool import Result

OnChange = Callable[[ModelMessage | None], None]
"""Told each fact as it is added, and None when all of them were replaced."""

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
    """One conversation."""

    def __init__(self, facts: Iterable[ModelMessage] = (), on_change: OnChange | None = None) -> None:
        self.facts = list(facts)
        """As they came: what is to be kept, and given back here."""
        self.on_change = on_change
        self._order = ordered(self.facts)
        self._ids = {
            call.tool_call_id
            for each in self.facts
            if isinstance(each, ModelResponse)
            for call in calls_of(each)
        }

    @property
    def messages(self) -> list[ModelMessage]:
        """Valid, whatever happened."""
        return self._order.messages

    def beside(self) -> "History":
        """Another, empty conversation, whose calls will not be named like any of this one's."""
        other = History()
        other._ids = self._ids
        return other

    def add_prompt(self, content: str | Sequence[UserContent]) -> None:
        self._add(ModelRequest([UserPromptPart(_worded(content))]))

    def add_response(self, response: ModelResponse) -> list[ToolCallPart]:
        """An answer. Returns its calls as they are kept: each with an id of its own and an object for its input."""
        kept = replace(response, parts=[self._kept(part) for part in sendable(response.parts)])
        self._add(kept)
        return calls_of(kept)

    def add_result(self, call: ToolCallPart, result: Result) -> None:
        """What became of a call; it counts once."""
        text = sound(result.text, "(no output)")
        content = [text, *result.images] if result.images else text
        outcome = _OUTCOMES[result.ended]
        self._add(ModelRequest([ToolReturnPart(call.tool_name, content, call.tool_call_id, outcome=outcome)]))

    def break_off(self, words: str, why: str) -> None:
        """An answer that ended too early, with what was heard of it, and a sentence on why for the model."""
        heard = sound(words)
        if heard:
            self._add(ModelResponse([TextPart(heard)], state="interrupted"))
        self._add(ModelRequest([note((_CUT_OFF if heard else _UNANSWERED).format(why=why))]))

    def replace(self, facts: Iterable[ModelMessage]) -> None:
        """Everything so far, told in another way."""
        self.facts = list(facts)
        self._order = ordered(self.facts)
        self._told(None)

    def _add(self, fact: ModelMessage) -> None:
        self.facts.append(fact)
        self._order.add(fact)
        self._told(fact)

    def _told(self, fact: ModelMessage | None) -> None:
        if self.on_change is not None:
            self.on_change(fact)

    def _kept(self, part: ModelResponsePart) -> ModelResponsePart:
        match part:
            case TextPart():
                return replace(part, content=sound(part.content))
            case ToolCallPart():
                return replace(
                    part,
                    tool_name=tool_name(part.tool_name),
                    tool_call_id=self._named(part.tool_call_id),
                    args=_input(part),
                )
            case _:
                return part

    def _named(self, id: str) -> str:
        """Some servers count from 0 in every answer, and some name calls as others do not let them be named."""
        named = id if is_id(id) and id not in self._ids else f"call_{token_hex(8)}"
        self._ids.add(named)
        return named


def _input(call: ToolCallPart) -> dict[str, Any]:
    """An object, whatever was sent."""
    sent = replace(call, args=sound(call.args)) if isinstance(call.args, str) else call
    return cast("dict[str, Any]", plain(sent.args_as_dict()))


def malformed(call: ToolCallPart) -> str | None:
    """What a model sent in place of a JSON object; None where it sent one."""
    match call.args_as_dict():
        case {messages.INVALID_JSON_KEY: str(sent), **rest} if not rest:
            return sent
        case _:
            return None


def _worded(content: str | Sequence[UserContent]) -> str | list[UserContent]:
    if isinstance(content, str):
        return sound(content, _EMPTY)
    sounds = [sound(each) if isinstance(each, str) else each for each in content]
    return [each for each in sounds if each != ""] or [_EMPTY]


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
