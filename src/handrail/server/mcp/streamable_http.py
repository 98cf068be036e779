"""MCP over streamable HTTP: the SDK's transport, behind the guard.

Detects that a client left, which cancels its request: it closed the response stream, or lost it and did not come back.
Bounds the sessions of each credential: clients open sessions and often never close them.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import aclosing, contextmanager
from dataclasses import field
from typing import Any

import anyio
from anyio.abc import TaskStatus
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http import LAST_EVENT_ID_HEADER, MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.dispatcher import as_request_id
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import INVALID_REQUEST, JSONRPCNotification, RequestId
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from handrail.lazy_dataclass import dataclass
from handrail.server.access import Callers, Client
from handrail.server.mcp._response_streams import (
    RETRY_MILLISECONDS,
    Exchange,
    ResponseEvents,
    SessionStreams,
    serving,
)
from handrail.server.mcp.mcp_server import ConnectionHooks, Context, McpServers, client_name
from handrail.server.memory import RELEASE_SECONDS, release_memory
from handrail.store.debounce import Debounce
from handrail.store.values import Caller

log = logging.getLogger(__name__)

SESSIONS_MAX = 32
"""Sessions of one credential. One more ends the session that was idle longest: bounds memory, about 40 kB each."""
SESSIONS_TOTAL = 1024
"""Sessions of all credentials: bounds memory. Above this, no credential can open another."""
BUSY_EASY = 8
"""Requests in progress of one credential, above which its next ones take turns. A request of a session that has no other in
progress is served immediately: its client waits for each answer."""
TURN_SECONDS = 0.02
"""Interval between two requests that take turns. Leaves most of the event loop to other clients."""
BUSY_CROWD = 24
"""Requests in progress of one credential above which the interval grows with them: so many are hardly ever an agent's."""
OPEN_EASY = 8
"""Sessions that a credential opens without delay; as many again after a pause."""
OPEN_SECONDS = 0.04
"""Interval between two sessions after these. Opening one takes milliseconds, and delays one request of each other client."""
IDLE_SECONDS = 30 * 60.0
"""A session without a request or an open stream for this long is ended. Its client gets 404, and initializes again. The
MCP servers that run for a session, or for a credential without sessions, are ended after the same time."""
_GONE = "handrail.gone"
CANCEL_BYTES = 4096
"""The largest body that is taken for a cancellation. Bounds the work on bodies that are none."""
_CROWDED = (
    f"This credential has {SESSIONS_MAX} sessions with requests in progress, which is the most. "
    "End some with DELETE, or wait until they are answered."
)
_NOT_FOUND = "Session not found"
_STREAM_HEADERS = {"Cache-Control": "no-cache, no-transform", "Content-Type": "text/event-stream"}


class StreamableHttp:
    """Serves MCP to clients over HTTP: an ASGI application."""

    def __init__(self, mcp: McpServers, callers: Callers) -> None:
        self._callers = callers
        self._mcp = mcp
        self._server: Server[Any] = mcp.server(
            ConnectionHooks(caller=self._caller, gone=self._gone, key=self._key)
        )
        self._in_flight: dict[tuple[str, RequestId], list[anyio.Event]] = {}
        """The requests without a session, by credential and id: the event for a client that leaves, of each."""
        self._keys: dict[anyio.Event, tuple[str, RequestId]] = {}
        # The guard has already checked Host and Origin, more strictly than the SDK does.
        lenient = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._manager = StreamableHTTPSessionManager(
            self._server,
            event_store=ResponseEvents(),
            retry_interval=RETRY_MILLISECONDS,
            security_settings=lenient,
            session_idle_timeout=IDLE_SECONDS,
            max_sessions=SESSIONS_TOTAL,
        )
        self._sessions = Sessions()
        self._uses: dict[str, _Use] = {}
        """The clients that may have MCP servers behind Handrail, by the key of `_key`."""
        self._release: Debounce | None = None

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Serve requests until cancelled."""
        self._release = Debounce(RELEASE_SECONDS, release_memory, postpones=True)
        async with self._manager.run():
            task_status.started()
            while True:
                await anyio.sleep(IDLE_SECONDS / 4)
                self._end_idle_clients(anyio.current_time() - IDLE_SECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(anyio.Event())
        scope[_GONE] = exchange.gone

        async def receive_watched() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                exchange.lose()
                self._release_memory()
            return message

        client: Client = scope["handrail.client"]
        session = Headers(scope=scope).get(MCP_SESSION_ID_HEADER)
        if session is not None:
            await self._serve(scope, receive_watched, send, client.credential, session, exchange)
        else:
            await self._serve_alone(scope, receive_watched, send, client.credential)

    async def _serve_alone(self, scope: Scope, receive: Receive, send: Send, credential: str) -> None:
        """Serve a request without a session: of MCP 2026-07-28, or one that opens a session."""
        first: Message | None = await receive() if scope["method"] == "POST" else None
        cancelled = None if first is None else _cancelled_id(first)
        if cancelled is not None:
            self._cancel(credential, cancelled)
            await Response(status_code=202)(scope, receive, send)
            return

        async def receive_again() -> Message:
            nonlocal first
            message, first = first or await receive(), None
            return message

        try:
            if _opens_session(scope):
                await self._open(scope, receive_again, send, credential)
            else:
                with self._using(credential):
                    await self._manager.handle_request(scope, receive_again, send)
        finally:
            self._forget(scope[_GONE])

    def _cancel(self, credential: str, request: RequestId) -> None:
        """Cancel a request without a session by its id.

        A client of MCP 2026-07-28 closes the stream instead. Bridges from older clients post `notifications/cancelled`, which
        the SDK refuses or ignores: it does not know whose request is meant. Here the credential tells, if the id is in use
        once.
        """
        events = self._in_flight.get((credential, request), [])
        if len(events) == 1:
            events[0].set()

    def _gone(self, context: Context) -> anyio.Event | None:
        """The event for a client that leaves; a request without a session can also be cancelled by its id."""
        if context.request is None:
            return None
        scope = context.request.scope
        gone: anyio.Event | None = scope.get(_GONE)
        if gone is not None and context.request_id is not None and not _has_session(scope):
            key = self._keys[gone] = (scope["handrail.client"].credential, context.request_id)
            self._in_flight.setdefault(key, []).append(gone)
        return gone

    def _forget(self, gone: anyio.Event) -> None:
        key = self._keys.pop(gone, None)
        if key is not None:
            self._in_flight[key].remove(gone)
            if not self._in_flight[key]:
                del self._in_flight[key]

    async def _serve(
        self, scope: Scope, receive: Receive, send: Send, credential: str, session: str, exchange: Exchange
    ) -> None:
        """Serve a request of an existing session. A session belongs to the credential that opened it."""
        if not self._sessions.is_open(credential, session):
            await _refuse(scope, receive, send, _NOT_FOUND, 404)
            return
        is_request = scope["method"] == "POST"
        with self._sessions.using(credential, session, is_request=is_request) as answered:
            if is_request and not await self._sessions.take_turn(credential, session):
                await _refuse(scope, receive, send, _NOT_FOUND, 404)
                return
            await self._serve_session(scope, receive, send, session, exchange, answered)
        if scope["method"] == "DELETE":
            self._sessions.close(credential, session)
            self._client_left(session)

    async def _serve_session(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        session: str,
        exchange: Exchange,
        answered: Callable[[], None],
    ) -> None:
        """Pass a request of an open session to the SDK. `answered` is called when its response is sent."""
        with self._using(session) as use:

            async def send_watched(message: Message) -> None:
                await send(message)
                if message["type"] == "http.response.body" and not message.get("more_body", False):
                    answered()

            last = Headers(scope=scope).get(LAST_EVENT_ID_HEADER, "") if scope["method"] == "GET" else ""
            resumed = use.streams.find(last)
            if resumed is not None:
                stream, event = resumed
                async with aclosing(stream.resume(event)) as body:
                    await StreamingResponse(body, headers=_STREAM_HEADERS)(scope, receive, send)
                return
            with serving(use.streams, exchange):
                await self._manager.handle_request(scope, receive, send_watched)

    async def _open(self, scope: Scope, receive: Receive, send: Send, credential: str) -> None:
        """Serve a request that opens a session, unless this credential has too many busy ones."""
        if not self._sessions.can_open(credential):
            await _refuse(scope, receive, send, _CROWDED, 429)
            return

        streams = SessionStreams()

        async def send_watched(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                opened = Headers(raw=message["headers"]).get(MCP_SESSION_ID_HEADER)
                if opened is not None:
                    self._sessions.open(credential, opened)
                    self._uses[opened] = _Use(streams=streams, ended=anyio.current_time())
            await send(message)

        await self._sessions.take_turn_to_open(credential)
        with self._sessions.opening(credential), serving(streams):
            await self._manager.handle_request(scope, receive, send_watched)
        for excess in self._sessions.take_excess(credential):
            await self._end(scope, excess)

    async def _end(self, scope: Scope, session: str) -> None:
        """End a session as its client would: with a DELETE request to the SDK."""
        headers = [(MCP_SESSION_ID_HEADER.encode(), session.encode())]
        delete: Scope = {**scope, "method": "DELETE", "headers": headers}
        await self._manager.handle_request(delete, _receive_nothing, _send_nowhere)
        self._client_left(session)
        self._release_memory()

    @contextmanager
    def _using(self, client: str) -> Generator["_Use"]:
        """Mark a session, or a credential without one, as used and busy for the duration of the block."""
        use = self._uses.setdefault(client, _Use())
        use.requests += 1
        try:
            yield use
        finally:
            use.requests -= 1
            use.ended = anyio.current_time()

    def _end_idle_clients(self, before: float) -> None:
        """End the MCP servers of clients without a request since then. A client that comes back gets new ones."""
        idle = [name for name, use in self._uses.items() if not use.requests and use.ended < before]
        for client in idle:
            self._client_left(client)

    def _client_left(self, client: str) -> None:
        use = self._uses.pop(client, None)
        if use is not None:
            use.streams.close()
        self._mcp.client_left(f"http {client}")

    def _release_memory(self) -> None:
        """Return memory to the system soon: once for many clients that leave together."""
        if self._release is not None:
            self._release.request()

    def _key(self, context: Context) -> str:
        """The session of a client, or its credential: MCP 2026-07-28 has no sessions."""
        assert context.request is not None
        scope = context.request.scope
        session = Headers(scope=scope).get(MCP_SESSION_ID_HEADER)
        return f"http {session or scope['handrail.client'].credential}"

    def _caller(self, context: Context) -> Caller:
        assert context.request is not None
        client: Client = context.request.scope["handrail.client"]
        return self._callers.caller_of(client, "http", client_name(context))


@dataclass(slots=True)
class _Use:
    """The requests of one client in progress, and when the last one ended."""

    requests: int = 0
    ended: float = 0.0
    streams: SessionStreams = field(default_factory=SessionStreams)


@dataclass(slots=True)
class _Session:
    """What a client has open in one session."""

    requests: int = 0
    """Posted messages without a response, those that wait for their turn included."""
    streams: int = 0

    @property
    def is_busy(self) -> bool:
        return bool(self.requests or self.streams)


@dataclass(slots=True)
class _Sessions:
    """The sessions of one credential, least recently used first."""

    open: OrderedDict[str, _Session] = field(default_factory=OrderedDict[str, _Session])
    opening: int = 0
    turn: anyio.Lock = field(default_factory=anyio.Lock)
    opens_at: float = 0.0
    """When the next session may open, if it comes after `OPEN_EASY` others without a pause."""

    @property
    def requests(self) -> int:
        return sum(session.requests for session in self.open.values())


class Sessions:
    """The open sessions of all credentials. Does not know how a session is served or ended."""

    def __init__(self, limit: int = SESSIONS_MAX) -> None:
        self._limit = limit
        self._of: dict[str, _Sessions] = {}

    def is_open(self, credential: str, session: str) -> bool:
        return credential in self._of and session in self._of[credential].open

    def can_open(self, credential: str) -> bool:
        """Whether there is room for one more, or an idle session that can make room."""
        known = self._of.get(credential)
        if known is None:
            return True
        return known.opening + sum(1 for session in known.open.values() if session.is_busy) < self._limit

    @contextmanager
    def opening(self, credential: str) -> Generator[None]:
        """Count a request that opens a session, for the duration of the block."""
        known = self._of.setdefault(credential, _Sessions())
        known.opening += 1
        try:
            yield
        finally:
            known.opening -= 1
            self._forget_if_empty(credential)

    async def take_turn(self, credential: str, session: str) -> bool:
        """While many requests of a credential are in progress, begin those of its busy sessions one after another.

        Called while the request counts as `using` the session. False if the session ended meanwhile.
        """
        known = self._of[credential]
        if known.open[session].requests > 1 and (known.requests > BUSY_EASY or known.turn.locked()):
            async with known.turn:
                await anyio.sleep(TURN_SECONDS * max(1.0, known.requests / BUSY_CROWD))
        return self.is_open(credential, session)

    async def take_turn_to_open(self, credential: str) -> None:
        """Open a few sessions of a credential immediately, and more of them at a steady rate."""
        known = self._of.setdefault(credential, _Sessions())
        now = time.monotonic()
        known.opens_at = max(known.opens_at, now - OPEN_EASY * OPEN_SECONDS) + OPEN_SECONDS
        await anyio.sleep(max(0, known.opens_at - now))

    def open(self, credential: str, session: str) -> None:
        self._of.setdefault(credential, _Sessions()).open[session] = _Session()

    @contextmanager
    def using(
        self, credential: str, session: str, *, is_request: bool = True
    ) -> Generator[Callable[[], None]]:
        """Mark a session as used, and busy until the yielded function is called, at the latest until the end of the block.

        Called when the response is sent: a client that waits for it sends its next request before the SDK has cleaned up.
        """
        sessions = self._of[credential].open
        known, waits = sessions[session], is_request
        sessions.move_to_end(session)
        known.requests += is_request
        known.streams += not is_request

        def answered() -> None:
            nonlocal waits
            known.requests -= waits
            waits = False

        try:
            yield answered
        finally:
            answered()
            known.streams -= not is_request

    def take_excess(self, credential: str) -> list[str]:
        """Remove the idle sessions above the limit, least recently used first, and return them."""
        known = self._of.get(credential)
        if known is None:
            return []
        idle = [name for name, session in known.open.items() if not session.is_busy]
        excess = idle[: max(0, len(known.open) - self._limit)]
        for session in excess:
            del known.open[session]
        return excess

    def close(self, credential: str, session: str) -> None:
        known = self._of.get(credential)
        if known is not None:
            known.open.pop(session, None)
            self._forget_if_empty(credential)

    def _forget_if_empty(self, credential: str) -> None:
        """Forget a credential without sessions, but not how many it opened just now."""
        known = self._of.get(credential)
        if known is None or known.open or known.opening:
            return
        if known.opens_at <= time.monotonic() - OPEN_EASY * OPEN_SECONDS:
            del self._of[credential]


def _opens_session(scope: Scope) -> bool:
    """Whether a request without a session may open one: MCP 2026-07-28 has no sessions."""
    version = Headers(scope=scope).get(MCP_PROTOCOL_VERSION_HEADER)
    return scope["method"] == "POST" and (version is None or version in HANDSHAKE_PROTOCOL_VERSIONS)


def _has_session(scope: Scope) -> bool:
    return MCP_SESSION_ID_HEADER in Headers(scope=scope)


def _cancelled_id(message: Message) -> RequestId | None:
    """The id of the request that a body cancels; None for any other body."""
    body: bytes = message.get("body", b"")
    if b"notifications/cancelled" not in body[:CANCEL_BYTES] or len(body) > CANCEL_BYTES:
        return None
    try:
        notification = JSONRPCNotification.model_validate_json(body)
    except ValidationError:
        return None
    is_cancel = notification.method == "notifications/cancelled"
    return as_request_id((notification.params or {}).get("requestId")) if is_cancel else None


async def _refuse(scope: Scope, receive: Receive, send: Send, why: str, status: int) -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": INVALID_REQUEST, "message": why}}
    await JSONResponse(error, status)(scope, receive, send)


async def _receive_nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _send_nowhere(_message: Message) -> None:
    return
