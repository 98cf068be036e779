"""In-memory fakes for our own agent's loop: a scripted model, a recording host, and tools that block.

A test can stop at any point. test_loop_served.py runs the loop with the real parts. `check_messages` is stricter than
any provider about a conversation.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import anyio
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

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
    """Streams one scripted answer after the other. A function may replace an answer."""

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
        check_messages(messages)
        self.asked.append(list(messages))
        self.offered.append([tool.name for tool in tools])
        turn = self.turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        return await (
            stream_answer(turn, listener) if isinstance(turn, ModelResponse) else turn(messages, listener)
        )

    def cost(self, response: ModelResponse) -> Decimal | None:
        return self.price


async def stream_answer(response: ModelResponse, listener: StreamListener) -> ModelResponse:
    """Stream an answer in pieces, with a checkpoint between them."""
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


class RecordingHost:
    """A host that records everything the loop sends."""

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
        """Every call and activity has ended, children before their parents."""
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
class FunctionTool:
    """A tool that calls a function."""

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


class BlockingTool:
    """A tool that sets `reached`, and waits for `let`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.reached, self.let = anyio.Event(), anyio.Event()

    @property
    def tool(self) -> FunctionTool:
        return FunctionTool(self.name, self._run)

    async def _run(self, input: Json, call: RunningCall) -> str:
        self.reached.set()
        await self.let.wait()
        return f"{self.name} is done"


def quick_tool(name: str, text: str = "well") -> FunctionTool:
    async def run(input: Json, call: RunningCall) -> str:
        await anyio.lowlevel.checkpoint()
        return text

    return FunctionTool(name, run)


def make_context(
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
        host=RecordingHost(),
        budget=budget or Budget(steps=20),
    )


def host_of(context: AgentContext) -> RecordingHost:
    assert isinstance(context.host, RecordingHost)
    return context.host


def model_of(context: AgentContext) -> ScriptedModel:
    assert isinstance(context.model, ScriptedModel)
    return context.model


def open_activity(activity: Activity, sort: str) -> Activity:
    """The single open activity of this sort."""
    (found,) = [each for each in activity.open if each.sort == sort]
    return found


def check_messages(messages: Sequence[ModelMessage]) -> None:
    """Raises AssertionError with the first problem."""
    ids: set[str] = set()
    awaited: list[str] = []
    for place, message in enumerate(messages):
        if isinstance(message, ModelRequest):
            assert place % 2 == 0, f"two requests in a row at {place}"
            _check_request(message, awaited)
            awaited = []
        else:
            assert place % 2 == 1, f"an answer at {place} where a request belongs"
            awaited = _check_answer(message, ids)
    assert not awaited, f"calls at the end without a result: {awaited}"
    assert len(
        ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(list(messages)))
    ) == len(messages)


def _check_request(request: ModelRequest, awaited: list[str]) -> None:
    assert request.parts, "an empty request"
    results = [part for part in request.parts if isinstance(part, ToolReturnPart)]
    assert [result.tool_call_id for result in results] == awaited, (
        f"results {results} for the calls {awaited}"
    )
    assert list(request.parts[: len(results)]) == results, "words before the results"
    for part in request.parts:
        assert isinstance(part, ToolReturnPart | UserPromptPart), f"a {part.part_kind}"
        _check_content(part.content)


def _check_content(content: object) -> None:
    if isinstance(content, list):
        assert content, "no content"
        for each in content:  # pyright: ignore[reportUnknownVariableType]
            _check_content(each)  # pyright: ignore[reportUnknownArgumentType]
    elif not isinstance(content, BinaryContent):
        text = content.content if isinstance(content, TextContent) else content
        assert isinstance(text, str), text
        assert text.strip(), "blank text"


def _check_answer(answer: ModelResponse, ids: set[str]) -> list[str]:
    assert any(not isinstance(part, ThinkingPart) for part in answer.parts), "thoughts alone"
    for part in answer.parts:
        if isinstance(part, TextPart):
            assert part.content.strip(), "blank text"
    calls = [part for part in answer.parts if isinstance(part, ToolCallPart)]
    for call in calls:
        assert re.fullmatch("[A-Za-z0-9_-]{1,40}", call.tool_call_id), f"the id {call.tool_call_id!r}"
        assert re.fullmatch("[A-Za-z0-9_-]{1,64}", call.tool_name), f"the tool {call.tool_name!r}"
        assert call.tool_call_id not in ids, f"two calls {call.tool_call_id}"
        assert isinstance(call.args, dict), f"the input {call.args!r}"
        ids.add(call.tool_call_id)
    return [call.tool_call_id for call in calls]
