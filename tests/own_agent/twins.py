"""In-memory twins of what the loop speaks with: a model that answers by a script, a voice that remembers, tools.

The real ones are tried in test_served.py; these let a test stand still at any moment.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import anyio
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage
from tests.own_agent.valid import check

from handrail.own_agent.activity import Activity, ActivityUpdate
from handrail.own_agent.budget import Budget
from handrail.own_agent.history import History
from handrail.own_agent.host import Answer
from handrail.own_agent.model_request import AgentContext
from handrail.own_agent.models.model import StreamListener
from handrail.own_agent.tools.agent_tool import CallDisplay, Json, PlanEntry, Result, RunningCall, Tool

Turn = Callable[[Sequence[ModelMessage], StreamListener], Awaitable[ModelResponse]]
"""How the model answers one request."""


def answer(*parts: ModelResponsePart | str, tokens: int = 10, finish: Any = None) -> ModelResponse:
    worded = [TextPart(part) if isinstance(part, str) else part for part in parts]
    return ModelResponse(worded, usage=RequestUsage(input_tokens=tokens), finish_reason=finish)


def call(tool: str, id: str = "", args: str | dict[str, Any] | None = None) -> ToolCallPart:
    return ToolCallPart(tool, {} if args is None else args, id or f"{tool}_1")


@dataclass
class ScriptedModel:
    """Gives one answer after the other, each said piece by piece; a function may take the place of an answer."""

    turns: list[ModelResponse | Turn | Exception]
    name: str = "twin:model"
    window: int | None = None
    takes_images: bool = True
    asked: list[list[ModelMessage]] = field(default_factory=list[list[ModelMessage]])
    offered: list[list[str]] = field(default_factory=list[list[str]])
    price: Decimal | None = None

    async def request(
        self, messages: Sequence[ModelMessage], tools: Sequence[ToolDefinition], listener: StreamListener
    ) -> ModelResponse:
        check(messages)
        self.asked.append(list(messages))
        self.offered.append([tool.name for tool in tools])
        turn = self.turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        return await (said(turn, listener) if isinstance(turn, ModelResponse) else turn(messages, listener))

    def cost(self, response: ModelResponse) -> Decimal | None:
        return self.price


async def said(response: ModelResponse, listener: StreamListener) -> ModelResponse:
    """Hear an answer in pieces, with a moment between any two."""
    for part in response.parts:
        await anyio.lowlevel.checkpoint()
        if isinstance(part, ThinkingPart):
            listener.thought(part.content)
            await anyio.lowlevel.checkpoint()
            listener.thought_ended()
        elif isinstance(part, TextPart):
            for word in part.content.split(" "):
                listener.text(f"{word} ")
                await anyio.lowlevel.checkpoint()
    await anyio.lowlevel.checkpoint()
    return response


class Heard:
    """A voice that remembers what it said."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.notes: list[str] = []
        self.started: dict[str, CallDisplay] = {}
        self.heard: dict[str, str] = {}
        self.ended: dict[str, Result] = {}
        self.usages: list[tuple[int, int | None, Decimal | None]] = []
        self.told: list[ActivityUpdate] = []

    def text(self, words: str) -> None:
        self.texts.append(words)

    def thought(self, words: str) -> None:
        self.thoughts.append(words)

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)

    def call_started(self, id: str, tool: str, shown: CallDisplay, input: Json) -> None:
        assert id not in self.started, f"{id} is started twice"
        self.started[id] = shown

    def call_heard(self, id: str, words: str) -> None:
        assert id in self.started
        assert id not in self.ended
        self.heard[id] = words

    def call_ended(self, id: str, result: Result) -> None:
        assert id in self.started
        assert id not in self.ended, f"{id} has ended twice"
        self.ended[id] = result

    def plan(self, entries: Sequence[PlanEntry]) -> None: ...

    def usage(self, used: int, size: int | None, cost: Decimal | None) -> None:
        self.usages.append((used, size, cost))

    def activity(self, told: ActivityUpdate) -> None:
        self.told.append(told)

    async def ask(self, id: str, shown: CallDisplay, input: Json) -> Answer:
        return "allowed"

    @property
    def said(self) -> str:
        return "".join(self.texts)

    def check(self) -> None:
        """Everything that began has ended, and what was below something ended before it."""
        assert set(self.started) == set(self.ended)
        under_way: list[str] = []
        for told in self.told:
            if told.how is None:
                assert told.parent is None or told.parent in under_way, f"{told} began below nothing"
                under_way.append(told.id)
            else:
                assert not any(each.parent == told.id for each in self.told if each.id in under_way), (
                    f"{told} left some"
                )
                under_way.remove(told.id)
        assert under_way == []

    def ends(self, sort: str) -> list[str | None]:
        return [told.how for told in self.told if told.sort == sort and told.how is not None]

    def open(self, sort: str) -> list[str]:
        """The ids of the activities of this sort that are under way."""
        over = {told.id for told in self.told if told.how is not None}
        return [
            told.id for told in self.told if told.sort == sort and told.how is None and told.id not in over
        ]


@dataclass
class Doing:
    """A tool that does what a function does."""

    name: str
    do: Callable[[Json, RunningCall], Awaitable[Result | str]]

    @property
    def definition(self) -> ToolDefinition:
        return ToolDefinition(name=self.name, parameters_json_schema={"type": "object"})

    def shown(self, input: Json) -> CallDisplay:
        return CallDisplay(title=f"Do {self.name}")

    async def run(self, input: Json, call: RunningCall) -> Result:
        result = await self.do(input, call)
        return Result(text=result) if isinstance(result, str) else result


class Gate:
    """A tool that says it has been reached, and waits to be let through."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.reached, self.let = anyio.Event(), anyio.Event()

    @property
    def tool(self) -> Doing:
        return Doing(self.name, self._run)

    async def _run(self, input: Json, call: RunningCall) -> str:
        self.reached.set()
        await self.let.wait()
        return f"{self.name} is done"


def quick(name: str, text: str = "well") -> Doing:
    async def run(input: Json, call: RunningCall) -> str:
        await anyio.lowlevel.checkpoint()
        return text

    return Doing(name, run)


def context(
    turns: Sequence[ModelResponse | Turn | Exception],
    tools: Sequence[Tool] = (),
    *,
    prompt: str = "Do it",
    budget: Budget | None = None,
    window: int | None = None,
) -> AgentContext:
    named: Mapping[str, Tool] = {tool.definition.name: tool for tool in tools}
    history = History()
    history.add_prompt(prompt)
    return AgentContext(
        model=ScriptedModel(list(turns), window=window),
        tools=named,
        history=history,
        host=Heard(),
        budget=budget or Budget(steps=20),
    )


def heard(context: AgentContext) -> Heard:
    assert isinstance(context.host, Heard)
    return context.host


def model(context: AgentContext) -> ScriptedModel:
    assert isinstance(context.model, ScriptedModel)
    return context.model


def below(activity: Activity, sort: str) -> Activity:
    """The one activity of this sort that is under way."""
    (found,) = [each for each in activity.open if each.sort == sort]
    return found
