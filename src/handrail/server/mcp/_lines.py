"""Newline-delimited framing over a unix socket, with a bounded send buffer.

A line over the limit is skipped without being buffered. A line that has been started is always completed, even if the
writer is cancelled. Reads and writes go to the raw socket: each extra turn of the event loop adds latency.
"""

import array
import fcntl
import select
import socket
import sys
import termios

import anyio
from anyio.abc import SocketAttribute, SocketStream

from handrail.store.bell import Bell

LINE_BYTES = 32 * 1024 * 1024
"""Longest line accepted. Bounds memory; far above any file the tools write."""
CHUNK = 64 * 1024
UNSENT_BYTES = 1 << 18
"""Send buffer for a peer that does not read. `write` waits above this; a single line may exceed it."""


class Lines:
    """Reads and writes whole lines on one connection."""

    def __init__(self, stream: SocketStream) -> None:
        self._socket: socket.socket = stream.extra(SocketAttribute.raw_socket)
        self._hang_ups = select.poll()
        self._hang_ups.register(self._socket, 0)
        self._buffer = bytearray()
        self._scanned = 0
        self._unsent = bytearray()
        self._blocked = anyio.Event()
        self._room = Bell()

    async def read(self, most: int = LINE_BYTES) -> bytes | None:
        """The next line; None when it was longer than `most`. Raises EndOfStream."""
        while (end := self._buffer.find(b"\n", self._scanned)) < 0:
            self._scanned = len(self._buffer)
            if self._scanned > most:
                await self._skip_line()
                return None
            self._buffer += await self._receive()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._scanned = 0
        return line if len(line) <= most else None

    @property
    def has_buffered(self) -> bool:
        """Whether the peer has sent more than the lines that were read."""
        return bool(self._buffer)

    @property
    def is_full(self) -> bool:
        """Whether the send buffer is full, so that writers should wait."""
        return len(self._unsent) > UNSENT_BYTES

    @property
    def unread_bytes(self) -> int:
        """What the peer has not read yet: the send buffer and, on Linux, what the kernel holds for the peer."""
        return len(self._unsent) + _kernel_bytes(self._socket)

    async def write(self, line: bytes) -> None:
        """Send a line once the buffer has room. Raises BrokenResourceError."""
        while self.is_full:
            await self._room.wait()
        self.put(line)

    async def wait_room(self) -> None:
        """Wait until the send buffer has room."""
        while self.is_full:
            await self._room.wait()

    async def wait_sent(self) -> None:
        """Wait until the send buffer is empty."""
        while self._unsent:
            await self._room.wait()

    def put(self, line: bytes) -> None:
        """Buffer a line and send as much as the socket accepts now; `flush` sends the rest. Raises BrokenResourceError."""
        is_blocked = bool(self._unsent)
        self._unsent += line
        if not is_blocked:
            self._send_now()

    async def flush(self) -> None:
        """Send buffered bytes as the socket becomes writable, until cancelled. Raises BrokenResourceError."""
        while True:
            await self._blocked.wait()
            while self._unsent:
                await anyio.wait_writable(self._socket)
                self._send_now()
            self._blocked = anyio.Event()

    @property
    def is_hung_up(self) -> bool:
        """Whether the peer closed both directions. A peer that closed only its write side still reads."""
        return any(events & (select.POLLHUP | select.POLLERR) for _, events in self._hang_ups.poll(0))

    def _send_now(self) -> None:
        try:
            del self._unsent[: self._socket.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError as problem:
            raise anyio.BrokenResourceError from problem
        if self._unsent:
            self._blocked.set()
        if not self.is_full:
            self._room.ring()

    async def _receive(self) -> bytes:
        while True:
            try:
                chunk = self._socket.recv(CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(self._socket)
            except OSError as problem:
                raise anyio.EndOfStream from problem
            else:
                if not chunk:
                    raise anyio.EndOfStream
                return chunk

    async def _skip_line(self) -> None:
        while True:
            self._buffer.clear()
            self._scanned = 0
            chunk = await self._receive()
            end = chunk.find(b"\n")
            if end >= 0:
                self._buffer += chunk[end + 1 :]
                return


def _kernel_bytes(sock: socket.socket) -> int:
    """Sent bytes that the peer has not read, with the kernel's overhead for each message."""
    if sys.platform != "linux":
        return 0
    count = array.array("i", [0])
    try:
        fcntl.ioctl(sock, termios.TIOCOUTQ, count)  # SIOCOUTQ for a socket
    except OSError:
        return 0
    return count[0]
