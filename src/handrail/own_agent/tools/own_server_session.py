"""An MCP session with our own server: JSON-RPC over the standard streams of `handrail mcp`.

A small client without models of every message. The SDK's takes longer to import than the first prompt may wait, and what
the server sends is known.
"""

from __future__ import annotations

import json
import logging
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

import anyio

from handrail import __version__
from handrail.framing import LineBuffer, LineTooLong
from handrail.lazy_dataclass import dataclass
from handrail.own_agent.tools.mcp_session import (
    MOST_TOOLS,
    ConnectionClosed,
    InvalidAnswer,
    Progress,
    ServerError,
    SessionEvents,
    ToolSpec,
)
from handrail.own_agent.tools.server_config import server_environment

if TYPE_CHECKING:
    from anyio.abc import Process

    from handrail.own_agent.tools.agent_tool import Json
    from handrail.own_agent.tools.server_config import Stdio

PROTOCOL_VERSION = "2025-11-25"
LINE_MAX = 64 << 20
"""Longest message in bytes, enough for pictures and a very long output; bounds the memory that one line can take."""
LAST_MESSAGE_SECONDS = 2.0
"""Seconds to tell the server that a call was cancelled; it may have stopped reading."""
END_SECONDS = 2.0
"""Seconds for the server to end after its input has, and again after SIGTERM."""
_METHOD_NOT_FOUND = -32601
_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Request:
    """A request that the server has not answered yet."""

    progress: Progress | None
    answered: anyio.Event = field(default_factory=anyio.Event)
    message: Json | None = None
    """The answer; None if the connection ended."""


class OwnServerSession:
    """A session with our server. Its task group runs `receive`."""

    def __init__(self, process: Process, events: SessionEvents) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.instructions = ""
        self._input, self._output, self._events = process.stdin, process.stdout, events
        self._sending = anyio.Lock()
        self._open: dict[int, _Request] = {}
        self._last = 0
        self._closed = False

    async def shake_hands(self) -> None:
        info = {"name": "handrail-agent", "title": "Handrail's agent", "version": __version__}
        params = {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": info}
        result = await self._request("initialize", params)
        instructions = result.get("instructions")
        self.instructions = instructions if isinstance(instructions, str) else ""
        await self._send({"method": "notifications/initialized"})

    async def list_tools(self) -> list[ToolSpec]:
        tools: list[ToolSpec] = []
        cursor: object = None
        while len(tools) < MOST_TOOLS:
            page = await self._request("tools/list", {} if cursor is None else {"cursor": cursor})
            listed = page.get("tools")
            if not isinstance(listed, list):
                raise InvalidAnswer("It lists no tools.")
            tools += [_spec(each) for each in cast("list[object]", listed)]
            cursor = page.get("nextCursor")
            if not cursor or not listed:
                break
        return tools[:MOST_TOOLS]

    async def call(self, tool: str, input: Json, progress: Progress) -> Json:
        result = await self._request("tools/call", {"name": tool, "arguments": input}, progress)
        content = result.get("content")
        blocks = cast("list[object]", content) if isinstance(content, list) else [None]
        if not all(isinstance(block, dict) for block in blocks):
            raise InvalidAnswer("It has no content.")
        return result

    async def receive(self) -> None:
        """Read the server's messages until the connection ends."""
        lines = LineBuffer(LINE_MAX)
        try:
            async for data in self._output:
                for line in lines.feed(data):
                    await self._receive_line(line)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError, LineTooLong):
            _log.info("the connection to our server broke", exc_info=True)
        finally:
            self._closed = True
            for request in self._open.values():
                request.answered.set()
            self._events.ended()

    async def _request(self, method: str, params: Json, progress: Progress | None = None) -> Json:
        """Send a request and return its result."""
        if self._closed:
            raise ConnectionClosed
        self._last += 1
        number, request = self._last, _Request(progress)
        self._open[number] = request
        if progress is not None:
            params = {**params, "_meta": {"progressToken": number}}
        try:
            await self._send({"id": number, "method": method, "params": params})
            await request.answered.wait()
        except anyio.get_cancelled_exc_class():
            await self._cancel(number)
            raise
        finally:
            del self._open[number]
        return _result(request.message)

    async def _cancel(self, number: int) -> None:
        params = {"requestId": number, "reason": "cancelled"}
        with anyio.move_on_after(LAST_MESSAGE_SECONDS, shield=True), suppress(ConnectionClosed):
            await self._send({"method": "notifications/cancelled", "params": params})

    async def _send(self, message: Json) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"
        try:
            async with self._sending:
                await self._input.send(line)  # buffers the whole line, so a cancel does not cut it
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            raise ConnectionClosed from None

    async def _receive_line(self, line: bytes) -> None:
        try:
            message: Any = json.loads(line)
        except ValueError:
            return  # something that a program printed
        if not isinstance(message, dict):
            return
        message = cast("Json", message)
        match message:
            case {"method": "notifications/progress", "params": {"progressToken": int(number)} as params}:
                await self._report_progress(number, cast("Json", params))
            case {"method": "notifications/tools/list_changed"}:
                self._events.tools_changed()
            case {"method": str(method), "id": str() | int() as id}:
                await self._answer(id, method)
            case {"id": int(number)} if number in self._open:
                self._open[number].message = message
                self._open[number].answered.set()
            case _:
                pass

    async def _report_progress(self, number: int, params: Json) -> None:
        request = self._open.get(number)
        if request is not None and request.progress is not None:
            done, total, words = params.get("progress"), params.get("total"), params.get("message")
            if isinstance(done, int | float):
                await request.progress(
                    done,
                    total if isinstance(total, int | float) else None,
                    words if isinstance(words, str) else None,
                )

    async def _answer(self, id: str | int, method: str) -> None:
        """Answer a request of the server."""
        refused = {"error": {"code": _METHOD_NOT_FOUND, "message": "Method not found"}}
        with suppress(ConnectionClosed):
            await self._send({"id": id, **({"result": {}} if method == "ping" else refused)})


def _result(message: Json | None) -> Json:
    if message is None:
        raise ConnectionClosed
    result: object = message.get("result")
    if isinstance(result, dict):
        return cast("Json", result)
    match message:
        case {"error": {"message": str(words)}}:
            raise ServerError(words)
        case _:
            raise InvalidAnswer("It is neither a result nor an error.")


def _spec(given: object) -> ToolSpec:
    listed = cast("Json", given) if isinstance(given, dict) else {}
    name, schema = listed.get("name"), listed.get("inputSchema")
    if not isinstance(name, str) or not isinstance(schema, dict):
        raise InvalidAnswer("It lists a tool without a name or schema.")
    title, description = listed.get("title"), listed.get("description")
    return ToolSpec(
        name=name,
        title=title if isinstance(title, str) else None,
        description=description if isinstance(description, str) else None,
        input_schema=cast("Json", schema),
    )


@asynccontextmanager
async def open_own_session(
    server: Stdio, cwd: str, events: SessionEvents
) -> AsyncGenerator[OwnServerSession]:
    """Start the server in `cwd` and end it with the `with`. Raises OSError."""
    process = await anyio.open_process(
        server.command, cwd=cwd, env=server_environment(server), stderr=None, start_new_session=True
    )
    session = OwnServerSession(process, events)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(session.receive)
            try:
                yield session
            finally:
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)


async def _end(process: Process) -> None:
    """End the server with its group: by the end of its input, else by signals."""
    assert process.stdin is not None
    with anyio.move_on_after(END_SECONDS), suppress(anyio.BrokenResourceError, OSError):
        await process.stdin.aclose()  # waits until it has read what was sent
    for number in (signal.SIGTERM, signal.SIGKILL):
        with anyio.move_on_after(END_SECONDS):
            await process.wait()
            break
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
    with anyio.move_on_after(END_SECONDS):
        await process.wait()
    await process.aclose()
