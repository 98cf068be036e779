"""Everyone who connects to the keeper's socket, until they hang up.

Owns the connections and their buffers. Does not know what a hello or a request asks for, nor who may ask.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol

from handrail.framing import LineTooLong
from handrail.keeper.connection import Connection
from handrail.keeper.frames import FrameError
from handrail.keeper.loop import READ, WRITE
from handrail.keeper.protocol import Hello, Refused, Request, to_keeper

if TYPE_CHECKING:
    import socket

    from handrail.keeper.loop import Loop


def _spare() -> int:
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


class Host(Protocol):
    """Who acts on what is said."""

    def greet(self, connection: Connection, hello: Hello) -> None: ...
    def answer(self, connection: Connection, request: Request) -> bool:
        """False when this one was not welcomed."""
        ...

    def left(self, connection: Connection) -> None: ...


class Reception:
    """Accepts, listens and hangs up."""

    def __init__(self, listener: socket.socket, loop: Loop, host: Host) -> None:
        self._listener, self._loop, self._host = listener, loop, host
        self._spare = _spare()
        loop.watch(listener.fileno(), READ, self._on_listener)

    def watch(self, connection: Connection) -> None:
        """Listen to a peer that reads; leave one that is done once it has our answer."""
        fd = connection.sock.fileno()
        if fd < 0:
            return
        if connection.closing and not connection.wants_to_send:
            self._leave(connection)
            return
        reading = READ if connection.has_room and not connection.closing else 0
        writing = WRITE if connection.wants_to_send else 0
        self._loop.watch(fd, reading | writing, partial(self._on_peer, connection))

    def _on_listener(self, _events: int) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError as error:  # a peer that has gone again, or no descriptors left
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._turn_away()
        else:
            self.watch(Connection(sock))

    def _turn_away(self) -> None:
        """Without a descriptor for it, a peer would keep the listener ready, and the loop busy, for ever."""
        os.close(self._spare)
        with suppress(OSError):
            self._listener.accept()[0].close()
        self._spare = _spare()

    def _on_peer(self, connection: Connection, events: int) -> None:
        if events & WRITE:
            connection.flush()
        if events & READ and not self._listen(connection):
            connection.closing = True
        self.watch(connection)

    def _listen(self, connection: Connection) -> bool:
        """False when the peer is gone or makes no sense."""
        try:
            lines = connection.receive()
            for line in lines or ():
                self._hear(connection, line)
        except (FrameError, LineTooLong) as error:
            connection.send(Refused(str(error)))
            return False
        return lines is not None

    def _hear(self, connection: Connection, line: bytes) -> None:
        if connection.closing:
            return
        message = to_keeper(line)
        if isinstance(message, Hello):
            self._host.greet(connection, message)
        elif not self._host.answer(connection, message):
            connection.send(Refused("A connection begins with a hello that is welcomed."))
            connection.closing = True

    def _leave(self, connection: Connection) -> None:
        self._loop.watch(connection.sock.fileno(), 0, partial(self._on_peer, connection))
        connection.close()
        self._host.left(connection)
