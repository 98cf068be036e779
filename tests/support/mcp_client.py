"""An MCP client on a real connection to Handrail: stdio or HTTP, in either protocol generation.

It validates every result against the schema of its tool.
"""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import anyio
import httpx2
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from tests.support.daemon_home import BOUND, Home
from tests.support.person_client import Person

Transport = Literal["stdio", "http"]
Generation = Literal["legacy", "2026-07-28"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReply:
    """The result of a tool call."""

    data: dict[str, Any]
    text: str
    is_error: bool

    @property
    def status(self) -> str:
        return self.data["status"]

    @property
    def call(self) -> str:
        return self.data["call_id"]


@dataclass(slots=True)
class PendingCall:
    """A tool call that runs in the background."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    came: ToolReply | MCPError | None = None
    done: anyio.Event = field(default_factory=anyio.Event)

    async def told(self) -> ToolReply:
        with anyio.fail_after(2 * BOUND):
            await self.done.wait()
        assert isinstance(self.came, ToolReply), self.came
        return self.came


class Agent:
    """A client that uses tools."""

    def __init__(self, client: Client, group: TaskGroup) -> None:
        self.client = client
        self._group = group

    async def use(self, tool: str, progress: ProgressFnT | None = None, **input: Any) -> ToolReply:
        """Use a tool and wait for what comes back."""
        with anyio.fail_after(3 * BOUND):
            result = await self.client.call_tool(tool, input, progress_callback=progress)
            assert isinstance(result, types.CallToolResult)
            await self.client.session.validate_tool_result(tool, result)
        return tool_reply(result)

    def ask(self, tool: str, **input: Any) -> PendingCall:
        """Start a tool call in the background. Cancel its scope to give it up."""
        asked = PendingCall()

        async def work() -> None:
            with asked.scope:
                try:
                    asked.came = await self.use(tool, **input)
                except MCPError as error:  # a line that was cut; for the test to judge
                    asked.came = error
                asked.done.set()

        self._group.start_soon(work)
        return asked


@asynccontextmanager
async def agent(
    home: Home,
    workspace: Path,
    person: Person | None = None,
    *,
    transport: Transport = "stdio",
    generation: Generation = "legacy",
    name: str = "e2e",
) -> AsyncGenerator[Agent]:
    """A connected client. Pending calls are cancelled at the end."""
    info = types.Implementation(name=name, version="1")
    async with (
        line(home, workspace, person, transport) as server,
        Client(server, mode=generation, client_info=info, cache=None) as client,
        anyio.create_task_group() as group,
    ):
        await client.list_tools()  # so that schemas are at hand whatever becomes of the daemon
        yield Agent(client, group)
        group.cancel_scope.cancel()


def tool_reply(result: types.CallToolResult) -> ToolReply:
    text = "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))
    data = cast("dict[str, Any]", result.structured_content)
    return ToolReply(data=data, text=text, is_error=bool(result.is_error))


@asynccontextmanager
async def line(
    home: Home, workspace: Path, person: Person | None, transport: Transport
) -> AsyncGenerator[Any]:
    if transport == "stdio":
        yield stdio(home, workspace)
        return
    assert person is not None
    credential = await person.credential(str(workspace))
    headers = {"Authorization": f"Bearer {credential['bearer']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=3 * BOUND, verify=False) as http:
        yield streamable_http_client(credential["url"], http_client=http)


def stdio(home: Home, workspace: Path) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "handrail", "mcp", "--workspace", str(workspace)],
        env={"HANDRAIL_HOME": home.environment["HANDRAIL_HOME"]},
    )
