"""MCP with one door over the unix socket: JSON-RPC lines, and between them notes for the door itself.

Bounds what one connection, and all together, can make the daemon hold: unanswered requests and unread answers. A peer
above a bound is not read until it has read.
"""

import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import field
from types import TracebackType
from typing import Any, Self

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.runner import serve_loop
from mcp.shared.dispatcher import as_request_id
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from handrail.gate.call import Call
from handrail.lazy_dataclass import dataclass
from handrail.server.access import CREDENTIAL_REVOKED, Access, Callers
from handrail.server.mcp._lines import Lines
from handrail.server.mcp.mcp_endpoints import DoorPeer
from handrail.server.mcp.mcp_server import ConnectionHooks, Context, McpServers, client_name
from handrail.server.memory import RELEASE_SECONDS, release_memory
from handrail.store.bell import Bell
from handrail.store.debounce import Debounce
from handrail.store.values import Caller, Json

log = logging.getLogger(__name__)

DRAIN_SECONDS = 5.0
"""Time to send responses to a peer that closed its write side. The door waits equally long."""
NOTE_SECONDS = 0.01
"""Delay of the note about a read-only call. Most calls are answered by then, which saves the note."""
PENDING_MAX = 1024
"""Unanswered requests of one connection. Nothing more is read from it above this: bounds memory."""
PENDING_TOTAL = 2048
"""Unanswered requests of all connections. Above this, only a connection without unanswered requests is read."""
PENDING_EASY = 4
"""Unanswered requests of all connections, above which peers take turns: see `DoorConnection._take_turn`."""
TURN_SECONDS = 0.008
"""Interval between two requests of peers that take turns. Leaves most of the event loop to other clients."""
RELEASE_AFTER = 32
"""Doors that leave before memory is released, about 50 kB each."""
ANSWERS_SECONDS = 1.0
"""Time for the last responses at shutdown. A peer that does not read must not delay it longer."""
UNREAD_BYTES = 8 << 20
"""Finished answers that wait for a peer that does not read. Above this, an answer is replaced by a short error."""
UNREAD_EASY = 64 << 10
"""Bytes that a peer has not read, above which its next request waits. Bounds the work done for a peer that never reads."""
UNREAD_SECONDS = 0.1
"""The longest interval between two looks at what a peer has not read. The kernel does not report that it reads."""
HANG_UP_SECONDS = 1.0
"""How often a connection that is not read is checked for a peer that has left."""
_UNREAD = (
    "This answer was dropped, because too many earlier answers have not been read. Read them, then look in list_calls: "
    "get_call has the outcome."
)
_PARSE_ERROR = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"This line is not a JSON-RPC message."}}\n'
)
_TOO_LONG_ERROR = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"This message is longer than 32 MiB."}}\n'
)
_WRONG_ERA = "This connection began with the handshake of MCP 2025, so it takes no request of MCP 2026-07-28. Connect again for that."
_ID_IN_USE_ERROR = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"A request with this id is not answered yet."}}\n'


class DoorServer:
    """Serves MCP to all doors."""

    def __init__(self, mcp: McpServers, access: Access, callers: Callers) -> None:
        self._mcp = mcp
        self._access = access
        self._callers = callers
        self._connections: set[DoorConnection] = set()
        self._pending = PendingCount()
        self._left = 0
        """Doors that have left since memory was released."""
        self._release: Debounce | None = None

    async def serve(self, lines: Lines, peer: DoorPeer) -> None:
        """Serve one door until it disconnects."""
        connection = DoorConnection(lines, self._pending)
        key = f"door {id(connection)} {peer.key}"

        def caller(context: Context) -> Caller:
            return self._caller(peer, client_name(context))

        def opened(context: Context, call: Call) -> None:
            connection.opened(context.request_id, call.id, acts=self._mcp.acts(call))

        self._connections.add(connection)
        self._mcp.gate.mark_client_back(peer.key)
        try:
            await connection.serve(
                self._mcp.server(
                    ConnectionHooks(caller=caller, opened=opened, key=lambda _: key, process=peer.process)
                )
            )
        finally:
            self._connections.discard(connection)
            connection.close()
            self._mcp.client_left(key)
            self._mcp.gate.mark_client_left(peer.key)
            self._left += 1
            if connection.was_crowded or self._left >= RELEASE_AFTER:
                self._release_memory()

    async def leave(self) -> None:
        """Flush the last responses, and notify doors of the shutdown, so that they do not reconnect immediately."""
        with anyio.move_on_after(ANSWERS_SECONDS):
            for connection in list(self._connections):
                await connection.wait_answered()
        for connection in self._connections:
            connection.note({"bye": "stopping"})

    def _release_memory(self) -> None:
        """Return memory to the system soon: once for many connections that end together."""
        self._left = 0
        if self._release is None:
            self._release = Debounce(RELEASE_SECONDS, release_memory, postpones=True)
        self._release.request()

    def _caller(self, peer: DoorPeer, name: str) -> Caller:
        if not peer.credential:
            return Caller(door="stdio", client=name, key=peer.key, workspace=peer.workspace)
        client = self._access.client(peer.credential)
        if client is None:  # revoked meanwhile: its thread was deleted
            raise MCPError(types.INVALID_REQUEST, CREDENTIAL_REVOKED)
        return self._callers.caller_of(client, "stdio", name)


@dataclass(slots=True)
class PendingCount:
    """The number of unanswered requests of all connections, and the turns that their peers take."""

    count: int = 0
    turn: anyio.Lock = field(default_factory=anyio.Lock)


class DoorConnection:
    """MCP with one door: its pending requests, and the calls they opened."""

    def __init__(self, lines: Lines, total: PendingCount | None = None) -> None:
        self._lines = lines
        self._total = total or PendingCount()
        self._pending: set[types.RequestId] = set()
        self._none_pending = Bell()
        self._answered = Bell()
        self._unread = 0
        self._warned = False
        self.was_crowded = False
        """Whether it ever had many unanswered requests or unread answers."""
        self._is_legacy = False
        """Whether the client opened with the handshake of MCP 2025."""
        self._calls: dict[types.RequestId, str] = {}
        self._notes = Debounce(NOTE_SECONDS, self._send_call_notes)

    def close(self) -> None:
        """Forget the pending requests: their calls were cancelled."""
        self._total.count -= len(self._pending)
        self._pending.clear()
        self._notes.cancel()

    async def serve(self, server: Server[Any]) -> None:
        """Serve until the peer disconnects; cancels the requests still pending then."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._flush, group.cancel_scope)
            await self._run(server)
            group.cancel_scope.cancel()

    async def _run(self, server: Server[Any]) -> None:
        """Run the SDK's server. A client of MCP 2025 opens with `initialize`.

        For it, skip the relay with which the SDK waits for the first request: it costs a task switch per message.
        """
        first = await self._receive()
        reads, writes = _ReadStream(self._receive, first), _WriteStream(self._send)
        options = server.create_initialization_options()
        self._is_legacy = isinstance(first, types.JSONRPCRequest) and first.method == "initialize"
        if not self._is_legacy:
            await server.run(reads, writes, options)
            return
        async with server.lifespan(server) as state:
            await serve_loop(server, reads, writes, lifespan_state=state, init_options=options)

    def note(self, note: Json) -> None:
        """Send a note to the door itself, which does not forward it. Dropped if the door is gone or does not read."""
        if self._lines.is_full:
            self._warn_slow()
            return
        with suppress(anyio.BrokenResourceError):
            self._lines.put(json.dumps({"handrail": note}, separators=(",", ":")).encode() + b"\n")

    def _warn_slow(self) -> None:
        if not self._warned:
            self._warned = True
            log.warning("a door reads too slowly: notes for it are dropped")

    def opened(self, request: types.RequestId | None, call: str, *, acts: bool) -> None:
        """A request opened a call. Notify the door, which names the call if the daemon goes away.

        Sent immediately for a call that may change something, else after NOTE_SECONDS.
        """
        if request is None:
            return
        if acts:
            self._send_call_note(request, call)
        else:
            self._calls[request] = call
            self._notes.request()

    async def _receive(self) -> types.JSONRPCMessage | None:
        """The next message. None when the peer has closed its side and all responses are sent."""
        try:
            while True:
                await self._wait_for_room()
                line = await self._lines.read()
                message = _parse_message(line) if line is not None else None
                if isinstance(message, types.JSONRPCRequest):
                    await self._wait_to_begin()
                if message is not None and (problem := self._find_problem(message)):
                    await self._lines.write(problem)
                elif message is not None:
                    self._track_request(message)
                    return message
                elif line is None or line.strip():
                    await self._lines.write(_TOO_LONG_ERROR if line is None else _PARSE_ERROR)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            await self._drain()
            return None

    async def _wait_for_room(self) -> None:
        """Read nothing from a peer that has too many unanswered requests, or that does not read its answers.

        Raises EndOfStream if the peer leaves meanwhile.
        """
        while self._lines.is_full or self._has_too_many_pending:
            self.was_crowded = True
            with anyio.move_on_after(HANG_UP_SECONDS):
                await (self._lines.wait_room() if self._lines.is_full else self._answered.wait())
            if self._lines.is_hung_up:
                raise anyio.EndOfStream

    @property
    def _has_too_many_pending(self) -> bool:
        pending = len(self._pending)
        return pending >= PENDING_MAX or (pending > 0 and self._total.count >= PENDING_TOTAL)

    async def _wait_to_begin(self) -> None:
        """Wait until a request may begin. Raises EndOfStream if the peer has left: its other requests are not begun."""
        pause = TURN_SECONDS
        while self._lines.unread_bytes > UNREAD_EASY:
            self.was_crowded = True
            await anyio.sleep(pause)
            pause = min(2 * pause, UNREAD_SECONDS)
        await self._take_turn()
        if self._lines.is_hung_up:
            raise anyio.EndOfStream

    async def _take_turn(self) -> None:
        """While many requests are pending, begin those of peers that wait for answers one after another.

        A peer that read its last answer before it sent this request is served immediately: a flood does not delay it.
        """
        has_crowd = self._total.count >= PENDING_EASY or self._total.turn.locked()
        if not has_crowd or not (self._pending or self._lines.has_buffered or self._lines.unread_bytes):
            return
        self.was_crowded = True
        async with self._total.turn:
            with anyio.move_on_after(TURN_SECONDS):
                await self._answered.wait()

    async def _send(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCError) and message.error.code == types.CONNECTION_CLOSED:
            return  # the SDK's error at disconnect; the door sends a better one, with the call's id
        line = _line(message)
        if isinstance(message, types.JSONRPCResponse) and self._unread + len(line) > UNREAD_BYTES:
            error = types.ErrorData(code=types.INTERNAL_ERROR, message=_UNREAD)
            line = _line(types.JSONRPCError(jsonrpc="2.0", id=message.id, error=error))
        self._unread += len(line)
        try:
            await self._lines.write(line)
        finally:
            self._unread -= len(line)
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._remove_request(message.id)

    def _find_problem(self, message: types.JSONRPCMessage) -> bytes | None:
        """The error for a request that the SDK must not get, or None."""
        if not isinstance(message, types.JSONRPCRequest):
            return None
        if message.id in self._pending:
            return _ID_IN_USE_ERROR
        if self._is_legacy and message.method != "initialize" and _has_envelope(message):
            error = types.ErrorData(code=types.INVALID_REQUEST, message=_WRONG_ERA)
            return _line(types.JSONRPCError(jsonrpc="2.0", id=message.id, error=error))
        return None

    def _track_request(self, message: types.JSONRPCMessage) -> None:
        """Note a new request or a cancelled one."""
        if isinstance(message, types.JSONRPCRequest):
            self._pending.add(message.id)
            self._total.count += 1
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            # A cancelled request gets no response.
            self._remove_request(as_request_id((message.params or {}).get("requestId")))

    def _remove_request(self, request: types.RequestId | None) -> None:
        if request is None:
            return
        if request in self._pending:
            self._pending.remove(request)
            self._total.count -= 1
        self._calls.pop(request, None)
        if not self._calls:
            self._notes.cancel()
        self._answered.ring()
        if not self._pending:
            self._none_pending.ring()

    async def wait_answered(self) -> None:
        """Wait until every request is answered and the responses are sent."""
        while self._pending:
            await self._none_pending.wait()
        await self._lines.wait_sent()

    async def _drain(self) -> None:
        """Send pending responses to a peer that closed only its write side, as a pipe does."""
        if not self._lines.is_hung_up:
            with anyio.move_on_after(DRAIN_SECONDS):
                await self.wait_answered()

    async def _flush(self, scope: anyio.CancelScope) -> None:
        try:
            await self._lines.flush()
        except anyio.BrokenResourceError:
            scope.cancel()

    def _send_call_notes(self) -> None:
        for request, call in self._calls.items():
            self._send_call_note(request, call)
        self._calls.clear()

    def _send_call_note(self, request: types.RequestId, call: str) -> None:
        self.note({"opened": {"request": request, "call": call}})


def _has_envelope(request: types.JSONRPCRequest) -> bool:
    """Whether a request carries the envelope of MCP 2026-07-28."""
    meta = (request.params or {}).get("_meta")
    return isinstance(meta, dict) and types.PROTOCOL_VERSION_META_KEY in meta


def _line(message: types.JSONRPCMessage) -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


def _parse_message(line: bytes) -> types.JSONRPCMessage | None:
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return None


class _Stream:
    """The parts of the SDK's stream protocol that do nothing here. `LocalSocketServer` closes the socket."""

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


class _ReadStream(_Stream):
    """The SDK's read stream: the first message, then those that `receive_message` returns; None is the end."""

    def __init__(
        self,
        receive_message: Callable[[], Awaitable[types.JSONRPCMessage | None]],
        first: types.JSONRPCMessage | None,
    ) -> None:
        self._receive_message = receive_message
        self._first = [first]

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> SessionMessage | Exception:
        message = self._first.pop() if self._first else await self._receive_message()
        if message is None:
            raise anyio.EndOfStream
        return SessionMessage(message)


class _WriteStream(_Stream):
    """The SDK's write stream."""

    def __init__(self, send_message: Callable[[types.JSONRPCMessage], Awaitable[None]]) -> None:
        self._send_message = send_message

    async def send(self, item: SessionMessage, /) -> None:
        await self._send_message(item.message)
