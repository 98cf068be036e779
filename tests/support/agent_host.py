"""A host for scripted agents over real pipes, with a real keeper, journal and agent pool.

`RecordingHandler` records the updates and requests of a session.
"""

import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

import anyio
from anyio.abc import TaskGroup
from tests.support.scripted_agent import Behavior, Obj, command, script

from handrail.agents.acp.agent import Agent
from handrail.agents.acp.session import PromptResult, Session
from handrail.agents.pool import Agents
from handrail.config import AgentSection
from handrail.paths import Places
from handrail.store.events import Event
from handrail.store.journal import Journal, open_journal
from handrail.store.values import Json
from handrail.terminal.keeper_client import Keeper, KeeperError
from handrail.terminal.terminals import Terminals

BOUND = 30.0
"""Seconds for anything a test waits for: far more than it takes, so that only a fault reaches it."""
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/tmp", "LANG": "C.UTF-8", "SECRET": "kept"}


@dataclass
class RecordingHandler:
    """A session handler that records everything, and answers requests with `answer`."""

    updates: list[Json] = field(default_factory=list[Json])
    requests: list[tuple[str, Json]] = field(default_factory=list[tuple[str, Json]])
    lost_for: list[str] = field(default_factory=list[str])
    answer: Callable[[str, Json], Awaitable[Json | None]] | None = None
    asked: anyio.Event = field(default_factory=anyio.Event)

    def update(self, update: Json) -> None:
        self.updates.append(update)

    async def serve(self, method: str, params: Json) -> Json | None:
        self.requests.append((method, params))
        self.asked.set()
        return {} if self.answer is None else await self.answer(method, params)

    def lost(self, why: str) -> None:
        self.lost_for.append(why)

    def kinds(self) -> list[object]:
        return [update.get("sessionUpdate") for update in self.updates]

    @property
    def texts(self) -> list[str]:
        """The text of each message chunk."""
        chunks: list[Any] = [it for it in self.updates if it.get("sessionUpdate") == "agent_message_chunk"]
        return [chunk["content"]["text"] for chunk in chunks]

    @property
    def told(self) -> Any:
        """The JSON in the last message chunk."""
        return json.loads(self.texts[-1])

    async def until(self, condition: Callable[["RecordingHandler"], bool]) -> None:
        with anyio.fail_after(BOUND):
            while not condition(self):  # noqa: ASYNC110 - other processes ring no bell
                await anyio.sleep(0.002)


@dataclass
class AgentHost:
    """A pool of agents with its keeper, terminals and journal."""

    agents: Agents
    terminals: Terminals
    journal: Journal
    keeper: Keeper
    group: TaskGroup
    specs: dict[str, AgentSection]
    cwd: Path

    def add(self, name: str = "scripted", **manners: Unpack[Behavior]) -> str:
        self.specs[name] = AgentSection(name=name, command=command(**manners))
        return name

    async def agent(self, name: str = "scripted", thread: str | None = None) -> Agent:
        with anyio.fail_after(BOUND):
            return await self.agents.get(name, thread, folder=str(self.cwd))

    async def facts(self, *kinds: type[Any]) -> list[Any]:
        await self.journal.committed(self.journal.head)
        entries = await self.journal.since(0, 10_000)
        events: list[Event] = [entry.event for entry in entries]
        return [event for event in events if isinstance(event, kinds)]


async def prompt(session: Session, *steps: Obj) -> PromptResult:
    """Prompt the agent with these steps."""
    with anyio.fail_after(2 * BOUND):
        return await session.prompt([{"type": "text", "text": script(*steps)}])


@asynccontextmanager
async def agent_host(
    home: Path,
    *,
    grace: float = 0.5,
    idle_seconds: float = 600.0,
    start_seconds: float = BOUND,
    spare_of: str | None = None,
    settings: Callable[[], object] = lambda: None,
) -> AsyncGenerator[AgentHost]:
    """A host with one agent, `scripted`, of default behaviour. `add` adds others. Of `spare_of`, a spare program is
    kept."""
    places = Places.under(home)
    places.make()
    specs: dict[str, AgentSection] = {}
    cwd = home / "work"
    cwd.mkdir(exist_ok=True)

    def environment(passed: Any) -> dict[str, str]:
        return {name: value for name, value in ENVIRONMENT.items() if name != "SECRET" or name in passed}

    async with (
        open_journal(places.database, places.head) as journal,
        anyio.create_task_group() as group,
    ):
        keeper = Keeper(places, idle_seconds=30.0)
        terminals = Terminals(keeper, places.spool)
        agents = Agents(
            *(terminals, specs.get, environment, journal, grace),
            idle_seconds=idle_seconds,
            start_seconds=start_seconds,
            spare_seconds=0.0,
            keeps_spare=lambda spec: spec.name == spare_of,
            settings=settings,
        )
        with anyio.fail_after(BOUND):
            await group.start(keeper.run)
            await group.start(agents.run)
        stage = AgentHost(agents, terminals, journal, keeper, group, specs, cwd)
        stage.add()
        try:
            yield stage
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(BOUND), suppress(KeeperError):
                await keeper.shutdown(0.0)
            group.cancel_scope.cancel()
