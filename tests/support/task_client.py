"""MCP tasks as the official client sees them, in both generations."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, cast

import anyio
import mcp_types as types
from mcp.client.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, NotificationBinding, ResultClaim
from pydantic import BaseModel, ConfigDict
from tests.support.daemon_home import BOUND, Home, eventually
from tests.support.mcp_client import Generation, Transport, line
from tests.support.person_client import Person

Json = dict[str, Any]


class AnyResult(types.Result):
    """A result with the fields that its method has."""

    model_config = ConfigDict(extra="allow")


EXTENSION = "io.modelcontextprotocol/tasks"
MODERN: Generation = "2026-07-28"


class TaskHandle(types.Result):
    """The answer to a call that became a task, in MCP 2026-07-28."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)
    result_type: Literal["task"] = "task"


class TaskNote(BaseModel):
    model_config = ConfigDict(extra="allow")


class _Request(types.Request[dict[str, Any], str]):
    name_param = "taskId"


class TasksExtension(ClientExtension):
    """Declares the extension in MCP 2026-07-28, and collects the notifications of both generations."""

    identifier = EXTENSION

    def __init__(self, generation: Generation) -> None:
        self.notes = list[Json]()
        self._is_modern = generation == MODERN

    def claims(self) -> Sequence[ResultClaim[Any]]:
        async def resolve(_handle: TaskHandle, _context: ClaimContext) -> types.CallToolResult:
            raise AssertionError("the tests take tasks as they are")

        return [ResultClaim(result_type="task", model=TaskHandle, resolve=resolve)]

    def notifications(self) -> Sequence[NotificationBinding[Any]]:
        async def hear(note: TaskNote) -> None:
            self.notes.append(cast("Json", note.model_extra))

        method = "notifications/tasks" if self._is_modern else "notifications/tasks/status"
        return [NotificationBinding(method=method, params_type=TaskNote, handler=hear)]


class TaskClient:
    """A connected client that takes tasks."""

    def __init__(self, client: Client, generation: Generation, notes: list[Json]) -> None:
        self.client, self.notes = client, notes
        self.is_modern = generation == MODERN

    async def start(self, tool: str, **arguments: Any) -> Json:
        """Call a tool; the task that it became."""
        if self.is_modern:
            with anyio.fail_after(BOUND):
                handle = await self.client.session.call_tool(tool, arguments, allow_claimed=True)
            assert isinstance(handle, TaskHandle), handle
            return handle.model_dump(mode="json", by_alias=True)
        params = {"name": tool, "arguments": arguments, "task": {"ttl": 60_000}}
        with anyio.fail_after(BOUND):  # raw: the SDK's client takes no task as the result of a call
            created = await vars(self.client.session)["_dispatcher"].send_raw_request("tools/call", params)
        return types.CreateTaskResult.model_validate(created).task.model_dump(mode="json", by_alias=True)

    async def send(self, method: str, **params: Any) -> Json:
        """Send a request about tasks."""
        if not params:
            return await self._ask(types.Request[dict[str, Any], str](method=method, params=params))
        return await self._ask(_Request(method=method, params=params))

    async def get(self, task: Json) -> Json:
        return await self.send("tasks/get", taskId=task["taskId"])

    async def ended(self, task: Json) -> Json:
        """The task, once it has ended."""

        async def look() -> Json | None:
            state = await self.get(task)
            return None if state["status"] in ("working", "input_required") else state

        return await eventually(look)

    async def result(self, task: Json) -> types.CallToolResult:
        """The result of a task that is completed."""
        if self.is_modern:
            state = await self.ended(task)
            assert state["status"] == "completed", state
            return types.CallToolResult.model_validate(state["result"])
        return types.CallToolResult.model_validate(await self.send("tasks/result", taskId=task["taskId"]))

    async def _ask(self, request: types.Request[Any, Any]) -> Json:
        with anyio.fail_after(BOUND):
            result = await self.client.session.send_request(request, AnyResult)
        return result.model_dump(mode="json", by_alias=True, exclude_unset=True)


@asynccontextmanager
async def task_client(
    home: Home,
    workspace: Path,
    generation: Generation,
    person: Person | None = None,
    transport: Transport = "stdio",
    **callbacks: Any,
) -> AsyncGenerator[TaskClient]:
    """A client that declares tasks, as far as its generation has that."""
    extension = TasksExtension(generation)
    async with (
        line(home, workspace, person, transport) as server,
        Client(server, mode=generation, extensions=[extension], cache=None, **callbacks) as client,
    ):
        yield TaskClient(client, generation, extension.notes)
