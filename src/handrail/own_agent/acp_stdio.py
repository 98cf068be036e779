"""JSON-RPC connection to the host on standard input and output, on top of the ACP SDK's connection.

Adds what the SDK lacks: it sends `$/cancel_request` when a request of ours is cancelled, handles the host's,
ignores unknown notifications, and keeps everything else off standard output. It does not interpret any
method.
"""

import os
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, cast

import anyio
from acp._transport import NdjsonTransport
from acp.connection import Connection
from acp.exceptions import RequestError
from acp.stdio import stdio_streams
from acp.task import MessageSender, TaskSupervisor

from handrail.own_agent.tools.agent_tool import Json

LINE_MAX = 64 << 20
"""Longest message in bytes, enough for a prompt with pictures; bounds the memory that one line can take."""
REQUEST_CANCELLED = -32800
"""JSON-RPC error code of a cancelled request."""
LAST_MESSAGE_SECONDS = 2.0
"""Seconds for the last messages when a request or the connection ends; the host may have stopped reading."""

Handle = Callable[[str, Any, bool], Awaitable[Any]]
"""Handler of a message: method, parameters, and whether it is a notification."""


class Disconnected(Exception):
    """The host has disconnected."""


class _ServedRequest:
    """A request of the host that is being served."""

    def __init__(self, id: object, params: Any) -> None:
        self.id, self.params, self.scope = id, params, anyio.CancelScope()
        self.afterwards: list[Callable[[], None]] = []


_serving: ContextVar[_ServedRequest | None] = ContextVar("serving", default=None)
_sent_ids: ContextVar[list[Any] | None] = ContextVar("asking", default=None)


class HostConnection:
    """The connection; it ends with its input."""

    def __init__(self, handle: Handle, notifications: frozenset[str]) -> None:
        """`notifications`: the methods that `handle` accepts as notifications; all others are dropped."""
        self._handle, self._notifications = handle, notifications
        self._served: dict[object, _ServedRequest] = {}
        self._input: StreamReader | None = None
        self._lines: NdjsonTransport | None = None
        self._connection: Connection | None = None

    async def listen(self) -> None:
        """Serve the host until it closes its side."""
        self._input, writer = await _streams()
        self._lines = NdjsonTransport(self._input, MessageSender(writer, TaskSupervisor(source="wire")))
        self._connection = Connection(self._serve, self, listening=False)
        await self._connection.main_loop()

    async def notify(self, method: str, params: Json) -> None:
        """Send a notification; returns once it is written. Raises Disconnected."""
        if self._connection is None:
            raise Disconnected
        try:
            await self._connection.send_notification(method, params)
        except ConnectionError:
            raise Disconnected from None

    async def ask(self, method: str, params: Json) -> Any:
        """Send a request and return its result. If the caller is cancelled, the host gets `$/cancel_request`.

        Raises Disconnected, RequestError.
        """
        if self._connection is None:
            raise Disconnected
        sent: list[Any] = []
        _sent_ids.set(sent)
        try:
            return await self._connection.send_request(method, params)
        except ConnectionError:
            raise Disconnected from None
        except anyio.get_cancelled_exc_class():
            await self._send_cancel(sent)
            raise
        finally:
            _sent_ids.set(None)

    def afterwards(self, then: Callable[[], None]) -> None:
        """Call `then` after the response to the current request has been sent."""
        served = _serving.get()
        assert served is not None, "only while a request is served"
        served.afterwards.append(then)

    async def shut(self) -> None:
        """Cancel open requests and close the connection."""
        if self._connection is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(LAST_MESSAGE_SECONDS):
                await self._connection.close()

    async def _send_cancel(self, sent: list[Any]) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(LAST_MESSAGE_SECONDS):
            for request_id in sent:
                params = {"requestId": request_id}
                await self.send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params})

    async def _serve(self, method: str, params: Any, is_notification: bool) -> Any:
        if is_notification:
            return await self._handle(method, params, True)
        served = cast("_ServedRequest", params)
        _serving.set(served)
        try:
            with served.scope:
                return await self._handle(method, served.params, False)
            raise RequestError(REQUEST_CANCELLED, "Request cancelled")
        finally:
            self._served.pop(served.id, None)

    # The SDK's transport interface

    async def send(self, message: dict[str, Any]) -> None:
        sent = _sent_ids.get()
        if sent is not None and "method" in message and "id" in message:
            sent.append(message["id"])
        assert self._lines is not None
        await self._lines.send(message)
        served = _serving.get()
        if served is not None and "method" not in message and "result" in message:
            for then in served.afterwards:
                then()

    async def receive(self) -> dict[str, Any] | None:
        assert self._lines is not None
        assert self._input is not None
        while True:
            message = cast("Any", await self._lines.receive())
            if isinstance(message, dict) and self._admit(cast("dict[str, Any]", message)):
                return cast("dict[str, Any]", message)
            if message is None and self._input.at_eof():  # otherwise the host sent a literal null
                return None

    async def close(self) -> None:
        if self._lines is not None:
            await self._lines.close()

    def _admit(self, message: dict[str, Any]) -> bool:
        """Whether to pass the message to the SDK; registers requests and handles cancellations."""
        method, named = message.get("method"), message.get("id")
        if not isinstance(named, str | int | None):
            return False
        if method is None:
            return True
        if "id" in message:
            message["params"] = self._served[named] = _ServedRequest(named, message.get("params"))
            return True
        if method == "$/cancel_request":
            self._cancel_served(message.get("params"))
        return method in self._notifications

    def _cancel_served(self, params: Any) -> None:
        named = cast("Json", params).get("requestId") if isinstance(params, dict) else None
        served = self._served.get(named) if isinstance(named, str | int) else None
        if served is not None:
            served.scope.cancel()


async def _streams() -> tuple[StreamReader, StreamWriter]:
    """Claim standard input and output. From here on, anything a library prints goes to standard error."""
    sys.stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        return await stdio_streams(limit=LINE_MAX)
    finally:
        sys.stdout = sys.stderr
