"""Scenarios with our own agent, hosted by a real daemon, and a scripted model server.

A scenario is one thread. After it four things must hold: no process is left, the daemon has no more descriptors than
before, the next prompt works, and no spinner turns on the page.
"""

import json
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx
from playwright.async_api import Browser
from tests.support import processes
from tests.support.browser_tab import ThreadPage, open_thread_page
from tests.support.daemon_home import BOUND, Home, eventually, running_daemon
from tests.support.model_server.http import ModelRequestRecord
from tests.support.model_server.script import Turn, script
from tests.support.model_server.server import ModelServer, model_server
from tests.support.person_client import Json, Person, person_of
from tests.support.processes import ProcessInfo
from tests.support.thread_client import GRACE, Conversation, open_thread, text_of

OWN = "handrail"
WITH_MCP_SERVER = "beside"
"""The name of our agent with the extra MCP server `stranger`."""
ASKED = "touch"
"""The command that a person is asked about."""
Dialect = Literal["anthropic", "openai"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDaemon:
    """A daemon with our own agent, a person and a model server."""

    home: Home
    person: Person
    model: ModelServer
    roots: frozenset[int]
    """The processes that everything here is started by."""
    one_per_thread: bool = True
    """Whether each thread has its own process of our agent, which ends with it."""

    def since(self, tick: int, workspace: Path) -> list[ProcessInfo]:
        return processes.started_since(tick, self.roots, (self.home.places.state, workspace))

    async def descriptors(self) -> int:
        return (await self.person.get("health"))["daemon"]["descriptors"]


@contextmanager
def agent_daemon(dialect: Dialect = "anthropic", *, one_per_thread: bool = True) -> Generator[AgentDaemon]:
    with model_server() as model, running_daemon(_config(model, dialect, one_per_thread)) as home:
        person = person_of(home)
        roots = _roots(person)
        yield AgentDaemon(home=home, person=person, model=model, roots=roots, one_per_thread=one_per_thread)


def _roots(person: Person) -> frozenset[int]:
    health = httpx.get(f"{person.home.url}/api/health", headers=person.headers, timeout=BOUND).json()
    return frozenset(health[who]["pid"] for who in ("daemon", "keeper"))


def _config(model: ModelServer, dialect: Dialect, one_per_thread: bool) -> str:
    env = environment(model, dialect)
    beside = [sys.executable, "-m", "tests.support.agent_with_mcp_server"]
    rule = f'[[rules]]\neffect = "ask"\ncommand = "{ASKED}"\n'
    root = str(Path(__file__).parents[2])
    return (
        'default_policy = "allow"\n'
        + GRACE
        + rule
        + _agent({"name": OWN, "one_per_thread": one_per_thread}, env)
        + _agent(
            {"name": WITH_MCP_SERVER, "command": beside, "one_per_thread": True}, {**env, "PYTHONPATH": root}
        )
    )


def environment(model: ModelServer, dialect: Dialect) -> dict[str, str]:
    """What our agent needs to find the model."""
    if dialect == "openai":
        return {"OPENAI_BASE_URL": f"{model.url}/v1", "HANDRAIL_MODEL": "openai:scripted"}
    return {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "a-key-for-nothing",
        "HANDRAIL_MODEL": "anthropic:scripted",
    }


def _agent(about: Mapping[str, object], env: Mapping[str, str]) -> str:
    return f"[[agents]]\n{_lines(about)}[agents.env]\n{_lines(env)}"


def _lines(values: Mapping[str, object]) -> str:
    """As TOML, whose plain values are written as JSON's are."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


@dataclass(frozen=True, slots=True)
class Message:
    """A text message, a call, or a call's result."""

    kind: Literal["user", "assistant", "call", "result"]
    text: str
    id: str = ""
    failed: bool = False


def messages_of(asked: ModelRequestRecord) -> list[Message]:
    read = _of_anthropic if asked.dialect == "anthropic" else _of_openai
    return [found for message in asked.body["messages"] for found in read(message)]


def _of_anthropic(message: Json) -> list[Message]:
    content = message["content"]
    blocks: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [_block(message["role"], block) for block in blocks]


def _block(role: Literal["user", "assistant"], block: Json) -> Message:
    match block["type"]:
        case "tool_use":
            return Message("call", block["name"], block["id"])
        case "tool_result":
            failed = bool(block.get("is_error"))
            return Message("result", _text(block["content"]), block["tool_use_id"], failed)
        case kind:
            return Message(role, str(block.get("text") or block.get(kind)))


def _of_openai(message: Json) -> list[Message]:
    if message["role"] == "tool":
        return [Message("result", _text(message["content"]), message["tool_call_id"])]
    kind: Literal["user", "assistant"] = "assistant" if message["role"] == "assistant" else "user"
    said = [Message(kind, _text(message["content"]))] if message.get("content") else []
    calls: list[Json] = message.get("tool_calls") or []
    return said + [Message("call", call["function"]["name"], call["id"]) for call in calls]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks: list[Json] = content
    return "".join(block.get("text", "") for block in blocks)


SLOW = 90.0
"""Seconds for the agent to start: it loads much, and a busy machine is slow at that; only a fault reaches this."""
HELLO, STILL = "Hello there.", "I am still here."


@dataclass(slots=True, kw_only=True)
class Scenario:
    """A thread that is idle, and its page."""

    stage: AgentDaemon
    thread: Conversation
    workspace: Path
    family: frozenset[tuple[int, int]]
    """The processes of the agent itself, which live as long as the conversation."""
    began: int
    descriptors: int = 0
    page: ThreadPage | None = None

    # Actions

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

    # Observations

    async def doing(self, operation: str) -> Json:
        return await self.stage.person.get(f"operations/{operation}")

    async def busy(self, operation: str, holds: Callable[["Activities"], bool]) -> "Activities":
        """What the operation is busy with, once this holds of it."""

        seen = Activities([])

        async def look() -> Activities | None:
            nonlocal seen
            seen = Activities((await self.doing(operation))["activities"])
            return seen if holds(seen) else None

        try:
            return await eventually(look)
        except TimeoutError:
            raise AssertionError(f"it is busy otherwise: {seen}") from None

    def running(self, words: str) -> list[processes.ProcessInfo]:
        """Processes that were started in this scenario with these words in their command."""
        return [each for each in self.started if words in each.command]

    @property
    def started(self) -> list[processes.ProcessInfo]:
        """Every process that was started in this scenario and still exists, without the agent itself."""
        found = self.stage.since(self.began, self.workspace)
        return [each for each in found if each.key not in self.family]

    @property
    def turning(self) -> ThreadPage:
        assert self.page is not None
        return self.page

    @property
    def told(self) -> list[Message]:
        """The conversation in the last request to the model."""
        return messages_of(self.stage.model.asked[-1])

    # Checks

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
        """The next prompt works: the provider accepts the whole conversation."""
        answer = await self.ended(await self.say(Turn(STILL)))
        assert text_of(answer) == STILL
        assert self.stage.model.refused == []
        if self.page is not None:
            await self.page.sees(STILL)
            await self.page.is_at_rest()

    async def closed(self) -> None:
        """After the page is closed, the daemon has no more descriptors than before."""

        async def look() -> bool:
            return await self.stage.descriptors() <= self.descriptors

        await eventually(look)


@dataclass(frozen=True, slots=True)
class Activities:
    """The activities of an operation."""

    activities: list[Json]

    def of(self, sort: str, how: str | None = None) -> list[Json]:
        """Those of a sort that ended like this; None: that are under way."""
        return [each for each in self.activities if each["sort"] == sort and each["how"] == how]


@asynccontextmanager
async def scenario(
    stage: AgentDaemon, workspace: Path, browser: Browser | None = None, agent: str = OWN
) -> AsyncGenerator[Scenario]:
    """Start the agent, open its page and run the scenario. Then delete the thread and check that nothing is left.

    An agent for all threads stays, with its descriptors.
    """
    began, before = processes.boot_ticks(), await stage.descriptors()
    await stage.person.post("folders/trust", {"folder": str(workspace)})
    thread = await open_thread(stage.person, workspace, agent=agent)
    current = Scenario(stage=stage, thread=thread, workspace=workspace, family=frozenset(), began=began)
    await _greeted(current)
    current.family = frozenset(each.key for each in current.started)
    assert current.family or not stage.one_per_thread, "the agent is a process of its own"
    current.descriptors = await stage.descriptors()
    if browser is None:
        yield current
    else:
        async with open_thread_page(browser, stage.person, thread.id) as current.page:
            yield current
    await current.closed()
    (await stage.person.ask("DELETE", thread.path)).raise_for_status()
    if stage.one_per_thread:
        current.family, current.descriptors = frozenset(), before
    await current.nothing_left()
    await current.closed()


async def _greeted(current: Scenario) -> None:
    """The agent has started, has connected to its tools, and has answered."""
    operation = await current.say(Turn(HELLO))

    async def look() -> bool:
        return (await current.doing(operation))["ended_at"] is not None

    await eventually(look, SLOW)
    assert text_of(await current.ended(operation)) == HELLO
