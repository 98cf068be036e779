"""How an answer goes out on a connection: in pieces, slowly, half, or not at all; and the moment its listener leaves.

Owns the wire of one answer. Which turn it is and how that is worded, others know.
"""

import json
import select
import socket
import struct
import threading
from collections.abc import Iterator
from io import BufferedIOBase
from math import ceil
from time import monotonic
from typing import Any

from tests.model.dialect import Dialect
from tests.model.record import Asked
from tests.model.script import Trouble, Turn

SECONDS = 60.0
"""A silence ends after so long at the latest, so that no test leaves a thread behind."""


class Left(Exception):
    """Whoever listened has gone."""


class Outlet:
    """The server's side of one connection, with its bytes out."""

    def __init__(self, connection: socket.socket, out: BufferedIOBase) -> None:
        self._connection, self._out = connection, out

    def stream(self, asked: Asked, dialect: Dialect, turn: Turn, trouble: Trouble | None) -> None:
        """All of it, or half where it goes wrong; what becomes of it then is the caller's."""
        for piece in _part(dialect.stream(turn, asked.body["model"]), trouble):
            if asked.said:
                self.listened(turn.pace)
            self.chunk(piece)
            asked.said += 1

    def chunk(self, text: str) -> None:
        self._out.write(f"{len(text.encode()):x}\r\n{text}\r\n".encode())

    def end(self) -> None:
        self._out.write(b"0\r\n\r\n")

    def cut(self) -> None:
        """Closed with a reset, which no client takes for an end."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def listened(self, seconds: float) -> None:
        """So long, unless whoever listens leaves. Raises Left."""
        readable, _, _ = select.select([self._connection], [], [], seconds)
        if readable and not self._connection.recv(1, socket.MSG_PEEK):
            raise Left

    def hold(self, gone_on: threading.Event) -> None:
        until = monotonic() + SECONDS
        while not gone_on.is_set() and monotonic() < until:
            self.listened(0.005)

    def be_silent(self, silent: threading.Event) -> None:
        silent.set()
        try:
            self.listened(SECONDS)
        finally:
            silent.clear()


def _part(pieces: Iterator[str], trouble: Trouble | None) -> list[str]:
    every = list(pieces)
    return every if trouble is None else every[: max(1, len(every) // 2)]


def later(seconds: float) -> dict[str, str]:
    """As providers say it: in whole seconds, and to those who know that in milliseconds."""
    return {"Retry-After": str(ceil(seconds)), "Retry-After-Ms": str(round(seconds * 1000))}


def headed(values: dict[str, Any], more: dict[str, str]) -> tuple[dict[str, str], bytes]:
    """The head and the body of an answer in one piece."""
    body = json.dumps(values).encode()
    return {"Content-Type": "application/json", "Content-Length": str(len(body)), **more}, body
