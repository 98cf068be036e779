"""One peer on the keeper's socket: whole messages in, messages and descriptors out, never blocking.

Owns both buffers. Does not know what a message means.

Whoever is the daemon at the moment, and what it is told.

When to tell someone how far a terminal's output has come: at once, then no more than every so often.
"""

from __future__ import annotations

import array
import contextlib
import os
import socket
import time
from collections import deque
from typing import TYPE_CHECKING

from handrail.framing import LineBuffer
from handrail.keeper.message_framing import FRAME_MAX, encode

if TYPE_CHECKING:
    from handrail.keeper.protocol import Attached, Overheard, Resized


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


HEARD_MAX = 256 * 1024
"""Bytes typed in windows that wait for a daemon; what is older is lost to the history."""
HEARD_COST = 256
"""What one entry counts for beside its bytes, so that a thousand single keys are bounded too."""


class Audience:
    """The daemon's seat; what is told to an empty one is dropped, since the next daemon gets every fact anew.

    What was typed in windows is no such fact: it waits for the next one.
    """

    def __init__(self) -> None:
        self.daemon: Connection | None = None
        self._latest: dict[tuple[str, str], Attached | Resized] = {}
        self._heard: deque[Overheard] = deque()
        self._heard_size = 0

    @property
    def has_room(self) -> bool:
        """Whether a notice that may as well come later would go out now, instead of waiting in memory."""
        return self.daemon is None or not self.daemon.wants_to_send

    def tell(self, message: object, descriptors: tuple[int, ...] = ()) -> None:
        if self.daemon is None:
            close_all(descriptors)
        else:
            self.daemon.send(message, descriptors)

    def tell_latest(self, notice: Attached | Resized) -> None:
        """Of a daemon that reads slowly, only the latest of a kind waits for each terminal."""
        self._latest[type(notice).__name__, notice.terminal] = notice
        self.catch_up()

    def overhear(self, heard: Overheard) -> None:
        self._heard.append(heard)
        self._heard_size += HEARD_COST + len(heard.data)
        while self._heard_size > HEARD_MAX:
            self._next_heard()
        self.catch_up()

    def catch_up(self) -> None:
        """Tell what waits, as far as the daemon reads."""
        if self.daemon is None:
            self._latest.clear()
            return
        while self._latest and self.has_room:
            self.daemon.send(self._latest.pop(next(iter(self._latest))))
        while self._heard and self.has_room:
            self.daemon.send(self._next_heard())

    def _next_heard(self) -> Overheard:
        heard = self._heard.popleft()
        self._heard_size -= HEARD_COST + len(heard.data)
        return heard


APART = 0.02
"""Seconds between two notices for one terminal: a storm must not become a storm of messages."""


class Growth:
    """Terminals whose growth has not been told yet."""

    def __init__(self, apart: float = APART) -> None:
        self._apart = apart
        self._due: dict[str, float] = {}
        self._told: dict[str, float] = {}

    def grew(self, terminal: str) -> None:
        if terminal not in self._due:
            self._due[terminal] = self._told.get(terminal, 0.0) + self._apart

    def take_due(self) -> list[str]:
        """The terminals to tell of now."""
        now = time.monotonic()
        due = [terminal for terminal, at in self._due.items() if at <= now]
        for terminal in due:
            del self._due[terminal]
            self._told[terminal] = now
        return due

    def wait_at_most(self) -> float | None:
        return max(0.0, min(self._due.values()) - time.monotonic()) if self._due else None

    def forget(self, terminal: str) -> None:
        self._due.pop(terminal, None)
        self._told.pop(terminal, None)
