"""One peer on the keeper's socket: whole messages in, messages and descriptors out, never blocking.

Owns both buffers. Does not know what a message means.
"""

from __future__ import annotations

import array
import contextlib
import os
import socket
from collections import deque

from handrail.framing import LineBuffer
from handrail.keeper.frames import FRAME_MAX, encode

BACKLOG_MAX = 256 * 1024
"""Unsent bytes above which a peer is not listened to: it must read our answers first."""


class Connection:
    """A peer that may read slowly, or never."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.closing = False
        self._lines = LineBuffer(FRAME_MAX)
        self._out: deque[tuple[memoryview, tuple[int, ...]]] = deque()
        self._unsent = 0

    @property
    def wants_to_send(self) -> bool:
        return bool(self._out)

    @property
    def has_room(self) -> bool:
        return self._unsent < BACKLOG_MAX

    def receive(self) -> list[bytes] | None:
        """The whole lines that have come; None when the peer is gone. Raises LineTooLong."""
        try:
            data = self.sock.recv(262144)
        except BlockingIOError:
            return []
        except OSError:
            return None
        return self._lines.feed(data) if data else None

    def send(self, message: object, descriptors: tuple[int, ...] = ()) -> None:
        """Queue a message; the descriptors are ours to close from now on."""
        line = memoryview(encode(message))
        self._out.append((line, descriptors))
        self._unsent += len(line)
        self.flush()

    def flush(self) -> None:
        """Send what the peer takes now. A peer that is gone shows when we next receive."""
        try:
            while self._out:
                line, descriptors = self._out[0]
                sent = self._send(line, descriptors)
                self._unsent -= sent
                self._out.popleft()
                if sent < len(line):
                    self._out.appendleft((line[sent:], ()))
        except BlockingIOError:
            pass
        except OSError:
            self._drop()

    def close(self) -> None:
        self._drop()
        self.sock.close()

    def _send(self, line: memoryview, descriptors: tuple[int, ...]) -> int:
        if not descriptors:
            return self.sock.send(line)
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
        sent = self.sock.sendmsg([line], [rights])
        close_all(descriptors)
        return sent

    def _drop(self) -> None:
        for _, descriptors in self._out:
            close_all(descriptors)
        self._out.clear()
        self._unsent = 0


def close_all(descriptors: tuple[int, ...]) -> None:
    for fd in descriptors:
        with contextlib.suppress(OSError):
            os.close(fd)
