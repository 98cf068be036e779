"""One connection to one daemon: what comes over it is sorted into the client's and the door's.

Owns the socket, the notes meant for the door and the handshake said again. Does not know the client's side,
nor what follows when this daemon is gone: the pump decides.
"""

from __future__ import annotations

import json
import socket
import time

from handrail.door.jsonrpc_lines import Lines, Outbox, Piece, key_of

TYPE_CHECKING = False

if TYPE_CHECKING:
    from handrail.door.in_flight import Flights


CHUNK = 64 << 10
"""Bytes received or sent at once; bounds how far a side is read past its limit."""

REPLAY_SECONDS = 10.0
"""Bounds the wait for a new daemon to answer the handshake that is said again."""

NOTE = b'{"handrail":'
"""How a line of the daemon begins that is for the door alone."""


class Link:
    """A daemon that has greeted us."""

    def __init__(self, sock: socket.socket, flights: Flights) -> None:
        self.since = time.monotonic()
        self.said_bye = False
        """It told us that it ends on purpose."""
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
        """The client has the beginning of a line whose end has not come."""
        return self._lines.inside_long and self._forwarding

    def receive(self) -> list[Piece] | None:
        """What there is for the client now; None once the daemon is gone."""
        try:
            data = self._sock.recv(CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            return None
        return self._sort(data) if data else None

    def send(self, outbox: Outbox) -> bool:
        """Hand over what fits; False once the daemon is gone."""
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
        """Tell the daemon, once, that nothing more will be sent."""
        if not self._ended:
            self._ended = True
            try:
                self._sock.shutdown(socket.SHUT_WR)
            except OSError:
                return  # it is gone already, which the next read will tell

    def begin(self) -> list[Piece] | None:
        """Say the client's handshake again, without the answer, which the client has had; None as `receive`."""
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
            return  # a newer daemon may tell what this door does not know
