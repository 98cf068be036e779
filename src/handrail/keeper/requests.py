"""Handlers of the daemon's requests to the keeper.

Also holds what must survive a restart of the daemon: a small key-value memo and the listening sockets. The server has
already checked that the peer is the daemon.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING

from handrail.keeper import system
from handrail.keeper.protocol import (
    NO_REPLY,
    RESTART_KEY,
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
    from handrail.keeper.supervisor import Supervisor
    from handrail.keeper.terminals import Terminals


class RequestHandler:
    """Executes the daemon's requests. `Shutdown` calls `end`; the server answers it just before the keeper exits."""

    def __init__(
        self, terminals: Terminals, loop: Loop, end: Callable[[float, int], None], supervisor: Supervisor
    ) -> None:
        self._terminals, self._loop, self._end = terminals, loop, end
        self._memo = Memo()
        self._ports = Ports()
        self._supervisor = supervisor
        self.ending = False

    def handle(self, daemon: Connection, request: Request) -> None:
        try:
            self._execute(daemon, request)
        except RefusalError as refusal:
            daemon.send(Failed(request.id, str(refusal), refusal.code))
        except OSError as error:
            daemon.send(Failed(request.id, f"The system refused: {error.strerror}."))

    def close(self) -> None:
        self._ports.close()

    @property
    def listeners(self) -> list[socket.socket]:
        """The sockets on which the daemon listens."""
        return self._ports.listeners

    @property
    def restarts_daemon(self) -> bool:
        """Whether the daemon is to be restarted if it ends unexpectedly: then it does not remove this key before."""
        return self._memo.recall(RESTART_KEY) is not None

    def _execute(self, daemon: Connection, request: Request) -> None:
        """Run one request and send its reply; `Start`, `Stop` and `Shutdown` are answered later."""
        match request:
            case Start():
                self._start(request)
            case Input(id, terminal, data, person):
                secret, typed = self._terminals.type(terminal, data, person)
                daemon.send(Typed(id, secret, typed))
            case Look(id, terminal):
                daemon.send(Looked(id, self._terminals.look(terminal)))
            case Stop(id, terminal, grace):
                self._terminals.stop(daemon, id, terminal, grace)
            case Recall(id, key):
                daemon.send(Recalled(id, self._memo.recall(key)))
            case Listen(id):
                descriptors = self._listen(request)
                daemon.send(Listening(id, len(descriptors)), descriptors)
            case Health(id):
                daemon.send(self._health(id))
            case Forget(id, terminal, delete) if id == NO_REPLY:
                self._terminals.forget(terminal, delete)
            case Shutdown(id, grace):
                self._end(grace, id)
            case _:
                self._execute_simple(request)
                daemon.send(Done(request.id))

    def _execute_simple(self, request: Resize | Signal | Forget | Remember) -> None:
        match request:
            case Resize(_, terminal, cols, rows):
                if self._terminals.find(terminal).windows:
                    raise RefusalError(
                        f"Terminal {terminal} is open in a window, and has that window's size."
                    )
                self._terminals.resize(terminal, cols, rows)
            case Signal(_, terminal, number):
                self._terminals.signal(terminal, number)
            case Forget(_, terminal, delete):
                self._terminals.forget(terminal, delete)
            case Remember(_, key, value):
                if not self._memo.remember(key, value):
                    raise RefusalError("The keeper's memo is full.")

    def _listen(self, request: Listen) -> tuple[int, ...]:
        if request.release:
            self._ports.release(request.host, request.ports[0])
            return ()
        if request.host:
            return (self._ports.open_at(request.host, request.ports[0]),)
        return self._ports.open_both(request.ports) if request.both else (self._ports.open(request.ports),)

    def _start(self, order: Start) -> None:
        if self.ending:
            raise RefusalError("The keeper is ending.")
        self._terminals.start(order)

    def _health(self, request: int) -> Healthy:
        return Healthy(
            id=request,
            rss_bytes=system.resident_bytes(),
            descriptors=system.open_descriptors(),
            terminals=len(self._terminals.living()),
            lag_ms=round(self._loop.take_worst() * 1000, 3),
            restarts=self._supervisor.restarts,
            restarted_at=self._supervisor.restarted_at,
        )


MEMO_MAX = 64 * 1024
"""Total bytes of keys and values; keeps the keeper's memory small."""


class Memo:
    """Key-value store; an empty value deletes its key."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def remember(self, key: str, value: bytes) -> bool:
        """Store a value; False, with no change, if the memo would exceed MEMO_MAX."""
        values = {**self._values, key: value}
        if not value:
            del values[key]
        if sum(len(name.encode()) + len(data) for name, data in values.items()) > MEMO_MAX:
            return False
        self._values = values
        return True

    def recall(self, key: str) -> bytes | None:
        return self._values.get(key)


HOST, HOST_V6 = "127.0.0.1", "::1"
BACKLOG = 256
"""Connections that may queue while no daemon accepts; more are refused."""


class Ports:
    """The daemon's listening sockets by port. They stay open until the keeper exits, so a restart keeps the port."""

    def __init__(self) -> None:
        self._listeners: dict[int, socket.socket] = {}
        self._listeners_v6: dict[int, socket.socket] = {}
        self._device_listeners: dict[tuple[str, int], socket.socket] = {}

    def open(self, preferred: Sequence[int]) -> int:
        """Return a new descriptor of a listening socket.

        Takes the first preferred port that is open here or free, else any port that is open here, else a random one.
        """
        for port in (*preferred, *self._listeners, 0):
            listener = self._listeners.get(port) or _listen(HOST, port)
            if listener is not None:
                self._listeners[listener.getsockname()[1]] = listener
                return os.dup(listener.fileno())
        raise OSError(errno.EADDRINUSE, "no port is free on loopback")

    def open_both(self, preferred: Sequence[int]) -> tuple[int, ...]:
        """Like `open`, and the same port of [::1] if possible: browsers try that first for `localhost`."""
        first = self.open(preferred)
        with socket.socket(fileno=os.dup(first)) as listener:
            second = self._hold_v6(listener.getsockname()[1])
        return (first,) if second is None else (first, os.dup(second.fileno()))

    def open_at(self, host: str, port: int) -> int:
        """Return a new descriptor of a socket for devices, on exactly this address. Raises OSError."""
        listener = self._device_listeners.get((host, port)) or _listen(host, port)
        if listener is None:
            raise OSError(errno.EADDRINUSE, f"port {port} of {host} is taken")
        self._device_listeners[host, port] = listener
        return os.dup(listener.fileno())

    def release(self, host: str, port: int) -> None:
        """Close the socket of `open_at`. No effect without one."""
        listener = self._device_listeners.pop((host, port), None)
        if listener is not None:
            listener.close()

    @property
    def listeners(self) -> list[socket.socket]:
        """Those on loopback. Devices use TLS, which the keeper does not speak."""
        return [*self._listeners.values(), *self._listeners_v6.values()]

    def close(self) -> None:
        for listener in (*self.listeners, *self._device_listeners.values()):
            listener.close()

    def _hold_v6(self, port: int) -> socket.socket | None:
        try:
            listener = self._listeners_v6.get(port) or _listen(HOST_V6, port)
        except OSError:  # this system has no IPv6
            return None
        if listener is not None:
            self._listeners_v6[port] = listener
        return listener


def _listen(host: str, port: int) -> socket.socket | None:
    """Listen on a port of this address; None if it is taken, not permitted or invalid."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        if isinstance(error, OverflowError) or error.errno in (errno.EADDRINUSE, errno.EACCES):
            return None
        raise
    return listener
