"""Response streams of MCP over HTTP that outlive their connection.

A client of MCP 2025-11-25 that loses the connection of a request reconnects with `Last-Event-ID`, and gets what it missed.
Only a client that does not come back in time has left, which cancels the request.
"""

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
PING_SECONDS = 15.0
"""Interval of comments on a resumed stream, so that no proxy ends it as idle."""
_PING = ": ping\n\n"


@dataclass(eq=False)
class ResponseStream:
    """The events of one response, and how many connections of its client receive them."""

    gone: anyio.Event
    """Set when the client has left."""
    events: deque[tuple[int, JSONRPCMessage]] = field(
        default_factory=lambda: deque[tuple[int, JSONRPCMessage]](maxlen=EVENTS_MAX)
    )
    added: Bell = field(default_factory=Bell)
    is_answered: bool = False
    is_closed: bool = False
    readers: int = 1
    _give_up: Debounce | None = None

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
        self.gone.set()
        self.added.ring()

    async def resume(self, after: int) -> AsyncGenerator[str]:
        """What follows an event, as a body of type text/event-stream that ends with the response."""
        self.join()
        try:
            while not self.is_closed:
                added = self.added.next()
                for number, message in list(self.events):
                    if number > after:
                        after = number
                        yield _event(number, message)
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
    """The streams of one session, by request, and the events with which they can be resumed."""

    def __init__(self) -> None:
        self._number = 0
        self._streams: dict[str, ResponseStream] = {}
        self._first: dict[int, ResponseStream] = {}
        """By the number of the event with which a stream begins."""

    def open(self, request: str, exchange: Exchange) -> int:
        """Begin the stream of a request; the number of its first event."""
        self._forget_closed()
        stream = exchange.stream = self._streams[request] = ResponseStream(exchange.gone)
        self._number += 1
        self._first[self._number] = stream
        return self._number

    def add(self, request: str, message: JSONRPCMessage) -> int:
        """Keep an event if its stream can be resumed; its number."""
        self._number += 1
        stream = self._streams.get(request)
        if stream is not None and not stream.is_closed:
            stream.events.append((self._number, message))
            stream.is_answered = isinstance(message, JSONRPCResponse | JSONRPCError)
            stream.added.ring()
        return self._number

    def find(self, event: int) -> ResponseStream | None:
        """The open stream to which an event belongs."""
        self._forget_closed()
        first = self._first.get(event)
        if first is not None:
            return first
        streams = self._streams.values()
        return next((each for each in streams if any(number == event for number, _ in each.events)), None)

    def _forget_closed(self) -> None:
        if any(stream.is_closed for stream in self._first.values()):
            self._streams = {name: each for name, each in self._streams.items() if not each.is_closed}
            self._first = {number: each for number, each in self._first.items() if not each.is_closed}


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
            return str(session.add(stream_id, message))
        return _UNKEPT if exchange is None else str(session.open(stream_id, exchange))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Replay nothing. `ResponseStream` resumes the responses; a stream of notifications just goes on."""
        del send_callback
        return GET_STREAM_KEY if last_event_id == _UNKEPT else None


_UNKEPT = "live"
"""The id of events that cannot be replayed: notifications outside of requests, and the answer to `initialize`."""


def _event(number: int, message: JSONRPCMessage) -> str:
    data = message.model_dump_json(by_alias=True, exclude_unset=True)
    return f"id: {number}\nevent: message\ndata: {data}\n\n"
