"""MCP with one door: messages out of lines and into lines, and notes to the door itself.

Owns which requests still wait for an answer, what a line that is no message is answered, and when a door is told
which call its request became. It does not know what the messages mean.

The two streams through which the SDK's server speaks, as thin as they can be.
"""

import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.shared.dispatcher import as_request_id
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from handrail.server.mcp.lines import Lines
from handrail.store.values import Json

log = logging.getLogger(__name__)

LISTENS_SECONDS = 5.0
"""For the answers of one that closed its own side; as long as the door waits for them."""
NOTE_SECONDS = 0.01
"""After which a door is told of a call that only reads: most are answered by then, and a note costs as much."""
_BAD = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"This line is not a JSON-RPC message."}}\n'
)
_LONG = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"This message is longer than 32 MiB."}}\n'
)


class Talk:
    """One connection: the requests on it that are not answered yet, and the calls they became."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._unanswered: set[types.RequestId] = set()
        self._none = anyio.Event()
        self._calls: dict[types.RequestId, str] = {}
        self._opened = anyio.Event()

    async def serve(self, server: Server[Any]) -> None:
        """Serve until the peer is gone; calls it still waits for are cancelled with it."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._flush, group.cancel_scope)
            group.start_soon(self._tell_calls)
            options = server.create_initialization_options()
            await server.run(Heard(self._hear), Said(self._say), options)
            group.cancel_scope.cancel()

    def note(self, note: Json) -> None:
        """A word to the door itself, which it does not pass on; one that is gone or does not read misses it."""
        if self._lines.crowded:
            log.warning("a door reads too slowly to be told %s", next(iter(note)))
            return
        with suppress(anyio.BrokenResourceError):
            self._lines.put(json.dumps({"handrail": note}, separators=(",", ":")).encode() + b"\n")

    def opened(self, request: types.RequestId | None, call: str, *, acts: bool) -> None:
        """A request became a call. The door is told, to name it should we go away: before it acts, or if it lasts."""
        if request is None:
            return
        if acts:
            self._tell_call(request, call)
        else:
            self._calls[request] = call
            self._opened.set()

    async def _hear(self) -> types.JSONRPCMessage | None:
        """The next message; None when the peer has no more to say and waits for nothing."""
        try:
            while True:
                line = await self._lines.read()
                message = _parsed(line) if line is not None else None
                if message is not None:
                    self._expect(message)
                    return message
                if line is None or line.strip():
                    await self._lines.write(_LONG if line is None else _BAD)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            await self._let_answers_leave()
            return None

    async def _say(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCError) and message.error.code == types.CONNECTION_CLOSED:
            return  # the SDK's last words when it is cut off; the door has better ones, and the call's name
        await self._lines.write(message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._close(message.id)

    def _expect(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCRequest):
            self._unanswered.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._close(as_request_id((message.params or {}).get("requestId")))  # nobody will answer it

    def _close(self, request: types.RequestId | None) -> None:
        if request is None:
            return
        self._unanswered.discard(request)
        self._calls.pop(request, None)
        if not self._unanswered:
            self._none.set()
            self._none = anyio.Event()

    async def answered(self) -> None:
        """Return when every request is answered and the answers are sent."""
        while self._unanswered:
            await self._none.wait()
        await self._lines.sent()

    async def _let_answers_leave(self) -> None:
        """It said all it had to say, as a pipe does, and still listens."""
        if not self._lines.hung_up:
            with anyio.move_on_after(LISTENS_SECONDS):
                await self.answered()

    async def _flush(self, scope: anyio.CancelScope) -> None:
        try:
            await self._lines.flush()
        except anyio.BrokenResourceError:
            scope.cancel()

    async def _tell_calls(self) -> None:
        while True:
            await self._opened.wait()
            self._opened = anyio.Event()
            await anyio.sleep(NOTE_SECONDS)
            for request, call in self._calls.items():
                self._tell_call(request, call)
            self._calls.clear()

    def _tell_call(self, request: types.RequestId, call: str) -> None:
        self.note({"opened": {"request": request, "call": call}})


def _parsed(line: bytes) -> types.JSONRPCMessage | None:
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return None


class _Stream:
    """What the SDK asks of a stream beside its messages. Whoever opened the socket closes it."""

    async def aclose(self) -> None:
        return

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        return


class Heard(_Stream):
    """What the peer says: `hear` gives the next message, or None when there will be no more."""

    def __init__(self, hear: Callable[[], Awaitable[types.JSONRPCMessage | None]]) -> None:
        self._hear = hear

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> SessionMessage | Exception:
        message = await self._hear()
        if message is None:
            raise anyio.EndOfStream
        return SessionMessage(message)


class Said(_Stream):
    """What the peer is told."""

    def __init__(self, say: Callable[[types.JSONRPCMessage], Awaitable[None]]) -> None:
        self._say = say

    async def send(self, item: SessionMessage, /) -> None:
        await self._say(item.message)
