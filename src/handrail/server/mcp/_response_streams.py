"""Response streams of MCP over HTTP that outlive their connection.

A client of MCP 2025-11-25 that loses the connection of a request reconnects with `Last-Event-ID`, and gets what it missed.
Only a client that does not come back in time has left, which cancels the request.
"""

import re
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field

import anyio
from mcp.server.streamable_http import GET_STREAM_KEY, EventCallback, EventStore
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse

from handrail.lazy_dataclass import dataclass
from handrail.store.bell import Bell
from handrail.store.debounce import Debounce

RETRY_MILLISECONDS = 500
"""When a client should reconnect. It is told with the first event of each stream."""
RESUME_SECONDS = 5.0
"""Time to reconnect. Until then the request goes on."""
EVENTS_MAX = 256
"""Events of one stream that are kept: bounds memory. Older ones are dropped; these are reports of progress."""
EVENTS_BYTES = 256 * 1024
"""The same in bytes, without the response. The latest event is kept in any case."""
PING_SECONDS = 15.0
"""Interval of comments on a resumed stream, so that no proxy ends it as idle."""
_PING = ": ping\n\n"
_EVENT_ID = re.compile(r"([0-9]{1,15})-([0-9]{1,15})")
"""The number of a stream within its session, and of an event within its stream."""


@dataclass(frozen=True, slots=True)
class _Event:
    number: int
    message: JSONRPCMessage
    size: int


@dataclass(eq=False)
class ResponseStream:
    """The events of one response, and how many connections of its client receive them."""

    number: int
    gone: anyio.Event
    """Set when the client has left."""
    is_answered: bool = False
    is_closed: bool = False
    readers: int = 1
    events: deque[_Event] = field(default_factory=deque[_Event])
    _added: Bell = field(default_factory=Bell)
    _last: int = 0
    _size: int = 0
    _give_up: Debounce | None = None

    def name_event(self, number: int = 0) -> str:
        """The id of an event; 0 is the one with which the stream begins."""
        return f"{self.number}-{number}"

    def add(self, message: JSONRPCMessage) -> str:
        """Keep an event for as long as its client may come back; its id."""
        self._last += 1
        if self.is_closed or self.is_answered:
            return self.name_event(self._last)
        self.is_answered = isinstance(message, JSONRPCResponse | JSONRPCError)
        size = 0 if self.is_answered else len(_dump(message))
        self.events.append(_Event(self._last, message, size))
        self._size += size
        while len(self.events) > 1 and (len(self.events) > EVENTS_MAX or self._size > EVENTS_BYTES):
            self._size -= self.events.popleft().size
        self._added.ring()
        return self.name_event(self._last)

    def join(self) -> None:
        self.readers += 1
        if self._give_up is not None:
            self._give_up.cancel()

    def leave(self) -> None:
        """A connection is lost: without another one, the client has a few seconds to reconnect."""
        self.readers -= 1
        if not self.readers:
            self._give_up = self._give_up or Debounce(RESUME_SECONDS, self.close)
            self._give_up.request()

    def close(self) -> None:
        """The client has the response, or has left."""
        self.is_closed = True
        self.events.clear()
        self.gone.set()
        self._added.ring()

    async def resume(self, after: int) -> AsyncGenerator[str]:
        """What follows an event, as a body of type text/event-stream that ends with the response."""
        self.join()
        try:
            while not self.is_closed:
                added = self._added.next()
                for event in list(self.events):
                    if event.number > after:
                        after = event.number
                        yield f"id: {self.name_event(after)}\nevent: message\ndata: {_dump(event.message)}\n\n"
                if self.is_answered:
                    self.close()
                    return
                with anyio.move_on_after(PING_SECONDS) as waited:
                    await added.wait()
                if waited.cancelled_caught:
                    yield _PING
        finally:
            if not self.is_closed:
                self.leave()


@dataclass(eq=False)
class Exchange:
    """A request over HTTP while its first connection is open."""

    gone: anyio.Event
    stream: ResponseStream | None = None
    is_lost: bool = False

    def lose(self) -> None:
        """The connection was lost."""
        if self.is_lost:
            return
        self.is_lost = True
        if self.stream is None:
            self.gone.set()
        else:
            self.stream.leave()

    def end(self) -> None:
        """The request was served. If the connection was not lost, the client has its response."""
        if self.stream is not None and not self.is_lost:
            self.stream.close()


class SessionStreams:
    """The streams of one session that can be resumed."""

    def __init__(self) -> None:
        self._opened = 0
        self._by_request: dict[str, ResponseStream] = {}
        self._by_number: dict[int, ResponseStream] = {}

    def open(self, request: str, exchange: Exchange) -> str:
        """Begin the stream of a request; the id of its first event."""
        self._forget_closed()
        self._opened += 1
        stream = exchange.stream = ResponseStream(self._opened, exchange.gone)
        self._by_request[request] = self._by_number[stream.number] = stream
        return stream.name_event()

    def add(self, request: str, message: JSONRPCMessage) -> str:
        """Keep an event if its stream can be resumed; its id."""
        stream = self._by_request.get(request)
        return _UNKEPT if stream is None else stream.add(message)

    def find(self, event_id: str) -> tuple[ResponseStream, int] | None:
        """The open stream to which an event belongs, and the event's number there."""
        parts = _EVENT_ID.fullmatch(event_id)
        stream = self._by_number.get(int(parts[1])) if parts else None
        return None if parts is None or stream is None or stream.is_closed else (stream, int(parts[2]))

    def close(self) -> None:
        """The session has ended."""
        for stream in self._by_number.values():
            stream.close()
        self._forget_closed()

    def _forget_closed(self) -> None:
        if any(stream.is_closed for stream in self._by_number.values()):
            self._by_request = {name: each for name, each in self._by_request.items() if not each.is_closed}
            self._by_number = {number: each for number, each in self._by_number.items() if not each.is_closed}


_session: ContextVar[SessionStreams | None] = ContextVar("session", default=None)
"""The session of the task that stores an event: of a request, or of the SDK's task that sends for a session."""
_exchange: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


@contextmanager
def serving(streams: SessionStreams, exchange: Exchange | None = None) -> Generator[None]:
    """Let what the SDK stores in this block, and in tasks that start in it, belong to this session and request."""
    session, request = _session.set(streams), _exchange.set(exchange)
    try:
        yield
    finally:
        _exchange.reset(request)
        _session.reset(session)
        if exchange is not None:
            exchange.end()


class ResponseEvents(EventStore):
    """Passes the SDK's events on to the session that they belong to."""

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        session, exchange = _session.get(), _exchange.get()
        if session is None or stream_id == GET_STREAM_KEY:
            return _UNKEPT
        if message is not None:
            return session.add(stream_id, message)
        return _UNKEPT if exchange is None else session.open(stream_id, exchange)

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Replay nothing. `ResponseStream` resumes the responses; a stream of notifications just goes on."""
        del send_callback
        return GET_STREAM_KEY if last_event_id == _UNKEPT else None


_UNKEPT = "live"
"""The id of events that cannot be replayed: notifications outside of requests, and the answer to `initialize`."""


def _dump(message: JSONRPCMessage) -> str:
    return message.model_dump_json(by_alias=True, exclude_unset=True)
