"""Asking the model once: an activity, heard while it answers, and kept as far as it came.

Owns one model request from its beginning to its end, also where that is a cancel or an error. It does not know why the
model is asked, nor what is done with the answer.

A mind: everything the loop thinks with, for one prompt of a session or one task of a sub-agent.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Literal

import anyio
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse

from handrail.own_agent.activity import Activity
from handrail.own_agent.budget import Budget, Costs, tokens
from handrail.own_agent.history import History
from handrail.own_agent.host import Voice
from handrail.own_agent.models.model import Hearing, Model, ModelError
from handrail.own_agent.sanitize import sound, without_pictures
from handrail.own_agent.tools.agent_tool import Tool


@dataclass(slots=True, kw_only=True)
class Mind:
    """Made anew for each prompt, whose budget it has."""

    model: Model
    tools: Mapping[str, Tool]
    history: History
    voice: Voice
    budget: Budget
    instructions: str = ""
    compact_at: float = 0.8
    """The share of the context that may fill up before older parts of the conversation are summed up."""
    context: int = 0
    """Tokens that fit, where the model does not say; 0 is unknown."""
    costs: Costs = field(default_factory=Costs)
    """Of the conversation, its sub-agents included."""
    tried: int = field(default=0, init=False)
    """The size of the conversation when summing it up was last tried, so as not to try at every step."""

    @property
    def window(self) -> int | None:
        return self.model.window or self.context or None


async def ask(mind: Mind, activity: Activity) -> ModelResponse | None:
    """The answer to the conversation as it stands, said while it comes; None where the request was cancelled.

    What was heard of an answer that did not come to its end is in the conversation. Raises ModelError.
    """
    with activity.begin("model", mind.model.name) as asking, ExitStack() as thinking:
        hearing = Aloud(mind.voice, asking, thinking)
        try:
            answer = await request(mind, mind.history.messages, asking, hearing)
        except ModelError as error:
            if hearing.words:
                mind.history.break_off(hearing.words, error.sentence)
            raise
        except anyio.get_cancelled_exc_class():
            mind.history.break_off(hearing.words, mind.budget.why)
            raise
        mind.voice.usage(tokens([*mind.history.messages, answer]), mind.window, mind.costs.total)
        return answer
    return None


async def request(
    mind: Mind, messages: Sequence[ModelMessage], asking: Activity, hearing: Hearing
) -> ModelResponse:
    """One whole answer to these messages, and what it cost. Raises ModelError."""
    tools = [tool.definition for tool in mind.tools.values()]
    seen = messages if mind.model.takes_images else without_pictures(messages)
    try:
        answer = await mind.model.request(_instructed(seen, mind.instructions), tools, hearing)
    except ModelError as error:
        asking.detail = error.sentence
        raise
    read, written = answer.usage.input_tokens, answer.usage.output_tokens
    asking.detail = f"{read:,} tokens read, {written:,} written" if read or written else ""
    mind.budget.spend(read + written)
    mind.costs.add(mind.model.cost(answer))
    return answer


class Aloud:
    """Says what it hears. While the model thinks, there is an activity for that."""

    def __init__(self, voice: Voice, asking: Activity, thinking: ExitStack) -> None:
        self._voice, self._asking, self._thinking = voice, asking, thinking
        self._state: Literal["thinking", "speaking"] = "speaking"
        self._heard: list[str] = []

    @property
    def words(self) -> str:
        return "".join(self._heard)

    def text(self, words: str) -> None:
        self.thought_ended()
        self._heard.append(words)
        self._voice.text(sound(words, words))

    def thought(self, words: str) -> None:
        if self._state == "speaking":
            self._state = "thinking"
            self._thinking.enter_context(self._asking.part("thinking", "Thinking"))
        self._voice.thought(sound(words, words))

    def thought_ended(self) -> None:
        self._state = "speaking"
        self._thinking.close()

    def again(self, why: str, seconds: float) -> None:
        self.thought_ended()
        void = " What was said of this answer does not count." if self._heard else ""
        self._heard.clear()
        self._voice.note(_again(why, seconds) + void)


class Unheard:
    """Says nothing of an answer, but that it takes longer."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice

    def text(self, words: str) -> None: ...
    def thought(self, words: str) -> None: ...
    def thought_ended(self) -> None: ...

    def again(self, why: str, seconds: float) -> None:
        self._voice.note(_again(why, seconds))


def _again(why: str, seconds: float) -> str:
    return f"{why.rstrip('.')}. Asking again in {seconds:.0f} s."


def _instructed(messages: Sequence[ModelMessage], instructions: str) -> list[ModelMessage]:
    """The instructions travel on the last request, where the library looks for them."""
    *before, last = messages
    return [
        *before,
        replace(last, instructions=instructions or None) if isinstance(last, ModelRequest) else last,
    ]
