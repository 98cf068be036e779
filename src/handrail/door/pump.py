"""Bytes between a client's stdio and whichever daemon there is, for as long as the client lives.

Owns the loop, its bounds, and what happens when either side goes away. Does not know how a daemon is found or
started: it is given a way to reach one. Lines pass as they are; what it must know of them, `flights` remembers.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import time

from handrail.door.find import DaemonNotRunning
from handrail.door.flights import Flights
from handrail.door.hello import HelloRefused
from handrail.door.lines import Lines, Outbox, Piece
from handrail.door.message import Message, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 64 << 10
"""Bytes read or sent at once; bounds how far a side is read past its limit."""

DRAIN_SECONDS = 5.0
"""After the client has ended its input: bounds the wait for what the daemon still has to say."""

REPLAY_SECONDS = 10.0
"""Bounds the wait for a new daemon to answer the handshake that is said again."""

REMEMBER_FAILURE_SECONDS = 5.0
"""For so long a failed start is not tried again; bounds what a busy client makes a broken machine do."""

STEADY_SECONDS = 10.0
"""A connection that lived so long was sound: after it, reconnecting begins without delay."""

DELAY_MAX = 5.0
"""Seconds; bounds the wait between two attempts when daemons keep dying."""

NOTE = b'{"handrail":'
"""How a line of the daemon begins that is for the door alone."""

TORN = "Handrail's daemon went away while this request was on its way, and it is too long to be kept."
CROWDED = "Too many requests wait for an answer at this door."


class Pump:
    """One client, and one daemon after the other."""

    def __init__(
        self, reach: Callable[[Callable[[], bool]], socket.socket], stdin: int = 0, stdout: int = 1
    ) -> None:
        self._reach_daemon = reach
        self._stdin = stdin
        self._stdout = stdout
        self._daemon: socket.socket | None = None
        self._flights = Flights()
        self._from_client, self._to_daemon = Lines(), Outbox()
        self._from_daemon, self._to_client = Lines(), Outbox()
        self._forwarding = True
        self._swallow: str | None = None
        self._said_bye = False
        self._retry_at: float | None = 0.0
        self._since = 0.0
        self._delay = 0.0
        self._failure = (-REMEMBER_FAILURE_SECONDS, "")
        self._input_ended = False
        self._half_closed = False
        self._client_gone = False
        self._deadline = 0.0

    def run(self) -> None:
        """Pump until the client is gone, or has ended its input and got what it waited for."""
        while not self._is_over():
            if self._daemon is None and self._is_time_to_reach():
                self._reach()
            else:
                self._turn()

    def _is_over(self) -> bool:
        if self._client_gone or not self._input_ended:
            return self._client_gone
        if self._daemon is None and not self._to_client:
            return not self._to_daemon.requests
        waits = self._to_client or self._to_daemon or len(self._flights)
        return not waits or time.monotonic() > self._deadline

    # One turn: wait until some bytes can move, and move them.

    def _turn(self) -> None:
        ready = self._wait()
        if ready.get(self._stdout, 0) & (select.POLLERR | select.POLLNVAL):
            self._client_gone = True
        elif self._stdout in ready:
            self._write_client()
        if self._stdin in ready:
            self._read_client()
        if self._daemon:
            self._move_daemon(ready.get(self._daemon.fileno(), 0))

    def _wait(self) -> dict[int, int]:
        poll = select.poll()
        poll.register(self._stdout, select.POLLOUT if self._to_client else 0)
        if not self._input_ended and not self._to_daemon.full:
            poll.register(self._stdin, select.POLLIN)
        if self._daemon:
            wants = 0 if self._to_client.full else select.POLLIN
            wants |= select.POLLOUT if self._to_daemon else 0
            if wants:  # a hung-up descriptor that nobody wants would wake us for ever
                poll.register(self._daemon, wants)
        return dict(poll.poll(self._timeout()))

    def _timeout(self) -> float | None:
        """Milliseconds until something is due by itself."""
        due = [self._deadline] if self._input_ended else []
        if self._daemon is None and self._retry_at is not None and not self._to_client:
            due.append(self._retry_at)
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
        if not data:
            self._input_ended = True
            self._deadline = time.monotonic() + DRAIN_SECONDS
            self._half_close()

    def _take_from_client(self, piece: Piece) -> None:
        whole = piece.starts and piece.ends
        if whole and piece.messages and all(self._flights.is_stale(each) for each in piece.messages):
            return
        if self._flights.full and whole and piece.requests:
            self._answer_unsent(piece, CROWDED)
        elif not self._to_daemon.put(piece):
            self._answer_unsent(piece, TORN)

    def _answer_unsent(self, piece: Piece, why: str) -> None:
        unknown = [] if piece.messages or not piece.ends else [Message(None, None, False, None)]
        for each in piece.requests or unknown:
            self._say(self._flights.unsent(each, why))

    def _say(self, line: bytes) -> None:
        self._to_client.put(Piece(line, []))

    def _write_client(self) -> None:
        if not self._to_client:
            return
        try:
            # What poll promises room for; a longer write may block, and flags of stdio are not ours to set.
            count = os.write(self._stdout, self._to_client.next(select.PIPE_BUF))
        except BlockingIOError:
            return
        except OSError:
            self._client_gone = True
            return
        self._to_client.wrote(count)

    # The daemon's side

    def _move_daemon(self, events: int) -> None:
        if events & ~select.POLLOUT and not self._to_client.full:
            self._read_daemon()
        if self._daemon and self._to_daemon and events & select.POLLOUT:
            self._write_daemon(self._daemon)

    def _read_daemon(self) -> bool:
        """False when there is nothing to read now, or nobody to read from."""
        if self._daemon is None:
            return False
        try:
            data = self._daemon.recv(CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self._take_from_daemon(data)
        else:
            self._lose()
        return bool(data)

    def _take_from_daemon(self, data: bytes) -> None:
        for piece in self._from_daemon.feed(data):
            if piece.starts:
                self._forwarding = not self._is_for_door(piece)
            if not self._forwarding:
                continue
            self._to_client.put(piece)
            for each in piece.messages if piece.ends else ():
                self._flights.heard(each)

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
            self._said_bye = self._said_bye or "bye" in note
            opened = note.get("opened")
            if opened:
                self._flights.opened(key_of(opened["request"]) or "", str(opened["call"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return  # a newer daemon may tell what this door does not know

    def _write_daemon(self, daemon: socket.socket) -> None:
        try:
            count = daemon.send(self._to_daemon.next(CHUNK))
        except BlockingIOError:
            return
        except OSError:
            # What it answered before it went is still to be read, and counts.
            while self._read_daemon():
                pass
            self._lose()
            return
        self._deadline = time.monotonic() + DRAIN_SECONDS
        piece = self._to_daemon.wrote(count)
        if piece and piece.ends:
            self._flights.sent(piece)
        self._half_close()

    def _half_close(self) -> None:
        if self._daemon and self._input_ended and not self._to_daemon and not self._half_closed:
            self._half_closed = True
            with contextlib.suppress(OSError):
                self._daemon.shutdown(socket.SHUT_WR)

    # A daemon lost, and the next one reached

    def _lose(self) -> None:
        if self._daemon is None:
            return
        self._daemon.close()
        self._daemon = None
        if self._from_daemon.inside_long and self._forwarding:
            self._say(b"\n")  # the client must not take the next line for the rest of this one
        self._from_daemon = Lines()
        self._swallow = None
        words, again = self._flights.lost()
        for line in words:
            self._say(line)
        for piece in self._to_daemon.start_over():
            self._answer_unsent(piece, TORN)
        if again:
            self._to_daemon.put_first(again)
        self._plan_retry()

    def _plan_retry(self) -> None:
        now = time.monotonic()
        steady = now - self._since > STEADY_SECONDS
        self._delay = 0.0 if steady else min(DELAY_MAX, self._delay * 2 or 0.05)
        # A daemon that was told to stop says so: only a client's next request brings one back then.
        self._retry_at = None if self._said_bye else now + self._delay

    def _is_time_to_reach(self) -> bool:
        if self._to_client:  # answers first: reaching may take its time
            return False
        if self._retry_at is not None:
            return time.monotonic() >= self._retry_at
        return bool(self._to_daemon.requests)

    def _reach(self) -> None:
        failed_at, why = self._failure
        self._retry_at = None
        if time.monotonic() < failed_at + REMEMBER_FAILURE_SECONDS:
            self._refuse(why)
            return
        try:
            self._daemon = self._reach_daemon(self._is_abandoned)
        except (DaemonNotRunning, HelloRefused) as error:
            self._failure = (time.monotonic(), str(error))
            self._refuse(str(error))
            return
        self._since = time.monotonic()
        self._deadline = self._since + DRAIN_SECONDS
        self._said_bye = self._half_closed = False
        self._replay(self._daemon)
        if self._daemon:
            self._daemon.setblocking(False)
            self._half_close()

    def _refuse(self, why: str) -> None:
        self._deadline = time.monotonic() + DRAIN_SECONDS
        for piece in self._to_daemon.empty():
            self._flights.remember(piece)
            self._answer_unsent(piece, why)

    def _is_abandoned(self) -> bool:
        poll = select.poll()
        poll.register(self._stdin, select.POLLIN)
        events = dict(poll.poll(0)).get(self._stdin, 0)
        return events & (select.POLLHUP | select.POLLIN) == select.POLLHUP and not self._to_daemon.requests

    def _replay(self, daemon: socket.socket) -> None:
        """Say the client's handshake again and keep the answer from it, which it has had already."""
        if self._flights.initialize is None:
            return
        self._swallow = self._flights.initialize_key
        deadline = time.monotonic() + REPLAY_SECONDS
        try:
            daemon.settimeout(REPLAY_SECONDS)
            daemon.sendall(self._flights.initialize.data)
            while self._swallow and time.monotonic() < deadline and not self._to_client.full:
                self._take_from_daemon(daemon.recv(CHUNK) or _hung_up())
            if self._swallow is None and self._flights.initialized:
                daemon.sendall(self._flights.initialized.data)
        except OSError:
            self._lose()
        if self._swallow:
            self._lose()


def _hung_up() -> bytes:
    raise ConnectionResetError
