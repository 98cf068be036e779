"""What the daemon may ask of the keeper, and what is answered.

Owns the memo and the ports that a daemon leaves here. Does not know who the daemon is, nor whether to trust it.

A few bytes the daemon asks the keeper to hold across its own restarts.

The ports on which a daemon serves people, held open for as long as the keeper lives.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING

from handrail.keeper import system
from handrail.keeper.protocol import (
    Done,
    Failed,
    Forget,
    Health,
    Healthy,
    Input,
    Listen,
    Listening,
    Look,
    Looked,
    Recall,
    Recalled,
    RefusalError,
    Remember,
    Request,
    Resize,
    Shutdown,
    Signal,
    Start,
    Stop,
    Typed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from handrail.keeper.connection import Connection
    from handrail.keeper.event_loop import Loop
    from handrail.keeper.terminals import Shelf


class Orders:
    """The daemon's orders, one by one; `end` is called for the last one, and answered by the keeper itself."""

    def __init__(self, shelf: Shelf, loop: Loop, end: Callable[[float, int], None]) -> None:
        self._shelf, self._loop, self._end = shelf, loop, end
        self._memo = Memo()
        self._ports = Ports()
        self.ending = False

    def obey(self, daemon: Connection, request: Request) -> None:
        try:
            self._do(daemon, request)
        except RefusalError as refusal:
            daemon.send(Failed(request.id, str(refusal), refusal.code))
        except OSError as error:
            daemon.send(Failed(request.id, f"The system refused: {error.strerror}."))

    def close(self) -> None:
        self._ports.close()

    def _do(self, daemon: Connection, request: Request) -> None:
        """Done is what the last few say; the others have an answer of their own."""
        match request:
            case Start():
                self._start(request)
            case Input(id, terminal, data, person):
                secret, typed = self._shelf.type(terminal, data, person)
                daemon.send(Typed(id, secret, typed))
            case Look(id, terminal):
                daemon.send(Looked(id, self._shelf.look(terminal)))
            case Stop(id, terminal, grace):
                self._shelf.stop(daemon, id, terminal, grace)
            case Recall(id, key):
                daemon.send(Recalled(id, self._memo.recall(key)))
            case Listen(id, ports):
                daemon.send(Listening(id), (self._ports.open(ports),))
            case Health(id):
                daemon.send(self._health(id))
            case Shutdown(id, grace):
                self._end(grace, id)
            case _:
                self._do_at_once(request)
                daemon.send(Done(request.id))

    def _do_at_once(self, request: Resize | Signal | Forget | Remember) -> None:
        match request:
            case Resize(_, terminal, cols, rows):
                if self._shelf.find(terminal).windows:
                    raise RefusalError(
                        f"Terminal {terminal} is open in a window, and has that window's size."
                    )
                self._shelf.resize(terminal, cols, rows)
            case Signal(_, terminal, number):
                self._shelf.signal(terminal, number)
            case Forget(_, terminal, delete):
                self._shelf.forget(terminal, delete)
            case Remember(_, key, value):
                if not self._memo.remember(key, value):
                    raise RefusalError("The keeper's memo is full.")

    def _start(self, order: Start) -> None:
        if self.ending:
            raise RefusalError("The keeper is ending.")
        self._shelf.start(order)

    def _health(self, request: int) -> Healthy:
        return Healthy(
            id=request,
            rss_bytes=system.resident_bytes(),
            descriptors=system.open_descriptors(),
            terminals=len(self._shelf.living()),
            lag_ms=round(self._loop.take_worst() * 1000, 3),
        )


MEMO_MAX = 64 * 1024
"""Bytes of keys and values in all, so that the keeper stays small."""


class Memo:
    """Keys and values; an empty value forgets its key."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def remember(self, key: str, value: bytes) -> bool:
        """False, and nothing changes, when it would hold too much."""
        kept = {**self._values, key: value}
        if not value:
            del kept[key]
        if sum(len(name.encode()) + len(held) for name, held in kept.items()) > MEMO_MAX:
            return False
        self._values = kept
        return True

    def recall(self, key: str) -> bytes | None:
        return self._values.get(key)


HOST = "127.0.0.1"
BACKLOG = 256
"""Connections that may wait for a daemon; more are refused."""


class Ports:
    """Every port that a daemon was given, by its number."""

    def __init__(self) -> None:
        self._held: dict[int, socket.socket] = {}

    def open(self, wished: Sequence[int]) -> int:
        """The first of these that is held already or free, else one that is held, else any: a descriptor of it."""
        for port in (*wished, *self._held, 0):
            listener = self._held.get(port) or _listen(port)
            if listener is not None:
                self._held[listener.getsockname()[1]] = listener
                return os.dup(listener.fileno())
        raise OSError(errno.EADDRINUSE, "no port is free on loopback")

    def close(self) -> None:
        for listener in self._held.values():
            listener.close()


def _listen(port: int) -> socket.socket | None:
    """The port on loopback, or None when it is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        if isinstance(error, OverflowError) or error.errno in (errno.EADDRINUSE, errno.EACCES):
            return None
        raise
    return listener
