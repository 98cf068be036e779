"""A JSON-RPC connection to an MCP server, in both directions: request ids, progress, cancellation.

Messages pass as they are: nothing is rebuilt through typed objects. Notifications are handled in the order in which
they came, before any later message. It does not know the meaning of methods, apart from cancellation and progress.
"""

import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import field
from typing import Protocol, cast

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup
from pydantic import JsonValue

from handrail.lazy_dataclass import dataclass
from handrail.store.values import Json
from handrail.terminal.jsonrpc_messages import encode_message, excerpt_line, parse_message

log = logging.getLogger(__name__)

SERVED_MAX = 64
"""Requests of a server that are served at a time: bounds memory."""
FLOOD_MAX = 5000
FLOOD_RATE = 500.0
"""Messages of a server that nobody asked for: at a time, and in each second on average. One that sends more is ended, since
others share the event loop."""
FLOOD_BYTES = 16 * 1024
"""Bytes of a message that count as one more message. Lists count too; the answer to a client's request does not."""
MESSAGE_SHOWN = 2000
"""Characters of an error's message that are recorded: bounds the journal and the lists of calls."""
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
BUSY = -32000


class RpcError(Exception):
    """The error with which a request was answered."""

    def __init__(self, code: int, message: str, data: JsonValue = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @property
    def excerpt(self) -> str:
        """The beginning of the message, as it is recorded and shown. A server chooses its length."""
        left = len(self.message) - MESSAGE_SHOWN
        return f"{self.message[:MESSAGE_SHOWN]}… ({left:,} more characters)" if left > 0 else self.message

    @property
    def wire(self) -> Json:
        error: Json = {"code": self.code, "message": self.message}
        return error if self.data is None else {**error, "data": self.data}


class ConnectionLost(Exception):
    """The connection ended before the answer came; the sentence says why."""

    def __init__(self, why: str, *, is_sent: bool = True) -> None:
        super().__init__(why)
        self.is_sent = is_sent
        """The server may have the request, or an earlier part of the same call."""

    @property
    def effect(self) -> str:
        """What the request may have done, as a sentence."""
        return "What the call did before is unknown." if self.is_sent else "Nothing was sent to it."


@dataclass(frozen=True, slots=True)
class Undelivered:
    """A request of ours that will not be answered, although the connection goes on."""

    id: int | str
    why: str
    is_sent: bool = True
    """The server may have it."""


class Line(Protocol):
    """A transport of messages to a server."""

    @property
    def why(self) -> str | None:
        """Why it is over; None while it is not."""
        ...

    def send(self, line: bytes) -> None: ...
    async def receive(self) -> bytes | Undelivered | None: ...
    def give_up(self, why: str) -> None: ...


class Peer(Protocol):
    """What the server wants from us."""

    async def answer(self, method: str, params: Json) -> Json:
        """Answer a request of the server. Raises RpcError."""
        ...

    async def hear(self, method: str, params: Json) -> None:
        """Handle a notification of the server. It must not wait for the server."""
        ...


Progress = Callable[[Json], Awaitable[None]]
"""Receives what a server reports about a request: a message, and mostly a number that rises."""


@dataclass()
class _Outgoing:
    """A request that we sent and that is not answered."""

    origin: object = None
    """The client's request that this one forwards; None if it forwards none."""
    done: anyio.Event = field(default_factory=anyio.Event)
    result: Json | None = None
    error: Exception | None = None


class JsonRpcConnection:
    """The connection to one server."""

    def __init__(self, name: str, line: Line, peer: Peer, group: TaskGroup) -> None:
        self._name, self._line, self._peer, self._group = name, line, peer, group
        self._outgoing: dict[int, _Outgoing] = {}
        self._incoming: dict[str | int, anyio.CancelScope] = {}
        self._last_id, self._last_token = 0, 0
        self._on_progress: dict[int, Progress] = {}
        """Who hears of the progress reported with each token of ours."""
        self._last_unasked, self._unasked = 0.0, 0.0
        self.garbage = 0
        """Lines that were not messages, and answers that nobody waits for."""
        self.last_garbage = ""
        """The beginning of the last line that was not a message."""

    @property
    def origins(self) -> list[object]:
        """The origins of the forwarded requests in progress, oldest first."""
        return [each.origin for each in self._outgoing.values() if each.origin is not None]

    async def run(self) -> None:
        """Receive messages until the connection is over; then fail the requests that are not answered."""
        try:
            while (line := await self._line.receive()) is not None:
                if isinstance(line, Undelivered):
                    self._fail(line)
                else:
                    await self._receive(line)
                line = None  # may be long, and is not needed while waiting
                await anyio.lowlevel.checkpoint()  # a flood must not hold the event loop
        finally:
            self._fail_all(ConnectionLost(self._line.why or f"{self._name} was ended."))

    async def request(
        self,
        method: str,
        params: Json,
        token: int | None = None,
        origin: object = None,
        *,
        can_cancel: bool = True,
    ) -> Json:
        """Send a request and wait for its result. If the wait is cancelled, so is the request at the server.

        `token` is an open `progress_token`. Raises RpcError or ConnectionLost.
        """
        if self._line.why is not None:
            raise ConnectionLost(self._line.why, is_sent=False)
        self._last_id += 1
        number, request = self._last_id, _Outgoing(origin)
        self._outgoing[number] = request
        self._send({"id": number, "method": method, "params": _with_token(params, token)})
        try:
            await request.done.wait()
        finally:
            if self._outgoing.pop(number, None) is not None and can_cancel and not request.done.is_set():
                self.notify("notifications/cancelled", {"requestId": number, "reason": "The call was ended."})
        if request.error is not None:
            raise request.error
        return request.result or {}

    @contextmanager
    def progress_token(self, on_progress: Progress | None) -> Generator[int | None]:
        """A token with which the server can report progress within the block; None if nobody wants that."""
        if on_progress is None:
            yield None
            return
        self._last_token += 1
        token = self._last_token
        self._on_progress[token] = on_progress
        try:
            yield token
        finally:
            del self._on_progress[token]

    def notify(self, method: str, params: Json) -> None:
        self._send({"method": method, "params": params} if params else {"method": method})

    def _send(self, message: Json) -> None:
        self._line.send(encode_message({"jsonrpc": "2.0", **message}))

    async def _receive(self, line: bytes) -> None:
        message = parse_message(line)
        if message is None:
            self.last_garbage = excerpt_line(line)
            self._count_garbage(line)
        elif "method" not in message:
            self._settle(message, line)
        else:
            self._count_unasked(line)
            await self._receive_call(message)

    async def _receive_call(self, message: Json) -> None:
        method, params = str(message["method"]), message.get("params")
        fields = params if isinstance(params, dict) else {}
        number = message.get("id")
        if isinstance(number, str | int):
            self._serve(number, method, fields)
        elif method == "notifications/cancelled":
            self._cancel_incoming(fields.get("requestId"))
        elif method == "notifications/progress":
            await self._progress(fields)
        else:
            await self._peer.hear(method, fields)

    def _settle(self, message: Json, line: bytes) -> None:
        """Give an answer to the request that waits for it. A server may answer late, twice, or what nobody asked."""
        number = message.get("id")
        request = (
            self._outgoing.get(number) if isinstance(number, int) and not isinstance(number, bool) else None
        )
        if request is None or request.done.is_set():
            self._count_garbage(line)
            return
        if request.origin is None:
            self._count_unasked(line)
        result, error = message.get("result"), message.get("error")
        if isinstance(result, dict):
            request.result = result
        else:
            request.error = _error_from(error)
        request.done.set()

    def _fail(self, lost: Undelivered) -> None:
        request = self._outgoing.get(lost.id) if isinstance(lost.id, int) else None
        if request is not None and not request.done.is_set():
            request.error = ConnectionLost(lost.why, is_sent=lost.is_sent)
            request.done.set()

    async def _progress(self, params: Json) -> None:
        token = params.get("progressToken")
        on_progress = self._on_progress.get(token) if isinstance(token, int) else None
        if on_progress is not None:
            await on_progress(params)

    def _serve(self, id: str | int, method: str, params: Json) -> None:
        if method == "ping":
            self._send({"id": id, "result": {}})
        elif len(self._incoming) >= SERVED_MAX or id in self._incoming:
            self._send({"id": id, "error": RpcError(BUSY, "Too many requests at a time.").wire})
        else:
            scope = self._incoming[id] = anyio.CancelScope()
            self._group.start_soon(self._answer, id, method, params, scope)

    async def _answer(self, id: str | int, method: str, params: Json, scope: anyio.CancelScope) -> None:
        reply: Json = {}
        try:
            with scope:
                try:
                    reply = {"result": await self._peer.answer(method, params)}
                except RpcError as error:
                    reply = {"error": error.wire}
                except Exception:
                    log.exception("a request of the MCP server %s failed: %s", self._name, method)
                    reply = {"error": RpcError(INTERNAL_ERROR, "This is a fault in Handrail.").wire}
        finally:
            self._incoming.pop(id, None)
        if reply:  # a cancelled request has no answer
            self._send({"id": id, **reply})

    def _cancel_incoming(self, id: JsonValue) -> None:
        scope = self._incoming.get(id) if isinstance(id, str | int) else None
        if scope is not None:
            scope.cancel()

    def _count_garbage(self, line: bytes) -> None:
        self.garbage += 1
        self._count_unasked(line)

    def _count_unasked(self, line: bytes) -> None:
        now = anyio.current_time()
        weight = 1 + len(line) // FLOOD_BYTES
        self._unasked = max(0.0, self._unasked - (now - self._last_unasked) * FLOOD_RATE) + weight
        self._last_unasked = now
        if self._unasked > FLOOD_MAX:
            self._line.give_up(
                f"{self._name} sent too many messages: more than {FLOOD_RATE:g} in each second, or "
                f"{FLOOD_RATE * FLOOD_BYTES / 1e6:.0f} MB. So it was ended."
            )

    def _fail_all(self, problem: Exception) -> None:
        for request in self._outgoing.values():
            if not request.done.is_set():
                request.error = problem
                request.done.set()
        for scope in list(self._incoming.values()):
            scope.cancel()


def _with_token(params: Json, token: int | None) -> Json:
    """The parameters with our progress token in place of the client's, which means nothing here."""
    meta = params.get("_meta")
    fields = (
        {name: value for name, value in meta.items() if name != "progressToken"}
        if isinstance(meta, dict)
        else {}
    )
    if token is not None:
        fields["progressToken"] = token
    rest = {name: value for name, value in params.items() if name != "_meta"}
    return {**rest, "_meta": fields} if fields else rest


def _error_from(error: JsonValue) -> RpcError:
    if not isinstance(error, dict):
        return RpcError(INTERNAL_ERROR, "The server sent neither a result nor an error.")
    code = error.get("code")
    known = cast("int", code) if isinstance(code, int) else INTERNAL_ERROR
    return RpcError(known, str(error.get("message", "")), error.get("data"))
