"""One model request, run as an activity and streamed to the host.

Covers the request from start to end, including cancellation and errors: text received before either is kept
in the history. `AgentContext` holds everything the loop works with, for one prompt or one sub-agent.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from typing import Literal

import anyio
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse

from handrail.lazy_dataclass import dataclass
from handrail.own_agent.activity import Activity
from handrail.own_agent.budget import Budget, Costs, tokens
from handrail.own_agent.history import History
from handrail.own_agent.host import Host
from handrail.own_agent.models.model import Model, ModelError, StreamListener
from handrail.own_agent.sanitize import sanitize_text, without_pictures
from handrail.own_agent.steering import SteeringQueue
from handrail.own_agent.tools.agent_tool import Tool


@dataclass(slots=True, kw_only=True)
class AgentContext:
    """Everything the loop works with. Built for each prompt, with that prompt's budget."""

    model: Model
    tools: Mapping[str, Tool]
    history: History
    host: Host
    budget: Budget
    instructions: str = ""
    compact_at: float = 0.8
    """The share of the context that may fill up before the conversation is compacted."""
    context: int = 0
    """Context size in tokens if the model does not report one; 0 means unknown."""
    costs: Costs = field(default_factory=Costs)
    """Cost of the conversation, sub-agents included."""
    steering: SteeringQueue = field(default_factory=SteeringQueue)
    """Messages of the person that came since the last model request. A sub-agent gets none."""
    tried: int = field(default=0, init=False)
    """Size of the conversation at the last compaction attempt, in tokens, so that not every step tries again."""

    @property
    def window(self) -> int | None:
        return self.model.window or self.context or None


async def ask(context: AgentContext, activity: Activity) -> ModelResponse | None:
    """Ask the model to continue the conversation, streaming to the host. None if the request was cancelled.

    The text of an incomplete answer is added to the history. Raises ModelError.
    """
    with activity.begin("model", context.model.name) as asking, ExitStack() as thinking:
        listener = HostListener(context.host, asking, thinking)
        try:
            answer = await request(context, context.history.messages, asking, listener)
        except ModelError as error:
            if listener.words:
                context.history.break_off(listener.words, error.sentence)
            raise
        except anyio.get_cancelled_exc_class():
            context.history.break_off(listener.words, context.budget.why)
            raise
        context.host.usage(tokens([*context.history.messages, answer]), context.window, context.costs.total)
        return answer
    return None


async def request(
    context: AgentContext, messages: Sequence[ModelMessage], asking: Activity, listener: StreamListener
) -> ModelResponse:
    """Send these messages and return one complete response; records tokens and cost. Raises ModelError."""
    tools = [tool.definition for tool in context.tools.values()]
    visible = messages if context.model.takes_images else without_pictures(messages)
    try:
        answer = await context.model.request(
            _with_instructions(visible, context.instructions), tools, listener
        )
    except ModelError as error:
        asking.detail = error.sentence
        raise
    read, written = answer.usage.input_tokens, answer.usage.output_tokens
    asking.detail = f"{read:,} tokens read, {written:,} written" if read or written else ""
    context.budget.spend(read + written)
    context.costs.add(context.model.cost(answer))
    return answer


class HostListener:
    """Forwards the stream to the host. While the model thinks, a "thinking" activity is open."""

    def __init__(self, host: Host, asking: Activity, thinking: ExitStack) -> None:
        self._host, self._asking, self._thinking = host, asking, thinking
        self._state: Literal["thinking", "speaking"] = "speaking"
        self._pieces: list[str] = []

    @property
    def words(self) -> str:
        return "".join(self._pieces)

    def text(self, words: str) -> None:
        self.thought_ended()
        self._pieces.append(words)
        self._host.text(sanitize_text(words, words))

    def thought(self, words: str) -> None:
        if self._state == "speaking":
            self._state = "thinking"
            self._thinking.enter_context(self._asking.part("thinking", "Thinking"))
        self._host.thought(sanitize_text(words, words))

    def thought_ended(self) -> None:
        self._state = "speaking"
        self._thinking.close()

    def again(self, why: str, seconds: float) -> None:
        self.thought_ended()
        void = " What was said of this answer does not count." if self._pieces else ""
        self._pieces.clear()
        self._host.note(_retry_sentence(why, seconds) + void)


class SilentListener:
    """Discards the stream; forwards only retries."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def text(self, words: str) -> None: ...
    def thought(self, words: str) -> None: ...
    def thought_ended(self) -> None: ...

    def again(self, why: str, seconds: float) -> None:
        self._host.note(_retry_sentence(why, seconds))


def _retry_sentence(why: str, seconds: float) -> str:
    return f"{why.rstrip('.')}. Asking again in {seconds:.0f} s."


def _with_instructions(messages: Sequence[ModelMessage], instructions: str) -> list[ModelMessage]:
    """Attach the instructions to the last request, where pydantic_ai looks for them."""
    *before, last = messages
    return [
        *before,
        replace(last, instructions=instructions or None) if isinstance(last, ModelRequest) else last,
    ]
