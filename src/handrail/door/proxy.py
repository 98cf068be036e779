"""Proxy between a client's stdio and the daemon, which reconnects when the daemon is lost.

`Pump` is the poll loop, `Link` one connection to a daemon, `Retry` the backoff between connections. Lines pass unchanged;
`_in_flight` tracks the open requests. The caller provides the function that connects to a daemon.
"""

from __future__ import annotations

import json
import os
import select
import socket
import time

from handrail.door._in_flight import RequestsInFlight
from handrail.door.connect import DaemonNotRunning, HelloRefused
from handrail.door.jsonrpc_lines import Lines, Message, Outbox, Piece, key_of

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from handrail.door.client_process import ClientProcesses


CHUNK = 64 << 10
"""Bytes per read or write; bounds how far a buffer can exceed its limit."""

REPLAY_SECONDS = 10.0
"""Seconds for a new daemon to answer the replayed handshake; bounds the wait for a hung daemon."""

NOTE = b'{"handrail":'
"""Prefix of the daemon's lines that are addressed to the door and not forwarded."""


class Link:
    """A connection to a daemon, after the hello."""

    def __init__(self, sock: socket.socket, flights: RequestsInFlight) -> None:
        self.since = time.monotonic()
        self.said_bye = False
        """Whether the daemon announced that it exits on purpose."""
        self._sock = sock
        self._flights = flights
        self._lines = Lines()
        self._forwarding = True
        self._swallow: str | None = None
        self._ended = False

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self._sock.close()

    @property
    def tore_a_line(self) -> bool:
        """Whether the client has received only the beginning of a line."""
        return self._lines.inside_long and self._forwarding

    def receive(self) -> list[Piece] | None:
        """Read the pieces for the client; None if the daemon is gone."""
        try:
            data = self._sock.recv(CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            return None
        return self._sort(data) if data else None

    def send(self, outbox: Outbox) -> bool:
        """Send as much as the socket accepts; False if the daemon is gone."""
        try:
            count = self._sock.send(outbox.next(CHUNK))
        except BlockingIOError:
            return True
        except OSError:
            return False
        piece = outbox.wrote(count)
        if piece and piece.ends:
            self._flights.sent(piece)
        return True

    def end_input(self) -> None:
        """Shut down the sending side. Later calls do nothing."""
        if not self._ended:
            self._ended = True
            try:
                self._sock.shutdown(socket.SHUT_WR)
            except OSError:
                return  # the daemon is gone; the next read detects it

    def begin(self) -> list[Piece] | None:
        """Replay the client's handshake, and drop its answer, which the client already has.

        Returns the pieces for the client; None if the daemon is gone.
        """
        pieces = self._replay(self._flights.initialize) if self._flights.initialize else []
        self._sock.setblocking(False)
        return pieces

    def _replay(self, initialize: Piece) -> list[Piece] | None:
        self._swallow = self._flights.initialize_key
        deadline = time.monotonic() + REPLAY_SECONDS
        pieces: list[Piece] = []
        try:
            self._sock.settimeout(REPLAY_SECONDS)
            self._sock.sendall(initialize.data)
            while self._swallow:
                more = self.receive() if time.monotonic() < deadline else None
                if more is None:
                    return None
                pieces += more
            if self._flights.initialized:
                self._sock.sendall(self._flights.initialized.data)
        except OSError:
            return None
        return pieces

    def _sort(self, data: bytes) -> list[Piece]:
        forwarded: list[Piece] = []
        for piece in self._lines.feed(data):
            if piece.starts:
                self._forwarding = not self._is_for_door(piece)
            if self._forwarding:
                forwarded.append(piece)
        return forwarded

    def _is_for_door(self, piece: Piece) -> bool:
        if piece.data.startswith(NOTE):
            if piece.ends:
                self._note(piece.data)
            return True
        if self._swallow and any(each.is_answer and each.key == self._swallow for each in piece.messages):
            self._swallow = None
            return True
        return False

    def _note(self, line: bytes) -> None:
        try:
            note = json.loads(line)["handrail"]
            self.said_bye = self.said_bye or "bye" in note
            opened = note.get("opened")
            if opened:
                self._flights.opened(key_of(opened["request"]) or "", str(opened["call"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return  # a newer daemon may send notes that this door does not know


DRAIN_SECONDS = 5.0
"""Seconds for the daemon's remaining answers after the client has closed its input; bounds the exit of the door."""

TORN = "Handrail's daemon went away while this request was on its way, and it is too long to be kept."
CROWDED = "Too many requests wait for an answer at this door."


class Pump:
    """The proxy loop of one client and its successive daemons."""

    def __init__(
        self,
        reach: Callable[[Callable[[], bool]], socket.socket],
        stdin: int = 0,
        stdout: int = 1,
        client: ClientProcesses | None = None,
    ) -> None:
        """`reach` returns a connection after the hello. Its argument is a function that is True once it should give up.

        `client` reports that the client is gone though its end of stdin is open.
        """
        self._reach_daemon = reach
        self._client = client
        self._stdin = stdin
        self._stdout = stdout
        self._client_takes = select.poll()
        self._client_takes.register(stdout, select.POLLOUT)
        self._link: Link | None = None
        self._flights = RequestsInFlight()
        self._retry = Retry()
        self._from_client = Lines()
        self._to_daemon = Outbox()
        self._to_client = Outbox()
        self._input_ended = False
        self._client_gone = False
        self._deadline = 0.0

    def run(self) -> None:
        """Run until the client is gone, or has closed its input and got its answers."""
        while not self._is_over():
            # Write answers first: connecting to a daemon may take long.
            if not self._link and not self._to_client and self._retry.is_due(bool(self._to_daemon.requests)):
                self._reach()
            else:
                self._turn()

    def _is_over(self) -> bool:
        if self._client_gone or not self._input_ended:
            return self._client_gone
        if not self._link and not self._to_client:
            return not self._to_daemon.requests
        waits = self._to_client or self._to_daemon or len(self._flights)
        return not waits or time.monotonic() > self._deadline

    # One iteration of the loop: wait until a descriptor is ready, then read and write.

    def _turn(self) -> None:
        ready = self._wait()
        if ready.get(self._stdout, 0) & (select.POLLERR | select.POLLHUP | select.POLLNVAL):
            self._client_gone = True
        elif self._stdout in ready:
            self._write_client()
        self._client_gone = self._client_gone or self._has_client_exited(ready)
        if self._stdin in ready:
            self._read_client()
        if self._link:
            self._move_daemon(self._link, ready.get(self._link.fileno(), 0))

    def _wait(self) -> dict[int, int]:
        poll = select.poll()
        poll.register(self._stdout, select.POLLOUT if self._to_client else 0)
        if not self._input_ended and not self._to_daemon.full:
            poll.register(self._stdin, select.POLLIN)
        if self._link:
            wants = 0 if self._to_client.full else select.POLLIN
            wants |= select.POLLOUT if self._to_daemon else 0
            if wants:  # poll always reports a hang-up: without events to handle, the loop would spin
                poll.register(self._link, wants)
        for descriptor in self._client.descriptors if self._client and not self._input_ended else ():
            poll.register(descriptor, select.POLLIN)
        return dict(poll.poll(self._timeout()))

    def _has_client_exited(self, ready: dict[int, int]) -> bool:
        """Whether the client is gone. One that has closed its input waits for its last answers at most."""
        client = None if self._input_ended else self._client
        return client is not None and any(each in ready for each in client.descriptors) and client.is_gone()

    def _timeout(self) -> float | None:
        """Milliseconds until the next timer is due."""
        due = [self._deadline] if self._input_ended else []
        if not self._link and not self._to_client and self._retry.at is not None:
            due.append(self._retry.at)
        return max(0.0, min(due) - time.monotonic()) * 1000 + 1 if due else None

    # The client's side

    def _read_client(self) -> None:
        try:
            data = os.read(self._stdin, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        for piece in self._from_client.feed(data) if data else self._from_client.rest():
            self._take_from_client(piece)
        if self._link and self._to_daemon:
            self._write_daemon(self._link)  # now, not in the next iteration: saves latency
        if not data:
            self._input_ended = True
            self._extend()
            self._end_input()

    def _take_from_client(self, piece: Piece) -> None:
        whole = piece.starts and piece.ends
        if whole and self._flights.awaits_answers and self._is_stale(piece):
            return
        if whole and self._flights.full and piece.requests:
            self._answer_unsent([piece], CROWDED)
        elif not self._to_daemon.put(piece):
            self._answer_unsent([piece], TORN)

    def _is_stale(self, piece: Piece) -> bool:
        stale = [self._flights.is_stale(each) for each in piece.messages]
        return bool(stale) and all(stale)

    def _answer_unsent(self, pieces: Iterable[Piece], why: str) -> None:
        for piece in pieces:
            unknown = [] if piece.messages or not piece.ends else [Message(None, None, False, None)]
            for each in piece.requests or unknown:
                self._send_to_client(self._flights.unsent(each, why))

    def _send_to_client(self, line: bytes) -> None:
        self._to_client.put(Piece(line, []))

    def _write_client(self) -> None:
        if not self._to_client:
            return
        try:
            # poll guarantees room for PIPE_BUF bytes. A longer write may block, and stdio is shared, so O_NONBLOCK is not set.
            count = os.write(self._stdout, self._to_client.next(select.PIPE_BUF))
        except BlockingIOError:
            return
        except OSError:
            self._client_gone = True
            return
        self._to_client.wrote(count)

    # The daemon's side

    def _move_daemon(self, link: Link, events: int) -> None:
        if events & ~select.POLLOUT and not self._to_client.full:
            self._take_from_daemon(link)
        if self._link and self._to_daemon and events & select.POLLOUT:
            self._write_daemon(link)

    def _take_from_daemon(self, link: Link) -> bool:
        """Forward what the daemon has sent; False if there was nothing."""
        pieces = link.receive()
        self._pass_on(pieces or [])
        if pieces is None:
            self._lose(link)
        return bool(pieces)

    def _pass_on(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            self._to_client.put(piece)
        if self._to_client and self._client_takes.poll(0):
            self._write_client()  # now, to save latency
        for piece in pieces:
            self._flights.heard(piece)

    def _write_daemon(self, link: Link) -> None:
        if link.send(self._to_daemon):
            self._extend()
            self._end_input()
            return
        while self._take_from_daemon(link):
            pass  # forward the answers it sent before it was lost
        if self._link:
            self._lose(link)

    def _end_input(self) -> None:
        if self._link and self._input_ended and not self._to_daemon:
            self._link.end_input()

    def _extend(self) -> None:
        self._deadline = time.monotonic() + DRAIN_SECONDS

    # A daemon lost, and the next one reached

    def _lose(self, link: Link) -> None:
        link.close()
        self._link = None
        if link.tore_a_line:
            self._send_to_client(b"\n")  # end the torn line, so that the next line is parsed separately
        lines, resend = self._flights.lost()
        for line in lines:
            self._send_to_client(line)
        self._answer_unsent(self._to_daemon.start_over(), TORN)
        if resend:
            self._to_daemon.put_first(resend)
        self._retry.lost(link.since, link.said_bye)

    def _reach(self) -> None:
        self._retry.looked()
        why = self._retry.recent_failure or self._try_to_reach()
        self._extend()
        if why:
            for piece in self._to_daemon.empty():
                self._flights.remember(piece)
                self._answer_unsent([piece], why)
        self._end_input()

    def _try_to_reach(self) -> str:
        """Connect to a daemon; return the reason for a failure, or an empty string."""
        try:
            link = self._link = Link(self._reach_daemon(self._is_abandoned), self._flights)
        except (DaemonNotRunning, HelloRefused) as error:
            self._retry.failed(str(error))
            return str(error)
        pieces = link.begin()
        self._pass_on(pieces or [])
        if pieces is None:
            self._lose(link)
        return ""

    def _is_abandoned(self) -> bool:
        """Whether the client has closed its input and no request is queued, so that no daemon is needed."""
        poll = select.poll()
        poll.register(self._stdin, select.POLLIN)
        events = dict(poll.poll(0)).get(self._stdin, 0)
        if self._client is not None and self._client.is_gone():
            return True
        return events & (select.POLLHUP | select.POLLIN) == select.POLLHUP and not self._to_daemon.requests


STEADY_SECONDS = 10.0
"""Seconds after which a connection counts as stable: the next reconnect has no delay."""

DELAY_MAX = 5.0
"""Seconds; maximum backoff between reconnects when daemons keep dying."""

FAILURE_SECONDS = 5.0
"""Seconds for which a failed start is not repeated; bounds the load that a busy client can cause."""


class Retry:
    """Reconnect backoff of one door; the first attempt is immediate."""

    def __init__(self) -> None:
        self.at: float | None = 0.0
        """When to reconnect without a request from the client; None: only on a request."""
        self._delay = 0.0
        self._failed_at = 0.0
        self._why = ""

    def is_due(self, has_requests: bool) -> bool:
        return has_requests if self.at is None else time.monotonic() >= self.at

    def lost(self, since: float, said_bye: bool) -> None:
        """Plan the reconnect: with backoff after a crash, only on the client's next request after a regular stop."""
        now = time.monotonic()
        self._delay = 0.0 if now - since > STEADY_SECONDS else min(DELAY_MAX, self._delay * 2 or 0.05)
        self.at = None if said_bye else now + self._delay

    def looked(self) -> None:
        self.at = None

    def failed(self, why: str) -> None:
        self._failed_at = time.monotonic()
        self._why = why

    @property
    def recent_failure(self) -> str:
        """The reason of a failure within the last FAILURE_SECONDS, or an empty string."""
        return self._why if time.monotonic() < self._failed_at + FAILURE_SECONDS else ""
