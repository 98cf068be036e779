"""One hook on the unix socket: one line with its payload, one line with the answer.

If the hook program ends first, no one waits for the answer, and its question is withdrawn.
"""

import json
import logging
from typing import Annotated

import anyio
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from handrail.clients.open_work import ClientProcess
from handrail.framing import HOOK_MAX
from handrail.server.client_hooks import BadPayload, HookReport, Hooks
from handrail.server.mcp._lines import Lines
from handrail.store.values import Json

log = logging.getLogger(__name__)

FRAME_MAX = 6 * HOOK_MAX + (64 << 10)
"""Bytes of the line with a payload: as JSON, a character can take six."""
FRAME_SECONDS = 30.0
"""Time for the line with the payload. Bounds how long a silent hook holds its place."""
SEND_SECONDS = 10.0
"""Time to send the answer to a hook that does not read."""
CANARY_MAX = 16 << 10
OTHER_VERSION = "its hook program is of another version. Run `handrail restart`."
FAULT = "this is a fault in Handrail; its log has the details."


class HookFrame(BaseModel):
    """What a hook program sends. Unknown fields are ignored: newer versions may send more."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    client: Annotated[str, Field(max_length=40)]
    payload: Annotated[str, Field(max_length=HOOK_MAX)]
    event: Annotated[str, Field(max_length=80)] = ""
    environment: dict[str, Annotated[str, Field(max_length=4096)]] = {}
    timeout: Annotated[float, Field(ge=0)] = 0


async def serve_hook(hooks: Hooks, lines: Lines, mark: str, process: ClientProcess | None) -> None:
    """Judge one hook. `mark` is that of a hosted agent; `process` is the client that waits."""
    with anyio.fail_after(FRAME_SECONDS):
        line = await lines.read(FRAME_MAX)
    answer: Json | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(_cancel_at_end, lines, group.cancel_scope)
        answer = await _judge(hooks, line, mark, process)
        group.cancel_scope.cancel()
    if answer is not None:  # else the hook program ended
        await _send(lines, answer)


async def serve_canary(hooks: Hooks, lines: Lines) -> None:
    """Answer a canary. Its sender gets nothing else, so that its launcher need not count as an agent."""
    with anyio.fail_after(FRAME_SECONDS):
        line = await lines.read(CANARY_MAX)
    try:
        refused = hooks.answer_canary(HookFrame.model_validate_json(line or b"").client)
    except (ValidationError, BadPayload) as problem:
        refused = str(problem) if isinstance(problem, BadPayload) else OTHER_VERSION
    await _send(lines, {"refused": refused})


async def _send(lines: Lines, answer: Json) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(lines.flush)
        with anyio.move_on_after(SEND_SECONDS):
            await lines.write(json.dumps(answer).encode() + b"\n")
            await lines.wait_sent()
        group.cancel_scope.cancel()


async def _judge(hooks: Hooks, line: bytes | None, mark: str, process: ClientProcess | None) -> Json:
    try:
        frame = HookFrame.model_validate_json(line or b"")
    except ValidationError:
        return {"refused": OTHER_VERSION}
    report = HookReport(
        client=frame.client,
        payload=frame.payload,
        event=frame.event,
        environment=frame.environment,
        mark=mark,
        process=process,
        timeout=frame.timeout,
    )
    try:
        answer = await hooks.answer(report)
    except BadPayload as problem:
        return {"refused": str(problem)}
    except Exception:
        log.exception("a hook of %s failed", frame.client)
        return {"refused": FAULT}
    return {"stdout": answer.stdout, "stderr": answer.stderr, "status": answer.status}


async def _cancel_at_end(lines: Lines, scope: anyio.CancelScope) -> None:
    """Cancel when the hook program closes its connection. It sends nothing after its payload."""
    try:
        await lines.read(1)
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        scope.cancel()
