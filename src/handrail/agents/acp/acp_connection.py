"""The JSON-RPC connection to an agent, in both directions, on top of the official SDK's connection.

Tracks the requests in flight and their cancellation, and counts lines that are not messages. Notifications
are handled here, in order: the SDK would run each in its own task, and they could overtake each other. The
SDK matches answers to requests. This module does not know programs or the meaning of methods.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from handrail.agents.acp.capabilities import ACTIVITY, update_from_activity
from handrail.agents.acp.sessions import NoSession, SessionRouter
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Json
from handrail.terminal.jsonrpc_messages import encode_message, excerpt_line, parse_message

if TYPE_CHECKING:
    from acp.connection import Connection


@dataclass()
class OutgoingRequest:
    """A request that we sent."""

    on_answer: Callable[[Any], None] | None = None
    """Called with the result, before any later message is handled."""
    session: object = None
    """The session it concerns, if any."""
    id: int = -1
    sent: anyio.Event = field(default_factory=anyio.Event)
    done: anyio.Event = field(default_factory=anyio.Event)
    result: Any = None
    error: Exception | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    async def answer(self) -> Any:
        """Wait for the result. Raises the SDK's RequestError, or ConnectionError if the connection has
        closed."""
        await self.done.wait()
        if self.error is not None:
            raise self.error
        return self.result


@dataclass()
class IncomingRequest:
    """A request that the agent sent, passed through the SDK with its id, which the SDK hides."""

    id: str | int | None
    params: Json
    size: int
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


SERVED_MAX = 256
SERVED_BYTES = 64 << 20
"""Concurrent requests of one agent, and their bytes; bounds the memory that a faulty agent can take."""
CLOSE_SECONDS = 5.0
"""Seconds that requests in flight get to unwind when the connection closes."""
CANCELLED = -32800
"""The protocol's error code for a cancelled request."""
BUSY = -32003


class Line(Protocol):
    """A line-based transport to a program."""

    def send(self, line: bytes) -> None: ...
    async def receive(self) -> bytes | None: ...


_current_request: ContextVar[OutgoingRequest | None] = ContextVar("current_request", default=None)


class AcpConnection:
    """The connection to one agent."""

    def __init__(self, line: Line, sessions: SessionRouter, group: TaskGroup) -> None:
        self._line, self._sessions, self._group = line, sessions, group
        self._outgoing: dict[object, OutgoingRequest] = {}
        self._incoming: dict[object, IncomingRequest] = {}
        self._connection: Connection | None = None
        self._is_shut = False
        self.garbage = 0
        """Number of lines that were not messages."""
        self.last_garbage = ""

    async def open(self) -> None:
        """Start to receive messages."""
        # In a thread and only now: the import takes a second, which a daemon without agents saves.
        sdk = await anyio.to_thread.run_sync(import_module, "acp.connection")
        self._connection = sdk.Connection(self._handle, self._Wire(self))

    async def shut(self) -> None:
        """Stop receiving: cancel the requests in flight; later ones fail."""
        self._is_shut = True
        if self._connection is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_SECONDS):
                await self._connection.close()

    @property
    def busy(self) -> bool:
        return bool(self._outgoing or self._incoming)

    def ask(
        self, method: str, params: Json, on_answer: Callable[[Any], None] | None = None
    ) -> OutgoingRequest:
        """Send a request; several tasks may wait for its answer."""
        request = OutgoingRequest(on_answer, params.get("sessionId"))
        if self._is_shut:
            request.error = ConnectionError("Connection closed")
            request.sent.set()
            request.done.set()
        else:
            self._group.start_soon(self._run_request, request, method, params)
        return request

    async def request(self, method: str, params: Json, on_answer: Callable[[Any], None] | None = None) -> Any:
        """Send a request and wait for its answer. If the wait is cancelled, send `$/cancel_request`."""
        request = self.ask(method, params, on_answer)
        try:
            return await request.answer()
        finally:
            if not request.done.is_set():
                if request.sent.is_set():
                    self.notify("$/cancel_request", {"requestId": request.id})
                request.scope.cancel()

    def notify(self, method: str, params: Json) -> None:
        self._line.send(encode_message({"jsonrpc": "2.0", "method": method, "params": params}))

    async def _run_request(self, request: OutgoingRequest, method: str, params: Json) -> None:
        assert self._connection is not None
        request.error = ConnectionError("Connection closed")
        _current_request.set(request)
        try:
            with request.scope:
                request.result = await self._connection.send_request(method, params)
                request.error = None
        except Exception as problem:  # the SDK's RequestError, or ConnectionError
            request.error = problem
        finally:
            self._outgoing.pop(request.id, None)
            request.sent.set()
            request.done.set()

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Json | None:
        """Called by the SDK for each message of the agent."""
        if is_notification:
            return None  # known notifications were handled in `_preprocess`; others are ignored
        request = cast("IncomingRequest", params)
        try:
            with request.scope:
                return await self._serve(method, request.params)
            raise _error(CANCELLED, "Request cancelled")
        finally:
            if self._incoming.get(request.id) is request:
                del self._incoming[request.id]

    async def _serve(self, method: str, params: Json) -> Json | None:
        if method.partition("/")[0] not in ("fs", "terminal", "session", "elicitation"):
            raise _error(-32601, f"Handrail has no method {method}", {"method": method})
        related = self._outgoing.get(params.get("requestId")) if "sessionId" not in params else None
        session = params.get("sessionId") if related is None else related.session
        try:
            return await self._sessions.serve(method, {**params, "sessionId": cast("str", session)})
        except NoSession:
            raise _error(-32602, f"There is no open session {session}", params) from None

    # Between the transport and the SDK

    class _Wire:
        """Our transport, in the SDK's interface."""

        def __init__(self, connection: "AcpConnection") -> None:
            self._agent_connection = connection

        async def send(self, message: dict[str, Any]) -> None:
            self._agent_connection.note_sent(message)

        async def receive(self) -> dict[str, Any] | None:
            return await self._agent_connection.receive()

        async def close(self) -> None:
            pass

    def note_sent(self, message: dict[str, Any]) -> None:
        request = _current_request.get()
        if request is not None and "method" in message:
            request.id = message["id"]
            self._outgoing[request.id] = request
            request.sent.set()
        self._line.send(encode_message(message))

    async def receive(self) -> dict[str, Any] | None:
        """The next message for the SDK."""
        while (line := await self._line.receive()) is not None:
            message = parse_message(line)
            if message is None:
                if line.strip():
                    self.garbage, self.last_garbage = self.garbage + 1, excerpt_line(line)
            elif self._preprocess(message, len(line)):
                return message
        return None

    def _preprocess(self, message: Json, size: int) -> bool:
        """Handle the part of a message that must be in order; False if the SDK need not see it."""
        params = cast("Json", message["params"]) if isinstance(message.get("params"), dict) else {}
        match message.get("method"), "id" in message:
            case "session/update", False:
                self._sessions.update(params, size)
            case method, False if method == ACTIVITY:
                self._sessions.update(update_from_activity(params), size)
            case "$/cancel_request", False:
                self._cancel(params.get("requestId"))
            case str(), True:
                return self._admit(message, params, size)
            case str(), False:
                return False
            case _:
                return self._prepare_answer(message)
        return False

    def _cancel(self, id: object) -> None:
        request = self._incoming.get(id) if isinstance(id, str | int | None) else None
        if request is not None:
            request.scope.cancel()

    def _admit(self, message: Json, params: Json, size: int) -> bool:
        request = IncomingRequest(cast("str | int | None", message["id"]), params, size)
        held = sum(it.size for it in self._incoming.values())
        if len(self._incoming) >= SERVED_MAX or (held and held + size > SERVED_BYTES):
            error = {"code": BUSY, "message": "Too many requests at the same time"}
            self._line.send(encode_message({"jsonrpc": "2.0", "id": request.id, "error": error}))
            return False
        self._incoming[request.id] = request
        message["params"] = cast("Any", request)
        return True

    def _prepare_answer(self, message: Json) -> bool:
        request = self._outgoing.get(message["id"])
        if request is None:
            return False
        error = message.pop("error", None)
        if error is None:
            message.setdefault("result", None)
            if request.on_answer is not None:
                request.on_answer(message["result"])
        else:  # some agents also send `result: null`, which the SDK would take for the answer
            message.pop("result", None)
            message["error"] = error if isinstance(error, dict) else {"code": -32603, "message": str(error)}
        return True


def _error(code: int, sentence: str, data: Json | None = None) -> Exception:
    from acp.exceptions import RequestError  # noqa: PLC0415 - loaded by now; not at the daemon's start

    return RequestError(code, sentence, data)
