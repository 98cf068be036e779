"""Bounds on connections: how many there may be, how long a client may take to send its request, what is buffered, and how
fast requests are served that a client sends before it has the answer to the last one.

File descriptors are few under a low `ulimit -n`. Some are kept free for files, the keeper and the daemon's own work, and
HTTP clients cannot take those of the daemon's unix socket.
"""

import asyncio
import logging
import os
import resource
import socket
from pathlib import Path
from typing import Any

import h11
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol

from handrail.lazy_dataclass import dataclass

log = logging.getLogger(__name__)

RESERVE = 16
"""Descriptors kept free for files that tools read, database readers, and descriptors from the keeper."""
LEAST = 6
"""Connections allowed however few descriptors there are: fewer would serve no one."""
MOST = 4096
BACKLOG = 128
HEAD_SECONDS = 10.0
"""Time for the head of a request. Bounds how long a silent HTTP client holds a descriptor."""
BODY_SECONDS = 60.0
"""Time without a byte of an incomplete body after which the connection is closed."""
SEND_BYTES = 1 << 17
"""The kernel's send buffer of a connection. Bounds the work that is done for a client that does not read its responses."""
RECEIVE_BYTES = 1 << 15
"""The kernel's receive buffer of a connection. Bounds what is read together, and so the requests that wait here."""
TURN_SECONDS = 0.1
"""Interval between two requests that were sent ahead, over all connections. Leaves nearly all of the event loop to clients
that wait for their answers, as all but hostile ones do."""
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
    b'connection: close\r\n\r\n{"detail":"Handrail has as many connections as it has room for. Try again."}'
)


@dataclass(frozen=True, slots=True)
class ConnectionBudget:
    """The most connections on the port and on the unix socket."""

    http: int
    local: int
    backlog: int
    """Connections on the port that wait to be accepted. asyncio accepts so many before it looks at any of them."""

    @classmethod
    def of_process(cls) -> "ConnectionBudget":
        """Share what this process may open beyond what it has open now."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        room = MOST if soft == resource.RLIM_INFINITY else soft - _count_descriptors(soft) - RESERVE
        room = max(LEAST, min(MOST, room))
        backlog = max(4, min(BACKLOG, room // 4))
        room -= backlog if room > LEAST + backlog else 0
        return cls(http=room // 2, local=room - room // 2, backlog=backlog)


def _count_descriptors(most: int) -> int:
    """The number of open descriptors; `most` if not even one more can be opened to count them."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        if Path(folder).is_dir():
            try:
                return len(os.listdir(folder))  # noqa: PTH208 - only their number is needed
            except OSError:
                return most
    return 0


class HttpConnections:
    """The open HTTP connections of one server, oldest first, and the most there may be."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[BoundedHttp, None] = {}
        self._ahead: dict[BoundedHttp, None] = {}
        """The connections whose next request waits for its turn, in the order in which they began to wait."""
        self._turn: asyncio.TimerHandle | None = None

    def protocol(self, **options: Any) -> "BoundedHttp":
        """Create the protocol of a new connection; uvicorn's factory."""
        return BoundedHttp(self, **options)

    def add(self, new: "BoundedHttp") -> bool:
        """Add a connection, in place of the oldest idle one if there are too many. False if all are in use."""
        self._open[new] = None
        if len(self._open) <= self._most:
            return True
        for each in [each for each in self._open if each.transport.is_closing()]:
            del self._open[each]  # a WebSocket, whose end is not reported to the HTTP protocol
        if len(self._open) <= self._most:
            return True
        oldest = next((each for each in self._open if each.is_idle and each is not new), None)
        if oldest is not None:
            oldest.drop()
        return oldest is not None

    def remove(self, connection: "BoundedHttp") -> None:
        self._open.pop(connection, None)
        self._ahead.pop(connection, None)

    def wait_turn(self, connection: "BoundedHttp") -> None:
        """Call `serve_next` of the connection when it is its turn."""
        self._ahead[connection] = None
        if self._turn is None:
            self._turn = connection.loop.call_later(TURN_SECONDS, self._begin_turn, connection.loop)

    def _begin_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._turn = None
        connection = next(iter(self._ahead), None)
        if connection is None:
            return
        del self._ahead[connection]
        if self._ahead:
            self._turn = loop.call_later(TURN_SECONDS, self._begin_turn, loop)
        connection.serve_next()


class _PipelineFlow(FlowControl):
    """Flow control that reads nothing more while another request waits behind the one that is served.

    uvicorn reads more with each request, to detect that the client leaves, and buffers all that the client sends.
    """

    def __init__(self, transport: asyncio.Transport, connection: h11.Connection) -> None:
        super().__init__(transport)
        self._connection = connection

    def resume_reading(self) -> None:
        if self.read_paused and not self.has_next_request:
            super().resume_reading()

    @property
    def has_next_request(self) -> bool:
        return self._connection.their_state is h11.DONE and bool(self._connection.trailing_data[0])


class BoundedHttp(H11Protocol):
    """An HTTP connection that is closed if its request does not arrive, or to make room for another."""

    def __init__(self, connections: HttpConnections, **options: Any) -> None:
        super().__init__(**options)
        self._all = connections
        self._waits_since = self._heard_at = self.loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._sends_ahead = False
        """Whether the client sent its next request before the response to the last one began."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.flow = self._pipeline = _PipelineFlow(transport, self.conn)
        own: socket.socket = transport.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        self._timer = self.loop.call_later(HEAD_SECONDS, self._check)
        if not self._all.add(self):
            transport.write(_BUSY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._heard_at = self.loop.time()
        super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        needs_data = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if needs_data and not (self.cycle and len(self.cycle.body) > HIGH_WATER_LIMIT):
            self.flow.resume_reading()
        if self._pipeline.has_next_request and not self.cycle.response_started:
            self._sends_ahead = True

    def on_response_complete(self) -> None:
        self._waits_since = self.loop.time()
        if self._sends_ahead and not self.transport.is_closing():
            self._all.wait_turn(self)
        else:
            super().on_response_complete()

    def serve_next(self) -> None:
        """Serve the request that was sent ahead: its turn has come."""
        self._sends_ahead = False
        super().on_response_complete()

    @property
    def is_idle(self) -> bool:
        """Whether no request is being served: none has arrived, or all are answered."""
        return not self._is_upgraded and (not self.cycle or self.cycle.response_complete)

    def drop(self) -> None:
        """Close the connection without an answer."""
        self._forget()
        self.transport.abort()

    @property
    def _is_upgraded(self) -> bool:
        """Whether it is a WebSocket now."""
        return self not in self.connections

    @property
    def _is_late(self) -> bool:
        """Whether its request, or the rest of it, should have arrived by now."""
        now = self.loop.time()
        if self.is_idle:
            return now - self._waits_since >= HEAD_SECONDS
        return self.cycle.more_body and now - self._heard_at >= BODY_SECONDS

    def _check(self) -> None:
        if self.transport.is_closing() or self._is_upgraded:
            return
        if self._is_late:
            self.drop()
        else:
            self._timer = self.loop.call_later(HEAD_SECONDS, self._check)

    def _forget(self) -> None:
        self._all.remove(self)
        if self._timer is not None:
            self._timer.cancel()
