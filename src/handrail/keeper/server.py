"""The keeper itself: who may speak to it, as what, and when it ends.

Owns the composition. Does not know why a terminal is started or stopped, and holds no byte of output longer than it
takes to write it to the spool.

Everyone who connects to the keeper's socket, until they hang up.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol

from handrail.framing import LineTooLong
from handrail.keeper import lineage
from handrail.keeper.attach import Attachments
from handrail.keeper.connection import Audience, Connection
from handrail.keeper.event_loop import READ, WRITE, Loop
from handrail.keeper.message_framing import FrameError
from handrail.keeper.protocol import (
    PROTOCOL,
    Done,
    Hello,
    RefusalError,
    Refused,
    Replaced,
    Request,
    Welcome,
    skew,
    to_keeper,
)
from handrail.keeper.requests import Orders
from handrail.keeper.stop_tree import Orphans
from handrail.keeper.terminals import Shelf

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable


LAST_WORDS = 1.0
"""Seconds that the daemon gets to read our last answers before we exit."""
FROM_INSIDE = (
    "The keeper does not take orders from a process that Handrail started, or from another user. "
    "Use the page, or a terminal of your own."
)


class Keeper:
    """Runs until it is told to end, or has had nothing to keep and no daemon for `idle_seconds`."""

    def __init__(
        self,
        listener: socket.socket,
        spool: str,
        limits: tuple[int, int],
        idle_seconds: float,
        start_daemon: Callable[[], int],
    ) -> None:
        self._idle_seconds = idle_seconds
        self._start_daemon = start_daemon
        self._daemons: set[int] = set()
        self._reference = lineage.own_limit()
        self._loop = Loop()
        self._audience = Audience()
        self._reception = Reception(listener, self._loop, self)
        self._orphans = Orphans(self._reference)
        self._shelf = Shelf(self._loop, self._audience, self._orphans, spool, limits)
        self._attachments = Attachments(self._shelf, self._audience)
        self._orders = Orders(self._shelf, self._loop, self._end_all)
        self._busy_at = time.monotonic()
        self._ending: list[int] | None = None

    def run(self, wake: int) -> None:
        """`wake` becomes readable when a signal has come, and gives its number."""
        self._loop.watch(wake, READ, partial(self._on_signal, wake))
        while not self._is_over():
            self._loop.once(self._patience())
            self._shelf.tick()
            self._audience.catch_up()
            self._attachments.tick()
            for peer in (self._audience.daemon, *self._attachments.peers):
                if peer is not None and (peer.wants_to_send or peer.closing):
                    self._reception.watch(peer)
        self._say_last_words()
        self._orders.close()

    def greet(self, connection: Connection, hello: Hello) -> None:
        """Whoever says hello is welcomed, or refused with a sentence and left."""
        try:
            self._greet(connection, hello)
        except RefusalError as refusal:
            connection.send(Refused(str(refusal)))
            connection.closing = True

    def answer(self, connection: Connection, request: Request) -> bool:
        if connection in self._attachments:
            self._attachments.answer(connection, request)
        elif connection is self._audience.daemon:
            self._orders.obey(connection, request)
        else:
            return False
        return True

    def left(self, connection: Connection) -> None:
        if connection in self._attachments:
            self._attachments.left(connection)
        elif connection is self._audience.daemon:
            self._audience.daemon = None
            self._daemon_left(connection)

    def _greet(self, connection: Connection, hello: Hello) -> None:
        if hello.want == "start_daemon":
            connection.send(Welcome(PROTOCOL, os.getpid(), answer=self._have_daemon()))
            connection.closing = True
            return
        self._check(connection, hello)
        match hello.want:
            case "shutdown":
                connection.send(Welcome(PROTOCOL, os.getpid(), answer="ending"))
                self._end_all(hello.grace)
            case "daemon":
                self._seat(connection)
            case "attach":
                self._attachments.attach(connection, hello)
            case _:
                raise RefusalError(f"The keeper does not know what {hello.want!r} would be.")

    def _daemon_left(self, daemon: Connection) -> None:
        for held in self._shelf.all():
            held.forget_daemon(daemon)

    def _check(self, connection: Connection, hello: Hello) -> None:
        """Raises RefusalError for a peer that may not give orders, or does not speak our version."""
        peer = lineage.Peer.of(connection.sock)
        try:
            if not peer.is_trusted(self._shelf.wardens(), self._reference):
                raise RefusalError(FROM_INSIDE)
        finally:
            peer.close()
        why = None if hello.want == "shutdown" else skew(hello.protocol)
        if why is None and (connection in self._attachments or connection is self._audience.daemon):
            why = "A connection says hello once."
        if why is not None:
            raise RefusalError(why)

    def _have_daemon(self) -> str:
        """Anyone of this user may ask for this: it starts one fixed program, and only where none is known."""
        if self._audience.daemon is not None or self._daemons or self._ending is not None:
            return "already"
        pid = self._start_daemon()
        self._daemons.add(pid)
        self._orphans.spared.add(pid)
        return "started"

    def _seat(self, connection: Connection) -> None:
        old, self._audience.daemon = self._audience.daemon, connection
        if old is not None:
            old.send(Replaced())
            old.closing = True
            self._reception.watch(old)
            self._daemon_left(old)
        kept = [held.state() for held in self._shelf.all() if not held.failed]
        connection.send(Welcome(PROTOCOL, os.getpid(), len(kept)))
        for state in kept:
            connection.send(state)

    def _on_signal(self, wake: int, _events: int) -> None:
        numbers = os.read(wake, 4096)
        if signal.SIGTERM in numbers or signal.SIGINT in numbers:
            self._end_all(2.0)
        with suppress(ChildProcessError):
            while (child := os.waitpid(-1, os.WNOHANG | os.WUNTRACED))[0] != 0:
                pid, status = child
                if os.WIFSTOPPED(status):
                    self._shelf.wake(pid)
                else:
                    self._daemons.discard(pid)
                    self._shelf.reaped(pid)

    def _end_all(self, grace: float, request: int | None = None) -> None:
        self._orders.ending = True
        self._ending = [*(self._ending or ()), *(() if request is None else (request,))]
        for held in self._shelf.living():
            held.end(grace)

    def _is_over(self) -> bool:
        if self._shelf.living():
            self._busy_at = time.monotonic()
            return False
        if self._audience.daemon is not None:
            self._busy_at = time.monotonic()
        return self._ending is not None or time.monotonic() - self._busy_at >= self._idle_seconds

    def _patience(self) -> float | None:
        """Seconds until something is due by time alone."""
        waits = [self._shelf.wait_at_most(), self._attachments.wait_at_most()]
        if self._audience.daemon is None and not self._shelf.living():
            waits.append(self._busy_at + self._idle_seconds - time.monotonic())
        return min((max(0.0, wait) for wait in waits if wait is not None), default=None)

    def _say_last_words(self) -> None:
        for request in self._ending or ():
            self._audience.tell(Done(request))
        daemon, until = self._audience.daemon, time.monotonic() + LAST_WORDS
        while daemon is not None and daemon.wants_to_send and time.monotonic() < until:
            select.select([], [daemon.sock], [], LAST_WORDS)
            daemon.flush()


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
