"""Calls of tools that their server offers as tasks only (MCP 2025-11-25).

The client knows nothing of the server's task: its call waits for the result, and cancels the task when it ends before.
The server's progress, and what it says about the state of the task, are the progress of the call.
"""

from contextlib import suppress

import anyio
from anyio.abc import TaskGroup

from handrail.store.values import Json
from handrail.upstream.jsonrpc_connection import ConnectionLost, JsonRpcConnection, Progress, RpcError

TTL_MILLISECONDS = 3_600_000
"""How long the server should keep a task. The call waits meanwhile, so this bounds what is left there after a crash of ours."""
CANCEL_SECONDS = 10.0
"""Time for a server to acknowledge that a task is cancelled."""
STATUS = "notifications/tasks/status"


def can_take_tasks(capabilities: Json) -> bool:
    """Whether a server declares that a tool can be called as a task."""
    found: object = capabilities
    for name in ("tasks", "requests", "tools", "call"):
        found = found.get(name) if isinstance(found, dict) else None
    return isinstance(found, dict)


class ServerTasks:
    """The tasks of one connection."""

    def __init__(self, rpc: JsonRpcConnection, group: TaskGroup) -> None:
        self._rpc, self._group = rpc, group
        self._progress: dict[str, Progress] = {}
        """Who hears of the state of each open task."""

    async def call(self, params: Json, on_progress: Progress | None, origin: object) -> Json:
        """Call a tool as a task, and wait for its result. Raises RpcError or ConnectionLost."""
        with self._rpc.progress_token(on_progress) as token:  # valid until the task ends
            sent: Json = {**params, "task": {"ttl": TTL_MILLISECONDS}}
            created = await self._rpc.request("tools/call", sent, token, origin)
            task = created.get("task")
            name = task.get("taskId") if isinstance(task, dict) else None
            if not isinstance(name, str):
                return created  # it answered at once
            if on_progress is not None:
                self._progress[name] = on_progress
            try:
                return await self._wait(name, origin)
            finally:
                self._progress.pop(name, None)

    async def _wait(self, name: str, origin: object) -> Json:
        try:
            return await self._rpc.request("tasks/result", {"taskId": name}, origin=origin)
        except ConnectionLost as lost:
            lost.is_sent = True  # the task is at the server
            raise
        except anyio.get_cancelled_exc_class():
            self._group.start_soon(self._cancel, name)
            raise

    async def _cancel(self, name: str) -> None:
        with suppress(RpcError, ConnectionLost), anyio.move_on_after(CANCEL_SECONDS):
            await self._rpc.request("tasks/cancel", {"taskId": name}, can_cancel=False)

    async def hear(self, status: Json) -> None:
        """Handle a notification about the state of a task."""
        on_progress = self._progress.get(str(status.get("taskId")))
        message = status.get("statusMessage")
        if on_progress is not None and isinstance(message, str) and message:
            await on_progress({"message": message})
