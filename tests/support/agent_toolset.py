"""MCP servers and tool calls for tests of our own agent's tools.

It starts the programs in `mcp_servers`, over stdio or HTTP, and runs tools as the agent's loop does.
"""

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup
from tests.support.daemon_home import BOUND, until

from handrail.own_agent.activity import ActivityUpdate, operation
from handrail.own_agent.host import Answer
from handrail.own_agent.tools.agent_tool import CallDisplay, Json, PlanEntry, Result, RunningCall, Tool
from handrail.own_agent.tools.server_config import Http, ServerConfig, Stdio
from handrail.own_agent.tools.toolset import Servers

SERVERS = Path(__file__).parent / "mcp_servers"
SAMPLE_SERVER, HANDMADE_SERVER = SERVERS / "sample.py", SERVERS / "handmade.py"
BEARER = "b3arer"


@dataclass(slots=True)
class ToolHost:
    """A host that records all calls. It answers questions with `answers` in turn; None blocks forever."""

    answers: list[Answer | None] = field(default_factory=list["Answer | None"])
    asked: list[tuple[str, str, Json]] = field(default_factory=list[tuple[str, str, Json]])
    heard: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    plans: list[Sequence[PlanEntry]] = field(default_factory=list[Sequence[PlanEntry]])

    def text(self, words: str) -> None: ...
    def thought(self, words: str) -> None: ...
    def note(self, sentence: str) -> None: ...
    def call_started(self, id: str, tool: str, shown: CallDisplay, input: Json) -> None: ...
    def call_ended(self, id: str, result: Result) -> None: ...
    def usage(self, used: int, size: int | None, cost: Decimal | None) -> None: ...
    def activity(self, told: ActivityUpdate) -> None: ...

    def call_heard(self, id: str, words: str) -> None:
        self.heard.append((id, words))

    def plan(self, entries: Sequence[PlanEntry]) -> None:
        self.plans.append(entries)

    async def ask(self, id: str, shown: CallDisplay, input: Json) -> Answer:
        self.asked.append((id, shown.title, input))
        answer = self.answers.pop(0)
        if answer is None:
            await anyio.sleep_forever()
        await anyio.lowlevel.checkpoint()
        assert answer is not None
        return answer


def stdio_server(log: Path, name: str = "somebody", **env: str) -> Stdio:
    """The sample server as a program that the client starts."""
    return Stdio(name=name, command=(sys.executable, "-P", str(SAMPLE_SERVER), str(log)), env=env)


@contextmanager
def running_http_server(log: Path, port: int, *, old: bool = False) -> Generator[subprocess.Popen[bytes]]:
    """The sample server over HTTP, as a child process."""
    command = [sys.executable, "-P", str(SAMPLE_SERVER), str(log), "--port", str(port), "--bearer", BEARER]
    process = subprocess.Popen([*command, *(["--old"] if old else [])], stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait(BOUND)


async def wait_for_port(port: int) -> None:
    """Wait until a process listens on this port."""

    def look() -> bool:
        return any(line.split()[1].endswith(f":{port:04X}") for line in _tcp() if line.split()[3] == "0A")

    await until(look)


def _tcp() -> list[str]:
    return Path("/proc/net/tcp").read_text().splitlines()[1:]


def http_server(port: int, name: str = "somebody", bearer: str = BEARER) -> Http:
    headers = {"Authorization": f"Bearer {bearer}"}
    return Http(name=name, url=f"http://127.0.0.1:{port}/mcp", headers=headers)


@asynccontextmanager
async def connected_servers(cwd: Path, *wanted: ServerConfig) -> AsyncGenerator[Servers]:
    """The servers, once each has connected or failed."""
    async with anyio.create_task_group() as group:
        servers = Servers(wanted, str(cwd), group)
        with anyio.fail_after(BOUND):
            await servers.settled()
        yield servers
        group.cancel_scope.cancel()


async def run_tool(tool: Tool, listener: ToolHost | None = None, id: str = "t1", **input: Any) -> Result:
    """Run it as the loop would."""
    listener = listener or ToolHost(answers=["allowed"])
    with operation("work", listener.activity) as activity, anyio.fail_after(BOUND):
        return await tool.run(input, RunningCall(id=id, activity=activity, host=listener))
    raise AssertionError("cancelled")


@dataclass(slots=True)
class RunningWork:
    """A call under way."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    over: anyio.Event = field(default_factory=anyio.Event)
    result: Result | None = None

    async def done(self) -> Result:
        with anyio.fail_after(BOUND):
            await self.over.wait()
        assert self.result is not None, "it was given up"
        return self.result


class ParallelCalls:
    """Concurrent calls that are cancelled together."""

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._works: list[RunningWork] = []

    def begin(self, tool: Tool, **input: Any) -> RunningWork:
        work = RunningWork()

        async def run() -> None:
            with work.scope:
                work.result = await run_tool(tool, **input)
            work.over.set()

        self._works.append(work)
        self._group.start_soon(run)
        return work

    async def give_up(self) -> float:
        """Cancel all. Returns the seconds until the last one ended."""
        began = anyio.current_time()
        for work in self._works:
            work.scope.cancel()
        with anyio.fail_after(BOUND):
            for work in self._works:
                await work.over.wait()
        return anyio.current_time() - began


@asynccontextmanager
async def parallel_calls() -> AsyncGenerator[ParallelCalls]:
    async with anyio.create_task_group() as group:
        yield ParallelCalls(group)
        group.cancel_scope.cancel()


def read_log(log: Path) -> str:
    return log.read_text()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208
