"""The toolset of a session: the tools of its MCP servers, `update_plan` and `read_output`.

Decides the names under which the model sees the tools. Importing it loads neither the MCP SDK nor the model library, so
that our own server is connected while those are loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup
from pydantic import TypeAdapter, ValidationError

from handrail.own_agent.tools.agent_tool import (
    CallDisplay,
    Json,
    Permission,
    PlanEntry,
    Result,
    RunningCall,
    Tool,
)
from handrail.own_agent.tools.long_output import READ_OUTPUT, Outputs, ReadOutput
from handrail.own_agent.tools.mcp_servers import Server
from handrail.own_agent.tools.mcp_tool import McpTool
from handrail.own_agent.tools.server_config import ServerConfig, select_servers

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pydantic_ai.tools import ToolDefinition

    from handrail.own_agent.acp_requests import HostServer


UPDATE_PLAN = "update_plan"
LONGEST_NAME = 64
"""Characters; the longest name that every provider accepts."""
MOST_INSTRUCTIONS = 8_000
"""Characters of one server's instructions, which are part of every request."""
_NOT_FOR_MODELS = frozenset({"approve"})
"""Tools of our own server that are for other programs."""


class Servers:
    """The servers of one session. Their connections run in `group`."""

    def __init__(self, wanted: Sequence[ServerConfig], cwd: str, group: TaskGroup) -> None:
        self._cwd = cwd
        self._servers = [Server(each, cwd, group) for each in wanted]
        self._permission = Permission()
        self._outputs = Outputs()
        self._own: Mapping[str, Tool] = {
            UPDATE_PLAN: UpdatePlan(),
            READ_OUTPUT: ReadOutput(self._outputs),
        }

    async def settled(self) -> None:
        """Wait until every server is connected, has failed or has timed out."""
        async with anyio.create_task_group() as group:
            for server in self._servers:
                group.start_soon(server.settled)

    @property
    def tools(self) -> Mapping[str, Tool]:
        tools: dict[str, Tool] = dict(self._own)
        for tool in self._remote():
            tools.setdefault(tool.name, tool)  # the first tool of a name wins; ours come first
        return tools

    @property
    def problems(self) -> Sequence[str]:
        """A sentence for each server that is not connected."""
        return [
            f"{server} is left out: {server.problem}."
            for server in self._servers
            if server.problem and not server.tools
        ]

    @property
    def instructions(self) -> str:
        instructions = [(server.name, server.instructions.strip()) for server in self._servers]
        return "\n\n".join(
            f"About the tools of {name}: {words[:MOST_INSTRUCTIONS]}" for name, words in instructions if words
        )

    def _remote(self) -> Iterator[McpTool]:
        for server in self._servers:
            for spec in server.tools:
                if server.is_ours and spec.name in _NOT_FOR_MODELS:
                    continue
                yield McpTool(
                    name=spec.name if server.is_ours else tool_name(server.name, spec.name),
                    server=server,
                    spec=spec,
                    permission=None if server.is_ours else self._permission,
                    outputs=self._outputs,
                    cwd=self._cwd,
                )


def tool_name(server: str, tool: str) -> str:
    """`server__tool` in characters that providers accept; a long name is cut and ends with a digest."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", f"{server}__{tool}")
    if len(name) <= LONGEST_NAME:
        return name
    digest = sha256(f"{server}__{tool}".encode()).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - 9]}_{digest}"


class Toolset:
    """The tools of one session, created by `open_toolset`. Empty until `ready` has returned."""

    def __init__(self, notes: Sequence[str]) -> None:
        self._notes = list(notes)
        self._servers: Servers | None = None
        self._loaded = anyio.Event()

    async def ready(self) -> None:
        """Wait until every server is connected, has failed or has timed out. Safe to cancel."""
        await self._loaded.wait()
        if self._servers is not None:
            await self._servers.settled()

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name. They can change when a server reconnects."""
        return {} if self._servers is None else self._servers.tools

    @property
    def notes(self) -> Sequence[str]:
        """A sentence for each server that is missing."""
        return self._notes if self._servers is None else [*self._notes, *self._servers.problems]

    @property
    def instructions(self) -> str:
        """The servers' instructions for the model; empty if there are none."""
        return "" if self._servers is None else self._servers.instructions

    async def begin(self, servers: Sequence[ServerConfig], cwd: str, group: TaskGroup) -> None:
        """Start to connect. Only `open_toolset` calls it."""
        self._servers = Servers(servers, cwd, group)
        self._loaded.set()


@asynccontextmanager
async def open_toolset(given: Sequence[HostServer], cwd: str) -> AsyncGenerator[Toolset]:
    """Open the tools of a session for the length of the `with`; connects in the background.

    Enter and leave it in one task that lives as long as the session. Any task may make calls.
    """
    servers, notes = select_servers(given, cwd)
    toolset = Toolset(notes)
    async with anyio.create_task_group() as group:
        group.start_soon(toolset.begin, servers, cwd, group)
        try:
            yield toolset
        finally:
            group.cancel_scope.cancel()


MOST_ENTRIES = 50
"""Entries of a plan; people see all of them."""
LONGEST_ENTRY = 500
_ENTRIES: TypeAdapter[list[PlanEntry]] = TypeAdapter(list[PlanEntry])
_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "entries": {
            "type": "array",
            "maxItems": MOST_ENTRIES,
            "description": "The whole plan, in order; it replaces the one before.",
            "items": {
                "type": "object",
                "properties": {
                    "content": {"type": "string", "description": "What is to be done, in a few words."},
                    "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                    "priority": {"type": "string", "enum": ["high", "medium", "low"]},
                },
                "required": ["content", "status"],
            },
        }
    },
    "required": ["entries"],
}


@cache
def _define() -> ToolDefinition:
    from pydantic_ai.tools import ToolDefinition  # noqa: PLC0415 - slow import

    return ToolDefinition(
        name=UPDATE_PLAN,
        description=(
            "Show the person your plan, and keep it up to date: for work of three steps or more, give it before you "
            "begin and again whenever a step is begun or done. Exactly one entry is in_progress while you work. Not "
            "for small tasks."
        ),
        parameters_json_schema=_SCHEMA,
    )


class UpdatePlan:
    """The `update_plan` tool."""

    @property
    def definition(self) -> ToolDefinition:
        return _define()

    def shown(self, input: Json) -> CallDisplay:
        return CallDisplay(title="Update the plan", kind="think")

    async def run(self, input: Json, call: RunningCall) -> Result:
        try:
            entries = _ENTRIES.validate_python(input.get("entries"))
        except ValidationError as problem:
            return _refused(_first(problem))
        if len(entries) > MOST_ENTRIES:
            return _refused(f"a plan has at most {MOST_ENTRIES} entries")
        if any(not entry.content.strip() or len(entry.content) > LONGEST_ENTRY for entry in entries):
            return _refused(f"an entry's content has between 1 and {LONGEST_ENTRY} characters")
        call.host.plan(entries)
        done = sum(entry.status == "completed" for entry in entries)
        return Result(text=f"The plan is shown: {done} of {len(entries)} done.")


def _refused(why: str) -> Result:
    return Result(text=f"The plan is not shown: {why}.", failed=True, ended="failed")


def _first(problem: ValidationError) -> str:
    error = problem.errors(include_url=False)[0]
    where = ".".join(str(part) for part in ("entries", *error["loc"]))
    return f"`{where}`: {error['msg']}"
