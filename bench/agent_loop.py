"""The loop of our own agent, in this process: with a model that answers without delay and a tool that does nothing.

A step's time is the time from the end of the model's answer to the next request, less the tool's. The conversation grows
and is saved to disk, as in real use.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from handrail.own_agent.activity import ActivityUpdate, operation
from handrail.own_agent.budget import Budget
from handrail.own_agent.history import History
from handrail.own_agent.host import Answer
from handrail.own_agent.loop import run_loop
from handrail.own_agent.model_request import AgentContext
from handrail.own_agent.models.model import StreamListener
from handrail.own_agent.session_files import SessionFiles
from handrail.own_agent.tools.agent_tool import CallDisplay, Json, PlanEntry, Result, RunningCall

STEPS = 200
WORDS = "Some words, as a model says them before it uses a tool. " * 4


@dataclass
class Clock:
    """Subtracts the time of the model and of the tool."""

    answered: float = 0.0
    tool: float = 0.0
    steps: list[float] = field(default_factory=list[float])

    def end_step(self) -> None:
        if self.answered:
            self.steps.append(time.perf_counter() - self.answered - self.tool)
        self.tool = 0.0


@dataclass
class InstantModel:
    """A model that uses a tool in every answer but the last."""

    clock: Clock
    name: str = "instant"
    window: int | None = None
    takes_images: bool = False

    async def request(
        self, messages: Sequence[ModelMessage], tools: Sequence[ToolDefinition], listener: StreamListener
    ) -> ModelResponse:
        self.clock.end_step()
        step = len(self.clock.steps)
        listener.text(WORDS)
        use = [ToolCallPart("nothing", {"step": step}, f"use_{step}")] if step < STEPS else []
        answer = ModelResponse([TextPart(WORDS), *use], usage=RequestUsage(input_tokens=10, output_tokens=10))
        self.clock.answered = time.perf_counter()
        return answer

    def cost(self, response: ModelResponse) -> Decimal | None:
        return None


@dataclass
class EmptyTool:
    """A tool that does nothing. Its time does not count."""

    clock: Clock
    definition: ToolDefinition = field(
        default_factory=lambda: ToolDefinition(name="nothing", parameters_json_schema={"type": "object"})
    )

    def shown(self, input: Json) -> CallDisplay:
        return CallDisplay(title="Nothing")

    async def run(self, input: Json, call: RunningCall) -> Result:
        began = time.perf_counter()
        await anyio.lowlevel.checkpoint()
        self.clock.tool += time.perf_counter() - began
        return Result(text="The tool did nothing, and this is its output. " * 20)


class SilentVoice:
    """A voice that drops everything."""

    def text(self, words: str) -> None: ...
    def thought(self, words: str) -> None: ...
    def note(self, sentence: str) -> None: ...
    def call_started(self, id: str, tool: str, shown: CallDisplay, input: Json) -> None: ...
    def call_heard(self, id: str, words: str) -> None: ...
    def call_ended(self, id: str, result: Result) -> None: ...
    def plan(self, entries: Sequence[PlanEntry]) -> None: ...
    def usage(self, used: int, size: int | None, cost: Decimal | None) -> None: ...
    def activity(self, told: ActivityUpdate) -> None: ...

    async def ask(self, id: str, shown: CallDisplay, input: Json) -> Answer:
        return "denied"


def time_steps(folder: Path) -> list[float]:
    """The seconds that the loop itself takes for each step of a conversation."""
    clock = Clock()
    anyio.run(_run_loop, clock, folder)
    assert len(clock.steps) == STEPS
    return clock.steps


async def _run_loop(clock: Clock, folder: Path) -> None:
    session = SessionFiles(folder).new(str(folder))

    def keep(fact: Any) -> None:
        session.add(fact)

    history = History((), keep)
    history.add_prompt("Do nothing, many times.")
    context = AgentContext(
        model=InstantModel(clock),
        tools={"nothing": EmptyTool(clock)},
        history=history,
        host=SilentVoice(),
        budget=Budget(),
    )
    with operation("Nothing", context.host.activity) as root:
        assert await run_loop(context, root) == "end_turn"
