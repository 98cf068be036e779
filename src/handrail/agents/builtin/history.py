"""What a conversation was, for the model: facts as they came, in an order that every provider takes.

Owns the facts, one after the other: a prompt, an answer, a call's result, that an answer was cut off. They are only ever
added to, so they can be kept as they come; the messages are made of them (repair.py) and are valid at every moment,
because a call whose result is not there yet is told to be interrupted. It does not know who keeps them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Literal

from pydantic_ai import messages
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from handrail.agents.builtin.repair import calls_of, note, repaired, sendable
from handrail.agents.builtin.tools.tool import Result

OnChange = Callable[[ModelMessage | None], None]
"""Told each fact as it is added, and None when all of them were replaced."""

_CUT_OFF = "[The answer above is incomplete: {why}]"
_UNANSWERED = "[No answer was given here: {why}]"
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
        self._ids = {
            call.tool_call_id
            for each in self.facts
            if isinstance(each, ModelResponse)
            for call in calls_of(each)
        }

    @property
    def messages(self) -> list[ModelMessage]:
        """Valid, whatever happened."""
        return repaired(self.facts)

    def beside(self) -> "History":
        """Another, empty conversation, whose calls will not be named like any of this one's."""
        other = History()
        other._ids = self._ids
        return other

    def add_prompt(self, content: str | Sequence[UserContent]) -> None:
        self._add(ModelRequest([UserPromptPart(_worded(content))]))

    def add_response(self, response: ModelResponse) -> list[ToolCallPart]:
        """An answer. Returns its calls as they are kept: each with an id of its own and an object for its input."""
        parts = [
            self._kept(part) if isinstance(part, ToolCallPart) else part for part in sendable(response.parts)
        ]
        kept = replace(response, parts=parts)
        self._add(kept)
        return calls_of(kept)

    def add_result(self, call: ToolCallPart, result: Result) -> None:
        """What became of a call; it counts once."""
        text = result.text if result.text.strip() else "(no output)"
        self._add(
            ModelRequest(
                [
                    ToolReturnPart(
                        call.tool_name,
                        [text, *result.images] if result.images else text,
                        call.tool_call_id,
                        outcome=_OUTCOMES[result.ended],
                    )
                ]
            )
        )

    def break_off(self, words: str, why: str) -> None:
        """An answer that ended too early, with what was heard of it, and a sentence on why for the model."""
        if words.strip():
            self._add(ModelResponse([TextPart(words)], state="interrupted"))
        self._add(ModelRequest([note((_CUT_OFF if words.strip() else _UNANSWERED).format(why=why))]))

    def replace(self, facts: Iterable[ModelMessage]) -> None:
        """Everything so far, told in another way."""
        self.facts = list(facts)
        self._told(None)

    def _add(self, fact: ModelMessage) -> None:
        self.facts.append(fact)
        self._told(fact)

    def _told(self, fact: ModelMessage | None) -> None:
        if self.on_change is not None:
            self.on_change(fact)

    def _kept(self, call: ToolCallPart) -> ToolCallPart:
        known = (
            not call.tool_call_id or call.tool_call_id in self._ids
        )  # some servers count from 0 in every answer
        named = f"call_{token_hex(8)}" if known else call.tool_call_id
        self._ids.add(named)
        return replace(call, tool_call_id=named, args=call.args_as_dict())


def malformed(call: ToolCallPart) -> str | None:
    """What a model sent in place of a JSON object; None where it sent one."""
    match call.args_as_dict():
        case {messages.INVALID_JSON_KEY: str(sent), **rest} if not rest:
            return sent
        case _:
            return None


def _worded(content: str | Sequence[UserContent]) -> str | list[UserContent]:
    if isinstance(content, str):
        return content if content.strip() else "(an empty prompt)"
    return [each for each in content if not isinstance(each, str) or each.strip()] or ["(an empty prompt)"]
