"""JSON-RPC connection to the host on standard input and output, one message per line.

Handles `$/cancel_request` in both directions, ignores unknown notifications, and keeps everything else off standard
output. It does not interpret any method. The ACP SDK's connection is not used: importing the SDK takes half a second, for
models of every message, and hosts wait for our start.
"""

import asyncio
import json
import logging
import os
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import field
from typing import Any, cast

import anyio
from anyio.abc import TaskGroup

from handrail.lazy_dataclass import dataclass
from handrail.own_agent.tools.agent_tool import Json

LINE_MAX = 64 << 20
"""Longest message in bytes, enough for a prompt with pictures; bounds the memory that one line can take."""
INTERNAL_ERROR = -32603
INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
REQUEST_CANCELLED = -32800
"""JSON-RPC error code of a cancelled request."""
LAST_MESSAGE_SECONDS = 2.0
"""Seconds for the last messages when a request or the connection ends; the host may have stopped reading."""

Handle = Callable[[str, Any, bool], Awaitable[Any]]
"""Handler of a message: method, parameters, and whether it is a notification."""
_log = logging.getLogger(__name__)


class Disconnected(Exception):
    """The host has disconnected."""


class RequestError(Exception):
    """A JSON-RPC error: the answer to a request of the host, or the host's answer to ours."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


@dataclass(slots=True, eq=False)
class _ServedRequest:
    """A request of the host that is being served."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    afterwards: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])


@dataclass(slots=True, eq=False)
class _SentRequest:
    """A request of ours that the host has not answered yet."""

    answered: anyio.Event = field(default_factory=anyio.Event)
    result: Any = None
    problem: Exception | None = None


_serving: ContextVar[_ServedRequest | None] = ContextVar("serving", default=None)


class HostConnection:
    """The connection; it ends with its input. Requests are served in `group`, and outlive `listen`."""

    def __init__(self, handle: Handle, notifications: frozenset[str], group: TaskGroup) -> None:
        """`notifications`: the methods that `handle` accepts as notifications; all others are dropped."""
        self._handle, self._notifications, self._group = handle, notifications, group
        self._served: dict[object, _ServedRequest] = {}
        self._sent: dict[object, _SentRequest] = {}
        self._last_id = 0
        self._writer: StreamWriter | None = None

    async def listen(self) -> None:
        """Serve the host until it closes its side."""
        reader, self._writer = await _open_streams()
        try:
            while (line := await _read_line(reader)) is not None:
                if line.strip():
                    self._receive(line)
        finally:
            for sent in self._sent.values():
                sent.problem = Disconnected()
                sent.answered.set()

    async def notify(self, method: str, params: Json) -> None:
        """Send a notification; returns once it is written. Raises Disconnected."""
        await self._send({"method": method, "params": params})

    async def ask(self, method: str, params: Json) -> Any:
        """Send a request and return its result. If the caller is cancelled, the host gets `$/cancel_request`.

        Raises Disconnected, RequestError.
        """
        self._last_id += 1
        number, sent = self._last_id, _SentRequest()
        self._sent[number] = sent
        try:
            await self._send({"id": number, "method": method, "params": params})
            await sent.answered.wait()
        except anyio.get_cancelled_exc_class():
            await self._cancel_sent(number)
            raise
        finally:
            del self._sent[number]
        if sent.problem is not None:
            raise sent.problem
        return sent.result

    def afterwards(self, then: Callable[[], None]) -> None:
        """Call `then` after the response to the current request has been sent."""
        served = _serving.get()
        assert served is not None, "only while a request is served"
        served.afterwards.append(then)

    async def shut(self) -> None:
        """Cancel open requests and close the connection."""
        for served in self._served.values():
            served.scope.cancel()
        writer, self._writer = self._writer, None
        if writer is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(LAST_MESSAGE_SECONDS):
                await _drain(writer)
            writer.close()

    async def _cancel_sent(self, number: int) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(LAST_MESSAGE_SECONDS):
            await self._send({"method": "$/cancel_request", "params": {"requestId": number}})

    async def _send(self, message: Json) -> None:
        """Write a message; messages are written in the order of the calls. Raises Disconnected."""
        if self._writer is None:
            raise Disconnected
        line = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"))
        self._writer.write(line.encode() + b"\n")
        if not await _drain(self._writer):
            raise Disconnected

    def _receive(self, line: bytes) -> None:
        """Start to serve a message, or settle the request that it answers. What is no message is dropped."""
        try:
            message: Any = json.loads(line)
        except ValueError:
            _log.warning("the host sent a line that is not JSON")
            return
        if not isinstance(message, dict):
            return
        message = cast("Json", message)
        named, method = message.get("id"), message.get("method")
        if not isinstance(named, str | int | None):
            return
        if not isinstance(method, str):
            self._settle(named, message)
        elif "id" in message:
            served = self._served[named] = _ServedRequest()
            self._group.start_soon(self._serve, named, served, method, message.get("params"))
        elif method == "$/cancel_request":
            self._cancel_served(message.get("params"))
        elif method in self._notifications:
            self._group.start_soon(self._hear, method, message.get("params"))

    def _settle(self, id: object, message: Json) -> None:
        sent = self._sent.get(id)
        if sent is None:
            return
        sent.result = message.get("result")
        if "result" not in message and (error := message.get("error")):
            sent.problem = _error_from_json(error)
        sent.answered.set()

    async def _serve(self, id: object, served: _ServedRequest, method: str, params: Any) -> None:
        _serving.set(served)
        answer = await self._answer(served, method, params)
        if self._served.get(id) is served:
            del self._served[id]
        try:
            await self._send({"id": id, **answer})
        except Disconnected:
            return
        if "result" in answer:
            for then in served.afterwards:
                then()

    async def _answer(self, served: _ServedRequest, method: str, params: Any) -> Json:
        try:
            with served.scope:
                return {"result": await self._handle(method, params, False)}
            return _error(RequestError(REQUEST_CANCELLED, "Request cancelled"))
        except RequestError as error:
            return _error(error)
        except Exception as error:
            _log.exception("the request %r failed", method)
            return _error(RequestError(INTERNAL_ERROR, "Internal error", {"details": str(error)}))

    async def _hear(self, method: str, params: Any) -> None:
        try:
            await self._handle(method, params, True)
        except Exception:
            _log.exception("the notification %r failed", method)

    def _cancel_served(self, params: Any) -> None:
        named = cast("Json", params).get("requestId") if isinstance(params, dict) else None
        served = self._served.get(named) if isinstance(named, str | int) else None
        if served is not None:
            served.scope.cancel()


def _error(error: RequestError) -> Json:
    return {"error": {"code": error.code, "message": error.message, "data": error.data}}


def _error_from_json(value: Any) -> RequestError:
    error = cast("Json", value) if isinstance(value, dict) else {}
    code = error.get("code")
    return RequestError(
        code if isinstance(code, int) else INTERNAL_ERROR,
        str(error.get("message", "Error")),
        error.get("data"),
    )


async def _open_streams() -> tuple[StreamReader, StreamWriter]:
    """Claim standard input and output. From here on, anything a library prints goes to standard error."""
    loop, reader = asyncio.get_running_loop(), StreamReader(limit=LINE_MAX)
    output = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, output)
    return reader, StreamWriter(transport, protocol, None, loop)


async def _read_line(reader: StreamReader) -> bytes | None:
    """The next line; None at the end. Of a line that is too long, its end remains, which is not JSON."""
    while True:
        try:
            return await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as end:
            return end.partial or None
        except asyncio.LimitOverrunError as overrun:
            await reader.readexactly(overrun.consumed)


async def _drain(writer: StreamWriter) -> bool:
    """Wait until most of the written output has left this process; False if the host no longer reads."""
    try:
        await writer.drain()
    except ConnectionError:
        return False
    return not writer.is_closing()
