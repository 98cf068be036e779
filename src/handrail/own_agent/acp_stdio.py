"""The line to whoever hosts us: JSON-RPC on standard input and output, by the official SDK's connection.

Owns what the SDK leaves out: telling the other end that a question of ours is withdrawn, hearing that of one of theirs,
silence on notifications that nobody knows, and that nothing else reaches standard output. It does not know what any
method is for.
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
"""Bytes of one message that are read at once: a prompt with pictures."""
WITHDRAWN = -32800
"""The protocol's code for a request that was cancelled."""
LAST_WORDS = 2.0
"""Seconds for what has to be said at an end, when nobody may be reading any more."""

Handle = Callable[[str, Any, bool], Awaitable[Any]]
"""What is done for a message: its method, its parameters, and whether it wants no answer."""


class Gone(Exception):
    """Nobody is at the other end any more."""


class _Served:
    """A request of the other end, while it is done."""

    def __init__(self, id: object, params: Any) -> None:
        self.id, self.params, self.scope = id, params, anyio.CancelScope()
        self.afterwards: list[Callable[[], None]] = []


_serving: ContextVar[_Served | None] = ContextVar("serving", default=None)
_asking: ContextVar[list[Any] | None] = ContextVar("asking", default=None)


class Wire:
    """One line, which ends with its input."""

    def __init__(self, handle: Handle, heard: frozenset[str]) -> None:
        """`heard`: the notifications that `handle` knows."""
        self._handle, self._heard = handle, heard
        self._served: dict[object, _Served] = {}
        self._input: StreamReader | None = None
        self._lines: NdjsonTransport | None = None
        self._connection: Connection | None = None

    async def listen(self) -> None:
        """Serve the other end until it closes its side."""
        self._input, writer = await _streams()
        self._lines = NdjsonTransport(self._input, MessageSender(writer, TaskSupervisor(source="wire")))
        self._connection = Connection(self._serve, self, listening=False)
        await self._connection.main_loop()

    async def notify(self, method: str, params: Json) -> None:
        """Returns when it is on its way. Raises Gone."""
        if self._connection is None:
            raise Gone
        try:
            await self._connection.send_notification(method, params)
        except ConnectionError:
            raise Gone from None

    async def ask(self, method: str, params: Json) -> Any:
        """The answer. Where the wait is cancelled, the other end is told. Raises Gone, RequestError."""
        if self._connection is None:
            raise Gone
        sent: list[Any] = []
        _asking.set(sent)
        try:
            return await self._connection.send_request(method, params)
        except ConnectionError:
            raise Gone from None
        except anyio.get_cancelled_exc_class():
            await self._withdraw(sent)
            raise
        finally:
            _asking.set(None)

    def afterwards(self, then: Callable[[], None]) -> None:
        """Do this once the request that is being served has been answered."""
        served = _serving.get()
        assert served is not None, "only while a request is served"
        served.afterwards.append(then)

    async def shut(self) -> None:
        """Give up what is still under way."""
        if self._connection is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(LAST_WORDS):
                await self._connection.close()

    async def _withdraw(self, sent: list[Any]) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(LAST_WORDS):
            for asked in sent:
                params = {"requestId": asked}
                await self.send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params})

    async def _serve(self, method: str, params: Any, is_notification: bool) -> Any:
        if is_notification:
            return await self._handle(method, params, True)
        served = cast("_Served", params)
        _serving.set(served)
        try:
            with served.scope:
                return await self._handle(method, served.params, False)
            raise RequestError(WITHDRAWN, "Request cancelled")
        finally:
            self._served.pop(served.id, None)

    # What the SDK calls a transport

    async def send(self, message: dict[str, Any]) -> None:
        asking = _asking.get()
        if asking is not None and "method" in message and "id" in message:
            asking.append(message["id"])
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
            if message is None and self._input.at_eof():  # else somebody sent the word null
                return None

    async def close(self) -> None:
        if self._lines is not None:
            await self._lines.close()

    def _admit(self, message: dict[str, Any]) -> bool:
        """Whether the SDK shall have it."""
        method, named = message.get("method"), message.get("id")
        if not isinstance(named, str | int | None):
            return False
        if method is None:
            return True
        if "id" in message:
            message["params"] = self._served[named] = _Served(named, message.get("params"))
            return True
        if method == "$/cancel_request":
            self._withdrawn(message.get("params"))
        return method in self._heard

    def _withdrawn(self, params: Any) -> None:
        named = cast("Json", params).get("requestId") if isinstance(params, dict) else None
        served = self._served.get(named) if isinstance(named, str | int) else None
        if served is not None:
            served.scope.cancel()


async def _streams() -> tuple[StreamReader, StreamWriter]:
    """Standard input and output for us alone: what any library prints goes to standard error from here on."""
    sys.stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        return await stdio_streams(limit=LINE_MAX)
    finally:
        sys.stdout = sys.stderr
