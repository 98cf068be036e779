"""Lines of bytes, both ways, over a unix socket.

Owns framing and what waits to be sent: a line too long to be a message is skipped without being held, and a line once
begun is always finished, whoever stops waiting for it. It does not know what the lines mean.

It works on the socket itself, because every turn of the loop that a message takes is time a client waits.
"""

import select
import socket

import anyio
from anyio.abc import SocketAttribute, SocketStream

LINE_BYTES = 32 * 1024 * 1024
"""The longest message taken: far above any file our tools write, far below what would hurt."""
CHUNK = 64 * 1024
UNSENT_BYTES = 1 << 20
"""What waits at most for a peer that does not read, one line aside."""


class Lines:
    """Whole lines from and to one peer."""

    def __init__(self, stream: SocketStream) -> None:
        self._socket: socket.socket = stream.extra(SocketAttribute.raw_socket)
        self._held = bytearray()
        self._looked = 0
        self._unsent = bytearray()
        self._stuck = anyio.Event()
        self._room = anyio.Event()

    async def read(self, most: int = LINE_BYTES) -> bytes | None:
        """The next line; None when it was longer than `most`. Raises EndOfStream."""
        while (end := self._held.find(b"\n", self._looked)) < 0:
            self._looked = len(self._held)
            if self._looked > most:
                await self._skip()
                return None
            self._held += await self._receive()
        line = bytes(self._held[:end])
        del self._held[: end + 1]
        self._looked = 0
        return line if len(line) <= most else None

    @property
    def crowded(self) -> bool:
        """So much waits for the peer that whoever has more to say should wait too."""
        return len(self._unsent) > UNSENT_BYTES

    async def write(self, line: bytes) -> None:
        """Send a line, once there is room for it. Raises BrokenResourceError."""
        while self.crowded:
            await self._room.wait()
        self.put(line)

    async def sent(self) -> None:
        """Return when nothing waits to be sent."""
        while self._unsent:
            await self._room.wait()

    def put(self, line: bytes) -> None:
        """Send a line as far as the peer takes it now; `flush` sends the rest. Raises BrokenResourceError."""
        waiting = bool(self._unsent)
        self._unsent += line
        if not waiting:
            self._push()

    async def flush(self) -> None:
        """Send what waits, whenever something does, until cancelled or the peer is gone."""
        while True:
            await self._stuck.wait()
            while self._unsent:
                await anyio.wait_writable(self._socket)
                self._push()
            self._stuck = anyio.Event()

    @property
    def hung_up(self) -> bool:
        """The peer is gone altogether; one that has only said all it had to say still listens."""
        poll = select.poll()
        poll.register(self._socket, 0)
        return any(found & (select.POLLHUP | select.POLLERR) for _, found in poll.poll(0))

    def _push(self) -> None:
        try:
            del self._unsent[: self._socket.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError as problem:
            raise anyio.BrokenResourceError from problem
        if self._unsent:
            self._stuck.set()
        if not self.crowded:
            self._room.set()
            self._room = anyio.Event()

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

    async def _skip(self) -> None:
        while True:
            self._held.clear()
            self._looked = 0
            chunk = await self._receive()
            end = chunk.find(b"\n")
            if end >= 0:
                self._held += chunk[end + 1 :]
                return
