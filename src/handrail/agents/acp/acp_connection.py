"""The line to an agent: JSON-RPC both ways, on the official SDK's connection.

Owns requests under way in either direction, their cancelling, and what came that was no message. What an agent says is
heard here, at once and in order (the SDK would run each message as a task of its own, and one that awaits is overtaken);
what it asks for, and its answers, the SDK matches. Does not know programs, nor what any method is for.

Requests under way between us and an agent.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from handrail.agents.acp.acp_framing import line_of, message_in, shown
from handrail.agents.acp.capabilities import ACTIVITY, update_of
from handrail.agents.acp.sessions import Desks, NoSession
from handrail.store.values import Json

if TYPE_CHECKING:
    from acp.connection import Connection


@dataclass
class Asked:
    """A request of ours, under way."""

    on_answer: Callable[[Any], None] | None = None
    """Called as the result comes, before anything that came after it is heard."""
    session: object = None
    """Which session it is about, where it is about one."""
    id: int = -1
    sent: anyio.Event = field(default_factory=anyio.Event)
    done: anyio.Event = field(default_factory=anyio.Event)
    result: Any = None
    error: Exception | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    async def answer(self) -> Any:
        """The result. Raises the SDK's RequestError, or ConnectionError where the line has closed."""
        await self.done.wait()
        if self.error is not None:
            raise self.error
        return self.result


@dataclass
class Served:
    """A request of the agent's, on its way through the SDK, with the id that the SDK does not tell."""

    id: str | int | None
    params: Json
    size: int
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


SERVED_MAX = 256
SERVED_BYTES = 64 << 20
"""Requests of one agent that are done at the same time, and their bytes; bounds what a mad one can make us hold."""
CLOSE_SECONDS = 5.0
"""What requests under way get to unwind when the line closes."""
CANCELLED = -32800
"""The protocol's code for a request that was cancelled."""
BUSY = -32003


class Line(Protocol):
    """Lines to and from a program."""

    def send(self, line: bytes) -> None: ...
    async def receive(self) -> bytes | None: ...


_asking: ContextVar[Asked | None] = ContextVar("asking", default=None)


class Peer:
    """An agent on the other end of a line."""

    def __init__(self, line: Line, desks: Desks, group: TaskGroup) -> None:
        self._line, self._desks, self._group = line, desks, group
        self._asked: dict[object, Asked] = {}
        self._served: dict[object, Served] = {}
        self._connection: Connection | None = None
        self._is_shut = False
        self.garbage = 0
        """Lines that were no messages."""
        self.last_garbage = ""

    async def open(self) -> None:
        """Begin to listen."""
        # Off the loop, and only now: it takes a second, which a daemon without agents need not spend.
        sdk = await anyio.to_thread.run_sync(import_module, "acp.connection")
        self._connection = sdk.Connection(self._handle, self._Wire(self))

    async def shut(self) -> None:
        """Stop listening; what is under way is given up, and what is asked later fails."""
        self._is_shut = True
        if self._connection is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_SECONDS):
                await self._connection.close()

    @property
    def busy(self) -> bool:
        return bool(self._asked or self._served)

    def ask(self, method: str, params: Json, on_answer: Callable[[Any], None] | None = None) -> Asked:
        """Send a request; its answer can be waited for more than once."""
        asked = Asked(on_answer, params.get("sessionId"))
        if self._is_shut:
            asked.error = ConnectionError("Connection closed")
            asked.sent.set()
            asked.done.set()
        else:
            self._group.start_soon(self._ask, asked, method, params)
        return asked

    async def request(self, method: str, params: Json, on_answer: Callable[[Any], None] | None = None) -> Any:
        """Send a request and wait for its answer; where the wait is cancelled, the agent is told."""
        asked = self.ask(method, params, on_answer)
        try:
            return await asked.answer()
        finally:
            if not asked.done.is_set():
                if asked.sent.is_set():
                    self.notify("$/cancel_request", {"requestId": asked.id})
                asked.scope.cancel()

    def notify(self, method: str, params: Json) -> None:
        self._line.send(line_of({"jsonrpc": "2.0", "method": method, "params": params}))

    async def _ask(self, asked: Asked, method: str, params: Json) -> None:
        assert self._connection is not None
        asked.error = ConnectionError("Connection closed")
        _asking.set(asked)
        try:
            with asked.scope:
                asked.result = await self._connection.send_request(method, params)
                asked.error = None
        except Exception as problem:  # the SDK's RequestError, or ConnectionError
            asked.error = problem
        finally:
            self._asked.pop(asked.id, None)
            asked.sent.set()
            asked.done.set()

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Json | None:
        """What the SDK has done for a message of the agent's."""
        if is_notification:
            return None  # what we know of these was heard in `_hear`; the others are none of our business
        served = cast("Served", params)
        try:
            with served.scope:
                return await self._serve(method, served.params)
            raise _error(CANCELLED, "Request cancelled")
        finally:
            if self._served.get(served.id) is served:
                del self._served[served.id]

    async def _serve(self, method: str, params: Json) -> Json | None:
        if method.partition("/")[0] not in ("fs", "terminal", "session", "elicitation"):
            raise _error(-32601, f"Handrail has no method {method}", {"method": method})
        about = self._asked.get(params.get("requestId")) if "sessionId" not in params else None
        session = params.get("sessionId") if about is None else about.session
        try:
            return await self._desks.serve(method, {**params, "sessionId": cast("str", session)})
        except NoSession:
            raise _error(-32602, f"There is no open session {session}", params) from None

    # Between the line and the SDK

    class _Wire:
        """The SDK's idea of a transport."""

        def __init__(self, peer: "Peer") -> None:
            self._peer = peer

        async def send(self, message: dict[str, Any]) -> None:
            self._peer.note_sent(message)

        async def receive(self) -> dict[str, Any] | None:
            return await self._peer.receive()

        async def close(self) -> None:
            pass

    def note_sent(self, message: dict[str, Any]) -> None:
        asked = _asking.get()
        if asked is not None and "method" in message:
            asked.id = message["id"]
            self._asked[asked.id] = asked
            asked.sent.set()
        self._line.send(line_of(message))

    async def receive(self) -> dict[str, Any] | None:
        """The next message that the SDK shall have."""
        while (line := await self._line.receive()) is not None:
            message = message_in(line)
            if message is None:
                if line.strip():
                    self.garbage, self.last_garbage = self.garbage + 1, shown(line)
            elif self._hear(message, len(line)):
                return message
        return None

    def _hear(self, message: Json, size: int) -> bool:
        """Do what must be done in order; False where that was all."""
        params = cast("Json", message["params"]) if isinstance(message.get("params"), dict) else {}
        match message.get("method"), "id" in message:
            case "session/update", False:
                self._desks.update(params, size)
            case method, False if method == ACTIVITY:
                self._desks.update(update_of(params), size)
            case "$/cancel_request", False:
                self._cancel(params.get("requestId"))
            case str(), True:
                return self._admit(message, params, size)
            case str(), False:
                return False
            case _:
                return self._answered(message)
        return False

    def _cancel(self, id: object) -> None:
        served = self._served.get(id) if isinstance(id, str | int | None) else None
        if served is not None:
            served.scope.cancel()

    def _admit(self, message: Json, params: Json, size: int) -> bool:
        served = Served(cast("str | int | None", message["id"]), params, size)
        held = sum(it.size for it in self._served.values())
        if len(self._served) >= SERVED_MAX or (held and held + size > SERVED_BYTES):
            error = {"code": BUSY, "message": "Too many requests at the same time"}
            self._line.send(line_of({"jsonrpc": "2.0", "id": served.id, "error": error}))
            return False
        self._served[served.id] = served
        message["params"] = cast("Any", served)
        return True

    def _answered(self, message: Json) -> bool:
        asked = self._asked.get(message["id"])
        if asked is None:
            return False
        error = message.pop("error", None)
        if error is None:
            message.setdefault("result", None)
            if asked.on_answer is not None:
                asked.on_answer(message["result"])
        else:  # some send a result of null beside it, which the SDK would take for the answer
            message.pop("result", None)
            message["error"] = error if isinstance(error, dict) else {"code": -32603, "message": str(error)}
        return True


def _error(code: int, sentence: str, data: Json | None = None) -> Exception:
    from acp.exceptions import RequestError  # noqa: PLC0415 - loaded by now; not at the daemon's start

    return RequestError(code, sentence, data)
