"""503 Service Unavailable: the answer to HTTP clients on the daemon's port while there is no daemon.

Connections that arrive just before a restart wait in the backlog for the new daemon. If none comes soon, the keeper
answers: a client must get a sentence, not wait without end. Reads no request beyond its first bytes.
"""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from handrail.keeper.event_loop import READ, Loop

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

HOLD_SECONDS = 10.0
"""Seconds for which connections wait for a new daemon, which takes one or two to start."""
CLOSE_SECONDS = 2.0
"""Seconds for a client to send its request and to read the answer; bounds the descriptors that it holds."""
OPEN_MAX = 64
"""Connections at a time: bounds descriptors. More wait in the backlog."""
RETRY_AFTER_SECONDS = 2
REQUEST_BYTES = 65_536


class UnavailableResponder:
    """Accepts connections on the daemon's listening sockets, answers 503 and closes them."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._listeners: Sequence[socket.socket] = ()
        self._open: dict[socket.socket, float] = {}
        """When each connection is closed."""
        self._answered: set[socket.socket] = set()
        self._sentence = ""

    def answer(self, listeners: Sequence[socket.socket], sentence: str) -> None:
        """Answer on these listeners with this sentence, until `stop`."""
        self._sentence = sentence
        self._listeners = listeners
        self._watch_listeners()

    def stop(self) -> None:
        """Leave the listeners to a daemon. Connections that were accepted get their answer."""
        for listener in self._listeners:
            self._loop.watch(listener.fileno(), 0, self._ignore)
        self._listeners = ()

    def close(self) -> None:
        self.stop()
        for client in list(self._open):
            self._close(client)

    def tick(self) -> None:
        """Answer the connections whose time is up, and close those that were answered."""
        now = time.monotonic()
        for client in [client for client, until in self._open.items() if until <= now]:
            if client in self._answered:
                self._close(client)
            else:
                self._send(client)

    def wait_at_most(self) -> float | None:
        """Seconds until the next connection is due."""
        return min(self._open.values()) - time.monotonic() if self._open else None

    def _watch_listeners(self) -> None:
        events = READ if len(self._open) < OPEN_MAX else 0
        for listener in self._listeners:
            listener.setblocking(False)
            self._loop.watch(listener.fileno(), events, partial(self._accept, listener))

    def _accept(self, listener: socket.socket, _events: int) -> None:
        try:
            client, _ = listener.accept()
        except OSError:  # the client has left, or no descriptor is free
            return
        client.setblocking(False)
        self._open[client] = time.monotonic() + CLOSE_SECONDS
        self._loop.watch(client.fileno(), READ, partial(self._read, client))
        self._watch_listeners()

    def _read(self, client: socket.socket, _events: int) -> None:
        """Read the request before the answer: a connection closed with unread bytes is reset, and its answer lost."""
        try:
            has_more = bool(client.recv(REQUEST_BYTES))
        except BlockingIOError:
            return
        except OSError:
            has_more = False
        if not has_more:
            self._close(client)
        elif client not in self._answered:
            self._send(client)

    def _send(self, client: socket.socket) -> None:
        body = f"{self._sentence}\n".encode()
        head = (
            f"HTTP/1.1 503 Service Unavailable\r\nRetry-After: {RETRY_AFTER_SECONDS}\r\nCache-Control: no-store\r\n"
            f"Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self._answered.add(client)
        self._open[client] = time.monotonic() + CLOSE_SECONDS
        with suppress(OSError):  # it has left; the deadline closes it
            client.send(head.encode() + body)
            client.shutdown(1)

    def _close(self, client: socket.socket) -> None:
        self._loop.watch(client.fileno(), 0, self._ignore)
        client.close()
        self._open.pop(client, None)
        self._answered.discard(client)
        self._watch_listeners()

    def _ignore(self, _events: int) -> None:
        return
