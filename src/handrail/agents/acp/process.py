"""An agent's program: started through the keeper, read within bounds, ended with its whole tree.

Owns the three pipes and the reason why it is over. Does not know what its lines mean. The end of its output is never
waited for: an orphan of its may hold the pipe open for ever.

What an agent last said on its standard error, for when it fails.
"""

import os
import re
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import anyio

from handrail.agents.acp.acp_framing import MESSAGE_MAX
from handrail.agents.acp.agent_errors import AgentError
from handrail.framing import LineBuffer, LineTooLong
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.terminal import Exit, Terminal
from handrail.terminal.terminals import Terminals

READ = 256 * 1024
LAST_BYTES = 1024 * 1024
"""What a pipe may still hold when its program has left; bounds what an orphan that goes on writing can make us read."""
UNREAD_MAX = 2 * MESSAGE_MAX
"""Bytes that wait for an agent which does not read."""
LEAVE_SECONDS = 1.0
"""What a program gets to leave after it has closed its output, so that its exit can be told."""
STOP_GRACE = 1.0
"""Seconds between asking its tree to end and killing it."""
STOP_SECONDS = 30.0
"""Bounds the wait for the keeper's word that nothing is left."""


class Process:
    """One running program of an agent."""

    def __init__(self, name: str, terminal: Terminal, pipes: tuple[int, int, int]) -> None:
        self.name, self.terminal = name, terminal
        self.why: str | None = None
        """Why it is over; the first reason counts."""
        self.over = anyio.Event()
        self._stdin, self._stdout, self._stderr = pipes
        self._said = Said()
        self._lines, self._ready = LineBuffer(MESSAGE_MAX), deque[bytes]()
        self._unsent, self._unsent_bell = bytearray(), anyio.Event()
        self._reading = anyio.CancelScope()
        self._left, self._last_bytes = False, LAST_BYTES
        for fd in pipes:
            os.set_blocking(fd, False)
            os.set_inheritable(fd, False)

    @classmethod
    async def start(
        cls, terminals: Terminals, name: str, argv: Sequence[str], cwd: str, env: Mapping[str, str]
    ) -> "Process":
        """Raises AgentError with the reason it cannot run."""
        try:
            return cls(name, *await terminals.open_pipes(argv, cwd, env, grace=STOP_GRACE))
        except KeeperError as problem:
            raise AgentError(f"{name} could not be started. {problem}") from None

    @property
    def said(self) -> tuple[str, ...]:
        return self._said.lines

    async def run(self) -> None:
        """Write, listen to its standard error, and notice its end; until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._write)
            group.start_soon(self._listen)
            group.start_soon(self._notice)

    def send(self, line: bytes) -> None:
        """Queue a line. Of one that does not read, no more than UNREAD_MAX bytes are kept: it is given up."""
        if self._unsent and len(self._unsent) + len(line) > UNREAD_MAX:
            self.give_up(f"{self.name} does not read what it is sent.")
        if self.why is None:
            self._unsent += line
            self._unsent_bell.set()

    async def receive(self) -> bytes | None:
        """Its next line; None once it is over."""
        while not self._ready:
            if self.why is not None:
                return None
            await self._fill()
        return self._ready.popleft()

    def give_up(self, why: str) -> None:
        """It is over, for this reason unless there was one before."""
        if self.why is None:
            self.why = why
            self._hear_last_words()
            self._reading.cancel()
            self.over.set()

    async def stop(self) -> None:
        """End its whole tree, children in sessions of their own and orphans included."""
        # Without a keeper to tell, the wardens have ended everything.
        with anyio.CancelScope(shield=True), anyio.move_on_after(STOP_SECONDS), suppress(KeeperError):
            await self.terminal.stop(STOP_GRACE)

    def close(self) -> None:
        """Close the pipes, once nobody reads or writes them any more."""
        for fd in (self._stdin, self._stdout, self._stderr):
            os.close(fd)

    async def _fill(self) -> None:
        with anyio.CancelScope() as self._reading:
            if not self._left:
                await anyio.wait_readable(self._stdout)
        data = self._take()
        if self._left:
            self._last_bytes -= len(data or b"")
        if data and self._last_bytes > 0:
            self._feed(data)
        elif self._left:
            self.give_up(_sentence(self.name, self.terminal.exit))
        elif data is not None:
            await self._closed()

    def _take(self) -> bytes | None:
        """What there is to read now; nothing at its end, None where nothing has come."""
        try:
            return os.read(self._stdout, READ)
        except BlockingIOError:
            return None

    def _feed(self, data: bytes) -> None:
        try:
            self._ready.extend(self._lines.feed(data))
        except LineTooLong:
            mib = MESSAGE_MAX >> 20
            self.give_up(
                f"{self.name} printed more than {mib} MiB without the end of a line, so it was ended."
            )

    async def _closed(self) -> None:
        with anyio.move_on_after(LEAVE_SECONDS):
            await self.terminal.wait()
        left = self.terminal.exit
        self.give_up(f"{self.name} closed its output." if left is None else _sentence(self.name, left))

    async def _notice(self) -> None:
        await self.terminal.wait()
        self._left = True
        self._reading.cancel()

    async def _write(self) -> None:
        while True:
            await self._unsent_bell.wait()
            self._unsent_bell = anyio.Event()
            while self._unsent:
                await anyio.wait_writable(self._stdin)
                try:
                    del self._unsent[: os.write(self._stdin, self._unsent[:READ])]
                except BlockingIOError:
                    continue
                except OSError:  # it reads no more; how it ended is noticed elsewhere
                    return

    async def _listen(self) -> None:
        while True:
            await anyio.wait_readable(self._stderr)
            data = self._take_said()
            if data == b"":
                return
            self._said.feed(data or b"")

    def _hear_last_words(self) -> None:
        left = LAST_BYTES
        while left > 0 and (data := self._take_said()):
            self._said.feed(data)
            left -= len(data)

    def _take_said(self) -> bytes | None:
        try:
            return os.read(self._stderr, READ)
        except BlockingIOError:
            return None


def _sentence(name: str, exit: Exit | None) -> str:
    if exit is None or exit.lost is not None:
        return f"{name} is gone. {exit.lost if exit else ''}".rstrip()
    if exit.signal is not None:
        return f"{name} was ended by {exit.signal}."
    return f"{name} ended by itself with exit code {exit.code}."


SAID_LINES = 50
SAID_CHARS = 500
"""Kept of its standard error: so many last lines, and of each so much."""
_ESCAPES = re.compile(
    r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]"
)


@dataclass
class Said:
    """The last lines of a standard error."""

    _lines: deque[str] = field(default_factory=lambda: deque(maxlen=SAID_LINES))
    _partial: bytes = b""

    def feed(self, data: bytes) -> None:
        *whole, self._partial = (self._partial + data).split(b"\n")
        self._partial = self._partial[: 4 * SAID_CHARS]
        self._lines.extend(filter(None, map(_readable, whole)))

    @property
    def lines(self) -> tuple[str, ...]:
        last = _readable(self._partial)
        return (*self._lines, last)[-SAID_LINES:] if last else tuple(self._lines)


def _readable(line: bytes) -> str:
    text = _ESCAPES.sub("", line[: 4 * SAID_CHARS].decode(errors="replace")).rstrip()
    return text if len(text) <= SAID_CHARS else f"{text[:SAID_CHARS]}…"
