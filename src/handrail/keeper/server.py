"""The keeper's server: accepts connections, authenticates peers, dispatches their messages, decides when to exit.

Builds all parts of the keeper. Output is not kept in memory: it goes straight to the spool.
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
from handrail.keeper._unavailable import HOLD_SECONDS, UnavailableResponder
from handrail.keeper.attach import Attachments
from handrail.keeper.connection import Connection, DaemonChannel
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
from handrail.keeper.requests import RequestHandler
from handrail.keeper.stop_tree import Orphans
from handrail.keeper.supervisor import RESTARTS_MAX, Supervisor
from handrail.keeper.terminals import Terminals

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable


HELLO_SECONDS = 5.0
"""Seconds for a peer to send its hello; bounds the descriptors that silent peers hold."""
LAST_REPLIES_SECONDS = 1.0
"""Seconds for the daemon to read the last replies before the keeper exits."""
FROM_INSIDE = (
    "The keeper does not take orders from a process that Handrail started, or from another user. "
    "Use the page, or a terminal of your own."
)


class Keeper:
    """Runs until a shutdown, or until it has had neither a terminal nor a daemon for `idle_seconds`."""

    def __init__(
        self,
        listener: socket.socket,
        spool: str,
        limits: tuple[int, int],
        idle_seconds: float,
        start_daemon: Callable[[], int],
        reference: int | None = None,
    ) -> None:
        """`reference` is the limit below which a peer is marked, if the daemon that started this keeper gave it."""
        self._idle_seconds = idle_seconds
        self._start_daemon = start_daemon
        self._daemons: set[int] = set()
        self._daemon_pid = 0
        self._reference = lineage.own_reference() if reference is None else reference
        self._loop = Loop()
        self._channel = DaemonChannel()
        self._connections = Connections(listener, self._loop, self)
        self._orphans = Orphans(self._reference)
        self._terminals = Terminals(self._loop, self._channel, self._orphans, spool, limits)
        self._attachments = Attachments(self._terminals, self._channel)
        self._supervisor = Supervisor()
        self._unavailable = UnavailableResponder(self._loop)
        self._requests = RequestHandler(self._terminals, self._loop, self._end_all, self._supervisor)
        self._socket_path = str(listener.getsockname())
        self._busy_at = time.monotonic()
        self._alone_since = self._busy_at
        """Since when there is no daemon."""
        self._ending: list[int] | None = None

    def run(self, wake: int) -> None:
        """Run the event loop. `wake` is a descriptor from which the numbers of received signals are read."""
        self._loop.watch(wake, READ, partial(self._on_signal, wake))
        while not self._is_over():
            self._loop.once(self._wait_at_most())
            self._terminals.tick()
            self._restart_daemon()
            self._answer_unavailable()
            self._channel.catch_up()
            self._attachments.tick()
            self._connections.drop_silent()
            for peer in (self._channel.daemon, *self._attachments.peers):
                if peer is not None and (peer.wants_to_send or peer.closing):
                    self._connections.watch(peer)
        self._send_last_replies()
        self._unavailable.close()
        self._requests.close()

    def greet(self, connection: Connection, hello: Hello) -> None:
        """Answer a hello with a welcome, or with a refusal after which the connection closes."""
        try:
            self._greet(connection, hello)
        except RefusalError as refusal:
            connection.send(Refused(str(refusal)))
            connection.closing = True

    def answer(self, connection: Connection, request: Request) -> bool:
        if connection in self._attachments:
            self._attachments.answer(connection, request)
        elif connection is self._channel.daemon:
            self._requests.handle(connection, request)
        else:
            return False
        return True

    def left(self, connection: Connection) -> None:
        if connection in self._attachments:
            self._attachments.left(connection)
        elif connection is self._channel.daemon:
            self._channel.daemon = None
            self._daemon_pid = 0
            self._alone_since = time.monotonic()
            self._daemon_left(connection)
            self._daemon_lost()

    def _greet(self, connection: Connection, hello: Hello) -> None:
        if hello.want in ("start_daemon", "which_daemon"):
            answer = self._ensure_daemon() if hello.want == "start_daemon" else ""
            connection.send(Welcome(PROTOCOL, os.getpid(), answer=answer, daemon=self._daemon_pid))
            connection.closing = True
            return
        peer_pid = self._check(connection, hello)
        match hello.want:
            case "shutdown":
                connection.send(Welcome(PROTOCOL, os.getpid(), answer="ending"))
                self._end_all(hello.grace)
            case "daemon":
                self._accept_daemon(connection, peer_pid)
            case "attach":
                self._attachments.attach(connection, hello)
            case _:
                raise RefusalError(f"The keeper does not know what {hello.want!r} would be.")

    def _daemon_left(self, daemon: Connection) -> None:
        for terminal in self._terminals.all():
            terminal.forget_daemon(daemon)

    def _check(self, connection: Connection, hello: Hello) -> int:
        """The peer's pid. Raises RefusalError if it is not trusted, has another protocol version, or repeats its hello."""
        peer = lineage.Peer.of(connection.sock)
        try:
            if not peer.is_trusted(self._terminals.wardens(), self._reference):
                raise RefusalError(FROM_INSIDE)
        finally:
            peer.close()
        why = None if hello.want == "shutdown" else skew(hello.protocol)
        if why is None and (connection in self._attachments or connection is self._channel.daemon):
            why = "A connection says hello once."
        if why is not None:
            raise RefusalError(why)
        return peer.pid

    def _ensure_daemon(self) -> str:
        """Start a daemon unless one is known. Needs no trusted peer: it starts one fixed program, at most once."""
        if self._channel.daemon is not None or self._daemons or self._ending is not None:
            return "already"
        self._supervisor.take_pending()
        self._launch_daemon()
        return "started"

    def _launch_daemon(self) -> None:
        pid = self._start_daemon()
        self._daemons.add(pid)
        self._orphans.spared.add(pid)

    def _daemon_lost(self) -> None:
        """The daemon has disconnected, or one that was started has exited: plan a restart, if it is wanted."""
        if self._requests.restarts_daemon and self._ending is None and self._channel.daemon is None:
            self._supervisor.lost()

    def _restart_daemon(self) -> None:
        """Start the daemon again if that is due: as for a door, unless another is being started."""
        if not self._supervisor.is_pending or self._daemons:
            return
        if self._ending is not None or not os.path.exists(self._socket_path):  # the home was removed
            self._supervisor.cancel()
        elif self._supervisor.take_due():
            try:
                self._launch_daemon()
            except OSError:
                self._supervisor.lost()

    def _answer_unavailable(self) -> None:
        """Answer HTTP clients if no daemon does for a while."""
        self._unavailable.tick()
        if self._channel.daemon is None and self._ending is None and self._hold_seconds() <= 0:
            self._unavailable.answer(self._requests.listeners, self._describe_absence())
        else:
            self._unavailable.stop()

    def _hold_seconds(self) -> float:
        """Seconds for which HTTP clients still wait for a daemon."""
        if self._supervisor.has_given_up:
            return 0.0
        return self._alone_since + HOLD_SECONDS - time.monotonic()

    def _describe_absence(self) -> str:
        if self._supervisor.has_given_up:
            return (
                f"Handrail's daemon ended unexpectedly {RESTARTS_MAX + 1} times and is not restarted any more. "
                "`handrail doctor` may show why; `handrail up` starts it."
            )
        if self._supervisor.is_pending or self._daemons:
            return "Handrail's daemon is being started. Try again in a few seconds."
        return "Handrail's daemon is not running. `handrail up` starts it."

    def _accept_daemon(self, connection: Connection, pid: int) -> None:
        """Make this connection the daemon, replacing the previous one, and send it the state of every terminal."""
        old, self._channel.daemon, self._daemon_pid = self._channel.daemon, connection, pid
        self._supervisor.cancel()
        if old is not None:
            old.send(Replaced())
            old.closing = True
            self._connections.watch(old)
            self._daemon_left(old)
        states = [terminal.state() for terminal in self._terminals.all() if not terminal.failed]
        connection.send(Welcome(PROTOCOL, os.getpid(), len(states)))
        for state in states:
            connection.send(state)

    def _on_signal(self, wake: int, _events: int) -> None:
        numbers = os.read(wake, 4096)
        if signal.SIGTERM in numbers or signal.SIGINT in numbers:
            self._end_all(2.0)
        with suppress(ChildProcessError):
            while (child := os.waitpid(-1, os.WNOHANG | os.WUNTRACED))[0] != 0:
                pid, status = child
                if os.WIFSTOPPED(status):
                    self._terminals.wake(pid)
                else:
                    self._terminals.reaped(pid)
                    if pid in self._daemons:
                        self._daemons.discard(pid)
                        self._daemon_lost()

    def _end_all(self, grace: float, request: int | None = None) -> None:
        self._requests.ending = True
        self._ending = [*(self._ending or ()), *(() if request is None else (request,))]
        for terminal in self._terminals.living():
            terminal.end(grace)

    def _is_over(self) -> bool:
        if self._terminals.living():
            self._busy_at = time.monotonic()
            return False
        if self._channel.daemon is not None:
            self._busy_at = time.monotonic()
        return self._ending is not None or time.monotonic() - self._busy_at >= self._idle_seconds

    def _wait_at_most(self) -> float | None:
        """Seconds until the next timer is due."""
        waits = [
            self._terminals.wait_at_most(),
            self._attachments.wait_at_most(),
            self._connections.wait_at_most(),
            self._unavailable.wait_at_most(),
            None if self._daemons else self._supervisor.wait_at_most(),
        ]
        if self._channel.daemon is None and (hold := self._hold_seconds()) > 0 and self._requests.listeners:
            waits.append(hold)
        if self._channel.daemon is None and not self._terminals.living():
            waits.append(self._busy_at + self._idle_seconds - time.monotonic())
        return min((max(0.0, wait) for wait in waits if wait is not None), default=None)

    def _send_last_replies(self) -> None:
        for request in self._ending or ():
            self._channel.send(Done(request))
        daemon, until = self._channel.daemon, time.monotonic() + LAST_REPLIES_SECONDS
        while daemon is not None and daemon.wants_to_send and time.monotonic() < until:
            select.select([], [daemon.sock], [], LAST_REPLIES_SECONDS)
            daemon.flush()


def _open_null() -> int:
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


class MessageHandler(Protocol):
    """Handles the messages of connections."""

    def greet(self, connection: Connection, hello: Hello) -> None: ...
    def answer(self, connection: Connection, request: Request) -> bool:
        """Handle a request; False if the connection has not been welcomed."""
        ...

    def left(self, connection: Connection) -> None: ...


class Connections:
    """Accepts connections, reads and decodes their messages, and closes them."""

    def __init__(self, listener: socket.socket, loop: Loop, host: MessageHandler) -> None:
        self._listener, self._loop, self._host = listener, loop, host
        self._spare = _open_null()
        self._silent: dict[Connection, float] = {}  # peers without a hello, by age: when they are dropped
        loop.watch(listener.fileno(), READ, self._on_listener)

    def drop_silent(self) -> None:
        """Close the connections of peers that have not sent a hello in time."""
        now = time.monotonic()
        for connection in [peer for peer, until in self._silent.items() if until <= now]:
            self._close(connection)

    def wait_at_most(self) -> float | None:
        """Seconds until the next silent peer is dropped."""
        oldest = next(iter(self._silent.values()), None)
        return None if oldest is None else oldest - time.monotonic()

    def watch(self, connection: Connection) -> None:
        """Update the events watched on a connection; close a closing connection once its queue is sent."""
        fd = connection.sock.fileno()
        if fd < 0:
            return
        if connection.closing and not connection.wants_to_send:
            self._close(connection)
            return
        reading = READ if connection.has_room and not connection.closing else 0
        writing = WRITE if connection.wants_to_send else 0
        self._loop.watch(fd, reading | writing, partial(self._on_peer, connection))

    def _on_listener(self, _events: int) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError as error:  # the peer has already disconnected, or no descriptor is free
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._reject()
        else:
            connection = Connection(sock)
            self._silent[connection] = time.monotonic() + HELLO_SECONDS
            self.watch(connection)

    def _reject(self) -> None:
        """Accept and close a connection with the spare descriptor; left pending, it would make the loop spin."""
        os.close(self._spare)
        with suppress(OSError):
            self._listener.accept()[0].close()
        self._spare = _open_null()

    def _on_peer(self, connection: Connection, events: int) -> None:
        if events & WRITE:
            connection.flush()
        if events & READ and not self._read_messages(connection):
            connection.closing = True
        self.watch(connection)

    def _read_messages(self, connection: Connection) -> bool:
        """Read and handle messages; False if the peer has disconnected or sent an invalid one."""
        try:
            lines = connection.receive()
            for line in lines or ():
                self._handle(connection, line)
        except (FrameError, LineTooLong) as error:
            connection.send(Refused(str(error)))
            return False
        return lines is not None

    def _handle(self, connection: Connection, line: bytes) -> None:
        if connection.closing:
            return
        message = to_keeper(line)
        self._silent.pop(connection, None)
        if isinstance(message, Hello):
            self._host.greet(connection, message)
        elif not self._host.answer(connection, message):
            connection.send(Refused("A connection begins with a hello that is welcomed."))
            connection.closing = True

    def _close(self, connection: Connection) -> None:
        self._silent.pop(connection, None)
        self._loop.watch(connection.sock.fileno(), 0, partial(self._on_peer, connection))
        connection.close()
        self._host.left(connection)
