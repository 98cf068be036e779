"""A scene: one conversation with our own agent, and what must hold after whatever was done in it.

Owns the four promises of every scenario: no process is left, the daemon has no more descriptors than before, the
conversation goes on, and nothing turns on the page any more. It does not know what any scenario is about.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import Browser
from tests.e2e.conversing import Conversation, begun, text_of
from tests.e2e.home import eventually
from tests.e2e.own_agent import kin
from tests.e2e.own_agent.asked import Message, heard_by
from tests.e2e.own_agent.page import Shown, shown
from tests.e2e.own_agent.stage import OWN, Stage
from tests.e2e.person import Json
from tests.model.script import Turn, script

SLOW = 90.0
"""Seconds for the agent to start: it loads much, and a busy machine is slow at that; only a fault reaches this."""
HELLO, STILL = "Hello there.", "I am still here."


@dataclass(slots=True, kw_only=True)
class Scene:
    """A conversation that is at rest, and its page."""

    stage: Stage
    thread: Conversation
    workspace: Path
    family: frozenset[tuple[int, int]]
    """The processes of the agent itself, which live as long as the conversation."""
    began: int
    descriptors: int = 0
    page: Shown | None = None

    # What is done

    async def say(self, *turns: Turn, **more: object) -> str:
        """Prompt; returns the operation, which has begun."""
        return (await self.thread.say(script(*turns), **more))["operation"]

    async def cancel(self, operation: str) -> Json:
        """Cancel it, and see it end so."""
        assert (await self.stage.person.post(f"operations/{operation}/cancel"))["won"]
        return await self.ended(operation, "cancelled")

    async def ended(self, operation: str, stop: str = "end_turn") -> Json:
        message = await self.thread.ended(operation)
        assert message["stop"] == stop, message
        await self.thread.idle()
        return message

    # What is seen

    async def doing(self, operation: str) -> Json:
        return await self.stage.person.get(f"operations/{operation}")

    async def busy(self, operation: str, holds: Callable[["Busy"], bool]) -> "Busy":
        """What the operation is busy with, once this holds of it."""

        seen = Busy([])

        async def look() -> Busy | None:
            nonlocal seen
            seen = Busy((await self.doing(operation))["activities"])
            return seen if holds(seen) else None

        try:
            return await eventually(look)
        except TimeoutError:
            raise AssertionError(f"it is busy otherwise: {seen}") from None

    def running(self, words: str) -> list[kin.Kin]:
        """Processes that were started in this scene with these words in their command."""
        return [each for each in self.started if words in each.command]

    @property
    def started(self) -> list[kin.Kin]:
        """Everything that was started in this scene and is not gone; the agent itself is no part of it."""
        found = self.stage.since(self.began, self.workspace)
        return [each for each in found if each.key not in self.family]

    @property
    def turning(self) -> Shown:
        assert self.page is not None
        return self.page

    @property
    def told(self) -> list[Message]:
        """The conversation as the model was last told it."""
        return heard_by(self.stage.model.asked[-1])

    # What must hold

    async def at_rest(self) -> None:
        """The scenario is over: all four promises, but for the descriptors, which wait for the page to be closed."""
        await self.thread.idle()
        if self.page is not None:
            await self.page.is_at_rest()
        await self.nothing_left()
        await self.goes_on()

    async def nothing_left(self) -> None:
        async def look() -> bool:
            return not self.started

        try:
            await eventually(look)
        except TimeoutError:
            raise AssertionError(f"left: {[str(each) for each in self.started]}") from None

    async def goes_on(self) -> None:
        """The next prompt simply works: a model's provider takes all that was said."""
        answer = await self.ended(await self.say(Turn(STILL)))
        assert text_of(answer) == STILL
        assert self.stage.model.refused == []
        if self.page is not None:
            await self.page.sees(STILL)
            await self.page.is_at_rest()

    async def closed(self) -> None:
        """Its page is closed: the daemon holds no more than when the scene began."""

        async def look() -> bool:
            return await self.stage.descriptors() <= self.descriptors

        await eventually(look)


@dataclass(frozen=True, slots=True)
class Busy:
    """What an operation is and was busy with."""

    activities: list[Json]

    def of(self, sort: str, how: str | None = None) -> list[Json]:
        """Those of a sort that ended like this; None: that are under way."""
        return [each for each in self.activities if each["sort"] == sort and each["how"] == how]


@asynccontextmanager
async def scene(
    stage: Stage, workspace: Path, browser: Browser | None = None, agent: str = OWN
) -> AsyncGenerator[Scene]:
    """Greet the agent, open its page, play; then see to it that nothing at all is left when the thread is deleted."""
    began, before = kin.now(), await stage.descriptors()
    await stage.person.post("folders/trust", {"folder": str(workspace)})
    thread = await begun(stage.person, workspace, agent=agent)
    scene = Scene(stage=stage, thread=thread, workspace=workspace, family=frozenset(), began=began)
    await _greeted(scene)
    scene.family = frozenset(each.key for each in scene.started)
    assert scene.family, "the agent is a process of its own"
    scene.descriptors = await stage.descriptors()
    if browser is None:
        yield scene
    else:
        async with shown(browser, stage.person, thread.id) as scene.page:
            yield scene
    await scene.closed()
    (await stage.person.ask("DELETE", thread.path)).raise_for_status()
    scene.family, scene.descriptors = frozenset(), before
    await scene.nothing_left()
    await scene.closed()


async def _greeted(scene: Scene) -> None:
    """The agent has started, has connected to its tools, and has answered."""
    operation = await scene.say(Turn(HELLO))

    async def look() -> bool:
        return (await scene.doing(operation))["ended_at"] is not None

    await eventually(look, SLOW)
    assert text_of(await scene.ended(operation)) == HELLO
