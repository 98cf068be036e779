"""MCP tasks: calls that go on without their request. The id of a task is the call's id.

Two forms: in MCP 2025-11-25 a request asks for a task, and is answered at once. A client of 2026-07-28 declares the tasks
extension, and gets a task for a call that would be handed back. State and result are those of the call on record.
"""

import json
import logging
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal, cast

import anyio
import mcp_types as types
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types import CLIENT_CAPABILITIES_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field, JsonValue

from handrail.errors import Unwritable
from handrail.gate.call import Call, Outcome
from handrail.gate.gate import Gate, Reply
from handrail.gate.restore import read_ended_call
from handrail.gate.tool import Image
from handrail.lazy_dataclass import dataclass
from handrail.server.mcp._client_link import (
    NOTIFY_SECONDS,
    RELATED_TASK,
    Context,
    ForwardedRequest,
    connection_of,
)
from handrail.server.mcp.tool_results import wire_status
from handrail.store.actor import CLIENT, actor_from_text
from handrail.store.calls import CallHistory, CallRecord
from handrail.store.records import Records
from handrail.store.values import Caller, Json
from handrail.terminal.jsonrpc_messages import encode_message

log = logging.getLogger(__name__)

EXTENSION = "io.modelcontextprotocol/tasks"
"""The name of the tasks extension of MCP 2026-07-28."""
WITH_TASKS = "2025-11-25"
"""The only generation with a handshake that has tasks."""
POLL_MS = 1000
"""The interval at which a client is advised to ask for a task."""
KEPT_BYTES = 32 << 20
"""Answers of ended tasks that are kept whole: images and other content that is not recorded. Bounds memory."""
ANSWER_BYTES = 1024
"""What an answer counts beside its content."""
PAGE = 100
"""Tasks on one page of `tasks/list`."""
CAPABILITY = types.ServerTasksCapability(
    list=types.TasksListCapability(),
    cancel=types.TasksCancelCapability(),
    requests=types.ServerTasksRequestsCapability(
        tools=types.TasksToolsCapability(call=types.TasksCallCapability())
    ),
)
"""What a server declares to clients of MCP 2025-11-25."""

State = Literal["working", "input_required", "completed", "failed", "cancelled"]


class UpdateTaskParams(types.RequestParams):
    """Answers to the questions of a task's server."""

    task_id: str = Field(alias="taskId")
    input_responses: dict[str, Any] = Field(default_factory=dict, alias="inputResponses")


def asks_for_task(context: Context) -> bool:
    """Whether a client of MCP 2025-11-25 asks for a task with this very request."""
    params = context.params or {}
    return context.protocol_version == WITH_TASKS and isinstance(params.get("task"), dict)


def declares_tasks(context: Context) -> bool:
    """Whether a request of MCP 2026-07-28 declares the tasks extension. What other requests declared does not count."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return False
    value: object = context.params or {}
    for name in ("_meta", CLIENT_CAPABILITIES_META_KEY, "extensions"):
        value = cast("Json", value).get(name) if isinstance(value, dict) else None
    return isinstance(value, dict) and EXTENSION in value


def check_declared(context: Context) -> None:
    """Raise the error for a request that needs the tasks extension and does not declare it."""
    if not declares_tasks(context):
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"This request has to declare the extension {EXTENSION} in its client capabilities.",
            {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
        )


def set_task_support(tool: Json, version: str) -> Json:
    """The definition of another server's tool, with the support for tasks that Handrail gives it."""
    given = tool.get("execution")
    own = dict(given) if isinstance(given, dict) else {}
    own.pop("taskSupport", None)
    if version == WITH_TASKS:
        own["taskSupport"] = "optional"
    rest = {name: value for name, value in tool.items() if name != "execution"}
    return {**rest, "execution": own} if own else rest


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the record of a call leaves out."""

    relayed: bytes
    """As JSON, whose size is known: as objects, a small message can take thirty times its bytes. Empty for none."""
    image: Image | None

    @property
    def size(self) -> int:
        return ANSWER_BYTES + len(self.relayed) + (len(self.image.content) if self.image else 0)


class Tasks:
    """The calls that clients know as tasks. `run` must be running for notifications and whole answers."""

    def __init__(self, gate: Gate, records: Records, answer: Callable[[Reply], Json]) -> None:
        """`answer` builds the result of an ended call, as its request would have got it. It can raise MCPError."""
        self._gate, self._records, self._answer = gate, records, answer
        self._group: TaskGroup | None = None
        self._watched: set[str] = set()
        self._answers: OrderedDict[str, _Answer] = OrderedDict()
        self._kept_bytes = 0
        self._requests: dict[str, tuple[str, ForwardedRequest]] = {}
        """Open tasks of other servers' tools: the client's key and its request, by call."""
        self.on_change: list[Callable[[str], None]] = []
        """Called with the id of a task that has ended, or asks its client something."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Watch the tasks until cancelled."""
        async with anyio.create_task_group() as group:
            self._group = group
            task_status.started()
            await anyio.sleep_forever()

    def register(
        self,
        server: Server[Any],
        caller: Callable[[Context], Caller],
        gone: Callable[[Context], anyio.Event | None],
    ) -> None:
        """Serve the methods of tasks. `gone` gives the event for a client that leaves."""

        async def get(context: Context, params: types.GetTaskRequestParams) -> Json:
            _check_generation(context)
            return await self.describe(params.task_id, caller(context), context.protocol_version)

        async def result(context: Context, params: types.GetTaskPayloadRequestParams) -> Json:
            _check_generation(context, WITH_TASKS)
            return await self._result(params.task_id, caller(context), gone(context))

        async def list_tasks(context: Context, params: types.PaginatedRequestParams) -> Json:
            _check_generation(context, WITH_TASKS)
            return await self._list(caller(context), params.cursor)

        async def update(context: Context, params: UpdateTaskParams) -> Json:
            _check_generation(context, *MODERN_PROTOCOL_VERSIONS)
            await self._read(params.task_id, caller(context))
            if params.task_id in self._requests:
                self._requests[params.task_id][1].answer_questions(params.input_responses)
            return {}

        async def cancel(context: Context, params: types.CancelTaskRequestParams) -> Json:
            _check_generation(context)
            return await self._cancel(params.task_id, caller(context), context.protocol_version)

        server.add_request_handler("tasks/get", types.GetTaskRequestParams, get)
        server.add_request_handler("tasks/result", types.GetTaskPayloadRequestParams, result)
        server.add_request_handler("tasks/list", types.PaginatedRequestParams, list_tasks)
        server.add_request_handler("tasks/update", UpdateTaskParams, update)
        server.add_request_handler("tasks/cancel", types.CancelTaskRequestParams, cancel)

    def hand_over(
        self, context: Context, reply: Reply, request: ForwardedRequest | None = None, key: str = ""
    ) -> Json | None:
        """The task in place of a result, if the client takes one; else None.

        `request` is that of a call of another server's tool, which may ask the client named by `key` something.
        """
        call, is_asked = reply.call, asks_for_task(context)
        if not is_asked and (reply.outcome is not None or not declares_tasks(context)):
            return None
        if request is not None and reply.outcome is None and call.id not in self._requests:
            request.is_task, request.on_ask = True, lambda: self._announce(call.id)
            self._requests[call.id] = (key, request)
        self.watch(call, context if is_asked else None)
        now = _time(datetime.now(UTC).timestamp() * 1000)
        state = _state(call.id, "working", _describe_open(call.status), now, now, is_asked=is_asked)
        return {"task": state} if is_asked else {"resultType": "task", **state}

    def watch(self, call: Call, context: Context | None = None) -> None:
        """Announce the end of an open call; to the client of this request too, if given."""
        if self._group is not None and call.id not in self._watched:
            self._watched.add(call.id)
            self._group.start_soon(self._watch, call, context)

    async def follow(self, id: str, caller: Caller) -> bool:
        """Announce the end of this task from now on; False if the client has no such task."""
        try:
            await self._read(id, caller)
        except MCPError:
            return False
        if id in self._gate.open:
            self.watch(self._gate.open[id])
        return True

    def client_left(self, key: str) -> None:
        """Leave the questions of its servers unanswered. Its tasks go on."""
        for call, (owner, request) in list(self._requests.items()):
            if owner == key:
                del self._requests[call]
                request.drop_questions()

    async def describe(self, id: str, caller: Caller, version: str) -> Json:
        """The state of a task: with its result inline for MCP 2026-07-28. Raises MCPError."""
        detail = await self._read(id, caller)
        is_modern = version in MODERN_PROTOCOL_VERSIONS
        if detail.call.ending is not None:
            state, more = self._end(detail)
            message = detail.call.message or wire_status(detail.call.status)
        elif is_modern and (asked := self._questions(id)):
            state, more, message = "input_required", {"inputRequests": asked}, "its server asks"
        else:
            state, more, message = "working", {}, _describe_open(detail.call.status)
        changed = max(filter(None, _moments(detail.call)))
        times = (_time(detail.call.opened_at), _time(changed))
        wire = _state(id, state, message, *times, is_asked=not is_modern)
        return {**wire, **more} if is_modern else wire

    def _questions(self, id: str) -> Json:
        request = self._requests[id][1] if id in self._requests else None
        return {} if request is None else request.wire_questions

    def _end(self, detail: CallHistory) -> tuple[State, Json]:
        """How an ended task ended, with its result or error."""
        call = read_ended_call(self._gate, detail)
        outcome = cast("Outcome", call.outcome)
        kept = self._answers.get(call.id)
        if kept is not None:
            call.relayed = json.loads(kept.relayed) if kept.relayed else None
            call.image = kept.image
        if outcome.ending == "interrupted":
            return "failed", {"error": {"code": types.INTERNAL_ERROR, "message": outcome.message}}
        try:
            result = self._answer(Reply(call=call, outcome=outcome))
        except MCPError as problem:
            return "failed", {"error": problem.error.model_dump(mode="json", exclude_none=True)}
        if outcome.ending == "cancelled" and actor_from_text(detail.call.settled_by or "") == CLIENT:
            return "cancelled", {"result": result}
        return "completed", {"result": result}

    async def _result(self, id: str, caller: Caller, gone: anyio.Event | None) -> Json:
        """The result of a task, once it has ended. Raises MCPError."""
        detail = await self._read(id, caller)
        if (call := self._gate.open.get(id)) is not None:
            await _wait_for_end(call, gone)
        detail = await self._read(id, caller)
        if detail.call.ending is None:
            raise MCPError(types.INTERNAL_ERROR, "The outcome of this call could not be recorded.")
        state, more = self._end(detail)
        if state == "failed":
            error = cast("dict[str, Any]", more["error"])
            raise MCPError(error["code"], error["message"], error.get("data"))
        result = cast("Json", more["result"])
        meta = result.get("_meta")
        related: Json = {RELATED_TASK: {"taskId": id}}
        return {**result, "_meta": {**(meta if isinstance(meta, dict) else {}), **related}}

    async def _list(self, caller: Caller, cursor: str | None) -> Json:
        if cursor is not None and not (cursor.isascii() and cursor.isdigit()):
            raise MCPError(types.INVALID_PARAMS, "This cursor is unknown. Begin again without one.")
        before = None if cursor is None else min(int(cursor), 1 << 62)
        found = await self._records.calls.find(handed_back_to=caller.key, before=before, limit=PAGE)
        states: list[JsonValue] = [await self.describe(record.id, caller, WITH_TASKS) for record in found]
        more: Json = {"nextCursor": str(found[-1].opened_seq)} if len(found) == PAGE else {}
        return {"tasks": states, **more}

    async def _cancel(self, id: str, caller: Caller, version: str) -> Json:
        detail = await self._read(id, caller)
        call = self._gate.open.get(id)
        is_asked = version == WITH_TASKS
        if call is not None:
            self._gate.end(call, Outcome(ending="cancelled", by=CLIENT, message="Cancelled by the client"))
        elif is_asked:
            status = wire_status(detail.call.status)
            raise MCPError(types.INVALID_PARAMS, f"Task {id} has ended already: {status}.")
        return await self.describe(id, caller, version) if is_asked else {}

    async def _read(self, id: str, caller: Caller) -> CallHistory:
        """The call of a task. One of another client does not exist."""
        if id not in self._gate.open:  # it may have just ended: wait until its outcome is on record
            with suppress(Unwritable):
                await self._gate.journal.committed(self._gate.journal.head)
        detail = await self._records.calls.get(id)
        if detail is None or detail.call.caller.key != caller.key:
            raise MCPError(types.INVALID_PARAMS, f"There is no task {id[:40]!r} of this client.")
        return detail

    async def _watch(self, call: Call, context: Context | None) -> None:
        with suppress(Unwritable):
            await call.settled()
        self._requests.pop(call.id, None)
        self._watched.discard(call.id)
        try:
            self._keep(call)
            self._announce(call.id)
            if context is not None:
                await _notify(context, await self.describe(call.id, call.caller, WITH_TASKS))
        except MCPError:
            return
        except Exception:  # costs this notification: all tasks share the task group
            log.exception("the end of task %s could not be announced", call.id)

    def _announce(self, id: str) -> None:
        for announce in self.on_change:
            announce(id)

    def _keep(self, call: Call) -> None:
        """Keep what is not recorded of an answer, of the latest calls."""
        if (call.relayed is None and call.image is None) or call.id in self._answers:
            return
        relayed = b"" if call.relayed is None else encode_message(call.relayed)
        answer = self._answers[call.id] = _Answer(relayed, call.image)
        self._kept_bytes += answer.size
        while self._kept_bytes > KEPT_BYTES:
            _, dropped = self._answers.popitem(last=False)
            self._kept_bytes -= dropped.size


def _check_generation(context: Context, *versions: str) -> None:
    """Raise the error for a client whose generation does not have a method, or that has to declare more."""
    if context.protocol_version not in (versions or (WITH_TASKS, *MODERN_PROTOCOL_VERSIONS)):
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found", context.method)
    if context.protocol_version != WITH_TASKS:
        check_declared(context)


def _state(id: str, state: State, message: str, created: str, changed: str, *, is_asked: bool) -> Json:
    """A task on the wire; `is_asked` gives the form of MCP 2025-11-25. Calls are kept, so no task expires."""
    ttl, poll = ("ttl", "pollInterval") if is_asked else ("ttlMs", "pollIntervalMs")
    times: Json = {"createdAt": created, "lastUpdatedAt": changed}
    return {"taskId": id, "status": state, "statusMessage": message, **times, ttl: None, poll: POLL_MS}


def _describe_open(status: str) -> str:
    return "waiting for a person" if status == "waiting" else "running"


def _moments(record: CallRecord) -> tuple[int | None, ...]:
    return (
        record.opened_at,
        record.asked_at,
        record.reviewed_at,
        record.answered_at,
        record.started_at,
        record.handed_back_at,
        record.settled_at,
    )


def _time(ms: float) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def _wait_for_end(call: Call, gone: anyio.Event | None) -> None:
    """Wait until a call has ended, or its client has left. Raises MCPError."""
    problem: Unwritable | None = None
    async with anyio.create_task_group() as group:

        async def give_up(gone: anyio.Event) -> None:
            await gone.wait()
            group.cancel_scope.cancel()

        if gone is not None:
            group.start_soon(give_up, gone)
        try:
            await call.settled()
        except Unwritable as error:  # raised below, outside the ExceptionGroup
            problem = error
        group.cancel_scope.cancel()
    if problem is not None:
        raise MCPError(types.INTERNAL_ERROR, str(problem))


async def _notify(context: Context, state: Json) -> None:
    """Tell a client of MCP 2025-11-25 how its task is. One that is gone, or does not read, misses it."""
    with (
        anyio.move_on_after(NOTIFY_SECONDS),
        suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, MCPError),
    ):
        await connection_of(context).notify("notifications/tasks/status", state)
