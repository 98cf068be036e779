"""The loop of our own agent by itself: with a model that answers at once and a tool that has nothing to do.

Owns the clock: what the loop takes is the time from the end of an answer to the next request, without the tool. The
conversation grows, and is kept on disk, as it would be.
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

from handrail.agents.builtin.hosted.sessions import Sessions
from handrail.agents.builtin.model.model import Hearing
from handrail.agents.builtin.thinking.activity import Told, operation
from handrail.agents.builtin.thinking.budget import Budget
from handrail.agents.builtin.thinking.history import History
from handrail.agents.builtin.thinking.loop import Mind, think
from handrail.agents.builtin.thinking.voice import Answer
from handrail.agents.builtin.tools.tool import Entry, Json, Result, Running, Shown

STEPS = 200
WORDS = "Some words, as a model says them before it uses a tool. " * 4


@dataclass
class Clock:
    """When it was not the loop's turn."""

    answered: float = 0.0
    tool: float = 0.0
    own: list[float] = field(default_factory=list[float])

    def asked(self) -> None:
        if self.answered:
            self.own.append(time.perf_counter() - self.answered - self.tool)
        self.tool = 0.0


@dataclass
class AtOnce:
    """A model that uses a tool in every answer but the last."""

    clock: Clock
    name: str = "at-once"
    window: int | None = None
    takes_images: bool = False

    async def request(
        self, messages: Sequence[ModelMessage], tools: Sequence[ToolDefinition], hearing: Hearing
    ) -> ModelResponse:
        self.clock.asked()
        step = len(self.clock.own)
        hearing.text(WORDS)
        use = [ToolCallPart("nothing", {"step": step}, f"use_{step}")] if step < STEPS else []
        answer = ModelResponse([TextPart(WORDS), *use], usage=RequestUsage(input_tokens=10, output_tokens=10))
        self.clock.answered = time.perf_counter()
        return answer

    def cost(self, response: ModelResponse) -> Decimal | None:
        return None


@dataclass
class Nothing:
    """A tool that takes a moment, which is not counted."""

    clock: Clock
    definition: ToolDefinition = field(
        default_factory=lambda: ToolDefinition(name="nothing", parameters_json_schema={"type": "object"})
    )

    def shown(self, input: Json) -> Shown:
        return Shown(title="Nothing")

    async def run(self, input: Json, call: Running) -> Result:
        began = time.perf_counter()
        await anyio.lowlevel.checkpoint()
        self.clock.tool += time.perf_counter() - began
        return Result(text="Nothing was done, and these are the words for it. " * 20)


class Unheard:
    """A voice to nobody."""

    def text(self, words: str) -> None: ...
    def thought(self, words: str) -> None: ...
    def note(self, sentence: str) -> None: ...
    def call_started(self, id: str, tool: str, shown: Shown, input: Json) -> None: ...
    def call_heard(self, id: str, words: str) -> None: ...
    def call_ended(self, id: str, result: Result) -> None: ...
    def plan(self, entries: Sequence[Entry]) -> None: ...
    def usage(self, used: int, size: int | None, cost: Decimal | None) -> None: ...
    def activity(self, told: Told) -> None: ...

    async def ask(self, id: str, shown: Shown, input: Json) -> Answer:
        return "denied"


def own_seconds(folder: Path) -> list[float]:
    """What each step of a conversation took the loop itself."""
    clock = Clock()
    anyio.run(_think, clock, folder)
    assert len(clock.own) == STEPS
    return clock.own


async def _think(clock: Clock, folder: Path) -> None:
    kept = Sessions(folder).new(str(folder))

    def keep(fact: Any) -> None:
        kept.add(fact)

    history = History((), keep)
    history.add_prompt("Do nothing, many times.")
    mind = Mind(
        model=AtOnce(clock),
        tools={"nothing": Nothing(clock)},
        history=history,
        voice=Unheard(),
        budget=Budget(),
    )
    with operation("Nothing", mind.voice.activity) as root:
        assert await think(mind, root) == "end_turn"
