"""A server that starts slowly is used in a generation that it speaks. Lists without measure: how much of them is taken."""

import json
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup

from handrail.store.bell import Bell
from handrail.store.values import Caller, Json
from handrail.terminal.jsonrpc_messages import encode_message
from handrail.upstream._server_tasks import TTL_MILLISECONDS
from handrail.upstream.no_client import NoClient
from handrail.upstream.server_connection import (
    LEGACY,
    LIST_BYTES,
    LIST_MAX,
    MODERN,
    RELATED_TASK,
    ServerConnection,
)
from handrail.upstream.tool_definition import ToolDefinition

BOUND = 20.0
CALLER = Caller(door="stdio", client="test", key="test", workspace=None)
Answer = Callable[[Json], Json]
LONG: list[Json] = [{"text": "x" * 1_000_000}] * 3
MANY: list[Json] = [{"n": 1}] * 3000


class Line:
    """A line to a server in memory, which answers each request for a list."""

    def __init__(self, answer: Answer) -> None:
        self.why: str | None = None
        self.asked = 0
        self._answer = answer
        self._lines = deque[bytes]()
        self._bell = Bell()

    def send(self, line: bytes) -> None:
        message = json.loads(line)
        if message["method"].endswith("/list"):
            self.asked += 1
            self.say(id=message["id"], result=self._answer(message["params"]))

    def say(self, **message: Any) -> None:
        self._lines.append(encode_message({"jsonrpc": "2.0", **message}))
        self._bell.ring()

    async def receive(self) -> bytes | None:
        while not self._lines:
            await self._bell.wait()
        return self._lines.popleft()

    def give_up(self, why: str) -> None:
        self.why = self.why or why


class SlowLine(Line):
    """A line to a server that misses the first request, or answers it late; it speaks one generation."""

    def __init__(self, *, is_legacy: bool, answers_late: bool) -> None:
        super().__init__(lambda _: {})
        self._is_legacy, self._answers_late = is_legacy, answers_late
        self.methods: list[str] = []

    def send(self, line: bytes) -> None:
        message = json.loads(line)
        self.methods.append(message["method"])
        number = message.get("id")
        if len(self.methods) == 1 or number is None:
            return
        if len(self.methods) == 2 and self._answers_late:
            self.say(id=number - 1, result={"supportedVersions": [MODERN], "capabilities": {}})
        if (message["method"] == "initialize") != self._is_legacy:
            self.say(id=number, error={"code": -32022, "message": "unknown here"})
        elif self._is_legacy:
            self.say(id=number, result={"protocolVersion": LEGACY, "capabilities": {}})
        else:
            self.say(id=number, result={"supportedVersions": [MODERN], "capabilities": {}})


class TaskLine(Line):
    """A line to a server with a tool that it offers as a task only, and that never ends by itself."""

    def __init__(self) -> None:
        super().__init__(lambda _: {})
        self.sent: list[tuple[str, Json]] = []
        self.numbers: dict[str, int] = {}
        """The id of the latest request, by its method."""

    def send(self, line: bytes) -> None:
        message = json.loads(line)
        method, params = message["method"], message.get("params", {})
        self.sent.append((method, params))
        self.numbers[method] = message.get("id", 0)
        if method == "initialize":
            tasks: Json = {"requests": {"tools": {"call": {}}}}
            self.say(id=message["id"], result={"protocolVersion": LEGACY, "capabilities": {"tasks": tasks}})
        elif method == "tools/call":
            self.say(id=message["id"], result={"task": {"taskId": "t1", "status": "working"}})
        elif method == "tasks/cancel":
            self.say(id=message["id"], result={"taskId": "t1", "status": "cancelled"})


TASK_ONLY = ToolDefinition(
    server="s",
    wire={"name": "research", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}},
)


def connect(line: Line, group: TaskGroup) -> ServerConnection:
    def nothing(*_: object) -> None:
        return

    return ServerConnection(
        "s", line, NoClient(CALLER), group, sampling=False, on_tools=nothing, on_list_changed=nothing
    )


@pytest.mark.parametrize(
    ("page", "taken"),
    [
        (LONG, LIST_BYTES // 1_000_014),
        (MANY, LIST_MAX),
    ],
    ids=["long entries", "many entries"],
)
async def test_an_endless_list_is_taken_up_to_a_bound(page: list[Json], taken: int) -> None:
    found: list[Any] = []
    line = Line(lambda _: {"resources": [*page], "nextCursor": "more"})
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            connection = connect(line, group)
            group.start_soon(connection.run)
            found = await connection.list_all("resources/list", "resources")
            group.cancel_scope.cancel()

    assert len(found) == taken


async def test_a_flood_of_changes_waits_as_one_refresh() -> None:
    line, first = Line(lambda _: {"tools": []}), 0
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            connection = connect(line, group)
            for _ in range(1000):
                await connection.hear("notifications/tools/list_changed", {})
            group.start_soon(connection.run)
            await anyio.wait_all_tasks_blocked()
            first = line.asked
            await connection.hear("notifications/tools/list_changed", {})
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()

    assert (first, line.asked) == (1, 2)


@pytest.mark.parametrize(
    ("is_legacy", "answers_late", "asked"),
    [
        (True, False, ["server/discover", "initialize", "notifications/initialized"]),
        (True, True, ["server/discover", "initialize", "notifications/initialized"]),
        (False, False, ["server/discover", "initialize", "server/discover"]),
    ],
    ids=["2025", "both, slowly", "2026"],
)
async def test_a_server_that_misses_the_first_question_is_asked_for_both_generations(
    is_legacy: bool, answers_late: bool, asked: list[str]
) -> None:
    """One that never answers it costs the next client no time; one that was slow is asked again."""
    line, connection = SlowLine(is_legacy=is_legacy, answers_late=answers_late), None
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            connection = connect(line, group)
            group.start_soon(connection.run)
            await connection.open(discovery_seconds=0.01)
            group.cancel_scope.cancel()

    assert connection is not None
    assert (connection.protocol, line.methods) == (LEGACY if is_legacy else MODERN, asked)
    assert connection.refused_discovery == (is_legacy and not answers_late)


async def test_a_call_that_ends_cancels_the_task_that_its_server_made_of_it() -> None:
    line = TaskLine()
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            connection = connect(line, group)
            group.start_soon(connection.run)
            await connection.open()
            with anyio.CancelScope() as scope:
                group.start_soon(cancel_at, line, "tasks/result", scope)
                await connection.call_tool(TASK_ONLY, {"name": "research", "arguments": {}}, None, None, {})
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()

    assert [method for method, _ in line.sent[2:]] == [
        "tools/call",
        "tasks/result",
        "notifications/cancelled",
        "tasks/cancel",
    ]
    assert line.sent[2][1]["task"] == {"ttl": TTL_MILLISECONDS}
    assert line.sent[-1][1]["taskId"] == "t1"


async def test_what_a_server_reports_about_its_task_is_the_progress_of_the_call() -> None:
    """The token of the call is valid until the task ends. Other tasks, and later reports, are not the call's."""
    line, heard = TaskLine(), list[Json]()
    call: Json = {"name": "research", "arguments": {}}
    answers: Json = {}
    related: Json = {RELATED_TASK: {"taskId": "t1"}}

    async def hear(progress: Json) -> None:
        heard.append({name: value for name, value in progress.items() if name != "progressToken"})

    def report(**params: Any) -> None:
        line.say(method="notifications/progress", params={"progressToken": token_of(line), **params})

    def state(task: str, status: str, **more: Any) -> None:
        params: Json = {"taskId": task, "status": status, **more}
        line.say(method="notifications/tasks/status", params=params)

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            connection = connect(line, group)
            group.start_soon(connection.run)
            await connection.open()
            group.start_soon(connection.call_tool, TASK_ONLY, call, hear, None, answers)
            await anyio.wait_all_tasks_blocked()
            report(progress=1, total=2, _meta=related)
            state("other", "working", statusMessage="of another task")
            state("t1", "working")
            state("t1", "working", statusMessage="reading")
            line.say(id=line.numbers["tasks/result"], result={"content": []})
            await anyio.wait_all_tasks_blocked()
            report(progress=2)
            state("t1", "completed", statusMessage="too late")
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()

    assert heard == [{"progress": 1, "total": 2}, {"message": "reading"}]


def token_of(line: TaskLine) -> int:
    (params,) = [params for method, params in line.sent if method == "tools/call"]
    return cast("Any", params)["_meta"]["progressToken"]


async def cancel_at(line: TaskLine, method: str, scope: anyio.CancelScope) -> None:
    while line.sent[-1][0] != method:
        await anyio.lowlevel.checkpoint()
    scope.cancel()
