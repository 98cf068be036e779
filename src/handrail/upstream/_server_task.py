"""A call of a tool that its server offers as a task only (MCP 2025-11-25).

The client knows nothing of the server's task: its call waits for the result, and cancels the task when it ends before.
"""

from contextlib import suppress

import anyio
from anyio.abc import TaskGroup

from handrail.store.values import Json
from handrail.upstream.jsonrpc_connection import ConnectionLost, JsonRpcConnection, RpcError

TTL_MILLISECONDS = 3_600_000
"""How long the server should keep a task. The call waits meanwhile, so this bounds what is left there after a crash of ours."""
CANCEL_SECONDS = 10.0
"""Time for a server to acknowledge that a task is cancelled."""


def can_take_tasks(capabilities: Json) -> bool:
    """Whether a server declares that a tool can be called as a task."""
    found: object = capabilities
    for name in ("tasks", "requests", "tools", "call"):
        found = found.get(name) if isinstance(found, dict) else None
    return isinstance(found, dict)


async def call_as_task(rpc: JsonRpcConnection, group: TaskGroup, params: Json, origin: object) -> Json:
    """Call a tool as a task, and wait for its result. Raises RpcError or ConnectionLost."""
    created = await rpc.request("tools/call", {**params, "task": {"ttl": TTL_MILLISECONDS}}, origin=origin)
    task = created.get("task")
    name = task.get("taskId") if isinstance(task, dict) else None
    if not isinstance(name, str):
        return created  # it answered at once
    try:
        return await rpc.request("tasks/result", {"taskId": name}, origin=origin)
    except ConnectionLost as lost:
        lost.is_sent = True  # the task is at the server
        raise
    except anyio.get_cancelled_exc_class():
        group.start_soon(_cancel, rpc, name)
        raise


async def _cancel(rpc: JsonRpcConnection, name: str) -> None:
    with suppress(RpcError, ConnectionLost), anyio.move_on_after(CANCEL_SECONDS):
        await rpc.request("tasks/cancel", {"taskId": name}, can_cancel=False)
