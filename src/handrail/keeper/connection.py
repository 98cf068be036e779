"""Non-blocking connections on the keeper's socket, and the queues of notices for the daemon.

`Connection` buffers one peer's messages in both directions, `DaemonChannel` queues notices for the connected daemon, and
`GrowthThrottle` throttles growth notices. None of them interprets a message.
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
    from collections.abc import Generator

    from handrail.keeper.protocol import Attached, Overheard, Resized


BACKLOG_MAX = 256 * 1024
"""Unsent bytes above which the keeper stops reading from a peer: a peer that reads no replies must not fill memory."""


class Connection:
    """One peer, which may read slowly or never: lines in, messages and file descriptors out."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.closing = False
        self._lines = LineBuffer(FRAME_MAX)
        self._out: deque[tuple[memoryview, tuple[int, ...]]] = deque()
        self._unsent = 0
        self._batch: bytearray | None = None

    @property
    def wants_to_send(self) -> bool:
        return bool(self._out)

    @property
    def has_room(self) -> bool:
        return self._unsent < BACKLOG_MAX

    def receive(self) -> list[bytes] | None:
        """Return the complete lines received; None if the peer has disconnected. Raises LineTooLong."""
        try:
            data = self.sock.recv(262144)
        except BlockingIOError:
            return []
        except OSError:
            return None
        return self._lines.feed(data) if data else None

    def send(self, message: object, descriptors: tuple[int, ...] = ()) -> None:
        """Queue a message. Takes ownership of the descriptors and closes them."""
        line = encode(message)
        if self._batch is not None and not descriptors:
            self._batch += line
        else:
            self._send_batch()
            self._queue(line, descriptors)

    @contextlib.contextmanager
    def batch(self) -> Generator[None]:
        """Send the messages of this block together, so that they wake the peer once."""
        self._batch = bytearray()
        try:
            yield
        finally:
            self._send_batch()
            self._batch = None

    def _send_batch(self) -> None:
        if self._batch:
            line, self._batch = bytes(self._batch), bytearray()
            self._queue(line, ())

    def _queue(self, line: bytes, descriptors: tuple[int, ...]) -> None:
        self._out.append((memoryview(line), descriptors))
        self._unsent += len(line)
        self.flush()

    def flush(self) -> None:
        """Send as much as the socket accepts. If the peer is gone, drop the rest; the next `receive` returns None."""
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
        close_descriptors(descriptors)
        return sent

    def _drop(self) -> None:
        for _, descriptors in self._out:
            close_descriptors(descriptors)
        self._out.clear()
        self._unsent = 0


def close_descriptors(descriptors: tuple[int, ...]) -> None:
    for fd in descriptors:
        with contextlib.suppress(OSError):
            os.close(fd)


WINDOW_INPUT_MAX = 256 * 1024
"""Bytes of window input queued for the next daemon. Beyond that the oldest input is dropped and missing in the history."""
WINDOW_INPUT_COST = 256
"""Bytes counted for each entry beside its data, which bounds the memory of a queue of single keys."""


class DaemonChannel:
    """The connected daemon, and the notices queued for it.

    Without a daemon, messages are dropped: the next daemon gets the full state of every terminal. Input typed in windows
    is not part of that state, so it is queued for the next daemon.
    """

    def __init__(self) -> None:
        self.daemon: Connection | None = None
        self._latest: dict[tuple[str, str], Attached | Resized] = {}
        self._inputs: deque[Overheard] = deque()
        self._input_size = 0

    @property
    def has_room(self) -> bool:
        """Whether a notice that may be delayed would be sent now instead of being queued in memory."""
        return self.daemon is None or not self.daemon.wants_to_send

    def send(self, message: object, descriptors: tuple[int, ...] = ()) -> None:
        if self.daemon is None:
            close_descriptors(descriptors)
        else:
            self.daemon.send(message, descriptors)

    def batch(self) -> contextlib.AbstractContextManager[None]:
        """Send the messages of a block together."""
        return contextlib.nullcontext() if self.daemon is None else self.daemon.batch()

    def send_latest(self, notice: Attached | Resized) -> None:
        """Queue a notice, replacing a queued one of the same kind and terminal: a slow daemon gets the latest only."""
        self._latest[type(notice).__name__, notice.terminal] = notice
        self.catch_up()

    def queue_input(self, typed: Overheard) -> None:
        self._inputs.append(typed)
        self._input_size += WINDOW_INPUT_COST + len(typed.data)
        while self._input_size > WINDOW_INPUT_MAX:
            self._pop_input()
        self.catch_up()

    def catch_up(self) -> None:
        """Send the queued notices until the socket is full."""
        if self.daemon is None:
            self._latest.clear()
            return
        while self._latest and self.has_room:
            self.daemon.send(self._latest.pop(next(iter(self._latest))))
        while self._inputs and self.has_room:
            self.daemon.send(self._pop_input())

    def _pop_input(self) -> Overheard:
        typed = self._inputs.popleft()
        self._input_size -= WINDOW_INPUT_COST + len(typed.data)
        return typed


GROWTH_INTERVAL = 0.02
"""Seconds between two growth notices for one terminal: an output storm must not cause a message storm."""


class GrowthThrottle:
    """Throttle of growth notices: the first is due immediately, the next ones at most every `apart` seconds."""

    def __init__(self, apart: float = GROWTH_INTERVAL) -> None:
        self._apart = apart
        self._due: dict[str, float] = {}
        self._notified: dict[str, float] = {}

    def grew(self, terminal: str) -> None:
        if terminal not in self._due:
            self._due[terminal] = self.due_at(terminal)

    def due_at(self, terminal: str) -> float:
        """The time before which output of this terminal causes no notice."""
        return self._notified.get(terminal, 0.0) + self._apart

    def take_due(self) -> list[str]:
        """Remove and return the terminals whose notice is due now."""
        now = time.monotonic()
        due = [terminal for terminal, at in self._due.items() if at <= now]
        for terminal in due:
            del self._due[terminal]
            self._notified[terminal] = now
        return due

    def wait_at_most(self) -> float | None:
        return max(0.0, min(self._due.values()) - time.monotonic()) if self._due else None

    def forget(self, terminal: str) -> None:
        self._due.pop(terminal, None)
        self._notified.pop(terminal, None)
