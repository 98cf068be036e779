"""What the tests of MCP servers behind the gate share: entries of the configuration, calls, and the client's own answers."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.client.client import Client
from tests.support.daemon_home import BOUND

SERVERS = Path(__file__).parent / "mcp_servers"


def section(name: str, folder: Path, more: str = "", *, program: str = "relayed.py", flags: str = "") -> str:
    """An entry of `[[servers]]` for one of our own servers, with a folder of its own."""
    folder.mkdir()
    command = [sys.executable, "-I", str(SERVERS / program), str(folder), *flags.split()]
    return f'[[servers]]\nname = "{name}"\ncommand = {json.dumps(command)}\n{more}\n'


@asynccontextmanager
async def tasks() -> AsyncGenerator[TaskGroup]:
    """A task group whose type says that it raises what a test raises."""
    async with anyio.create_task_group() as group:
        yield group


async def call(client: Client, tool: str, **arguments: Any) -> types.CallToolResult:
    with anyio.fail_after(BOUND):
        result = await client.call_tool(tool, arguments)
    assert isinstance(result, types.CallToolResult)
    return result


def said(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


def lines(folder: Path, start: str = "") -> list[str]:
    """The lines of a server's log that begin so."""
    log = folder / "log"
    found = log.read_text().splitlines() if log.exists() else []
    return [line for line in found if line.startswith(start)]


async def value(values: list[Any]) -> Any:
    """The values once there are any, for `eventually`."""
    return values or None


async def all_gone(pids: list[int]) -> bool | None:
    return not any(map(is_alive, pids)) or None


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


class Counterpart:
    """A client's answers to the questions of servers, and the notifications that it got."""

    def __init__(self, root: str = "file:///somewhere") -> None:
        self.root = root
        self.asked = list[str]()
        self.logs = list[Any]()
        self.notes = list[str]()

    async def elicit(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(params.message)
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def sample(self, context: Any, params: Any) -> types.ErrorData:
        self.asked.append("sampling")
        return types.ErrorData(code=-1, message="no")

    async def roots(self, context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=self.root)])  # pyright: ignore[reportArgumentType]

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.logs.append(params.data)

    async def hear(self, message: Any) -> None:
        self.notes.append(getattr(message, "method", type(message).__name__))
