"""A program on pipes that exchanges lines with the daemon: an agent or an MCP server.

Started through the keeper, read within bounds, ended with its whole process tree.

Owns the three pipes and the reason why the program is over. It does not parse the lines. It never waits for
the end of the output: an orphaned child may hold the pipe open for ever.
"""

import os
import re
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field

import anyio

from handrail.framing import LineBuffer, LineTooLong
from handrail.lazy_dataclass import dataclass
from handrail.terminal.jsonrpc_messages import MESSAGE_MAX
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.terminal import Exit, Terminal
from handrail.terminal.terminals import Terminals

READ = 256 * 1024
LAST_BYTES = 1024 * 1024
"""Bytes read after the program has exited; bounds the output of an orphaned child that keeps writing."""
UNREAD_MAX = 2 * MESSAGE_MAX
"""Bytes buffered for a program that does not read its input."""
LEAVE_SECONDS = 1.0
"""Seconds for a program to exit after it closed its output, so that the exit code can be reported."""
STOP_GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL for its process tree."""
STOP_SECONDS = 30.0
"""Bounds the wait for the keeper to confirm that the tree has ended."""


class PipeProcess:
    """One running program."""

    def __init__(self, name: str, terminal: Terminal, pipes: tuple[int, int, int]) -> None:
        self.name, self.terminal = name, terminal
        self.why: str | None = None
        """Why the program is over; the first reason wins."""
        self.over = anyio.Event()
        self._stdin, self._stdout, self._stderr = pipes
        self._stderr_tail = StderrTail()
        self._lines, self._ready = LineBuffer(MESSAGE_MAX), deque[bytes]()
        self._unsent, self._has_unsent = bytearray(), anyio.Event()
        self._reading = anyio.CancelScope()
        self._exited, self._last_bytes = False, LAST_BYTES
        for fd in pipes:
            os.set_blocking(fd, False)
            os.set_inheritable(fd, False)

    @classmethod
    async def start(
        cls, terminals: Terminals, name: str, argv: Sequence[str], cwd: str, env: Mapping[str, str]
    ) -> "PipeProcess":
        """Start the program. Raises KeeperError with the reason if that fails."""
        return cls(name, *await terminals.open_pipes(argv, cwd, env, grace=STOP_GRACE))

    @property
    def stderr_lines(self) -> tuple[str, ...]:
        return self._stderr_tail.lines

    async def run(self) -> None:
        """Write its input, read its standard error and wait for its exit, until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._collect_stderr)
            group.start_soon(self._watch_exit)
            await self._write_unsent()

    def send(self, line: bytes) -> None:
        """Queue a line. A program that leaves more than UNREAD_MAX bytes unread is given up."""
        if self._unsent and len(self._unsent) + len(line) > UNREAD_MAX:
            self.give_up(f"{self.name} does not read what it is sent.")
        if self.why is None:
            self._unsent += line
            self._has_unsent.set()

    async def receive(self) -> bytes | None:
        """The next line of its output; None once it is over."""
        while not self._ready:
            if self.why is not None:
                return None
            await self._read_lines()
        return self._ready.popleft()

    def give_up(self, why: str) -> None:
        """Mark the program as over; the first reason wins."""
        if self.why is None:
            self.why = why
            self._drain_stderr()
            self._reading.cancel()
            self.over.set()

    async def stop(self) -> None:
        """End its whole process tree, including orphans and children in other sessions."""
        # Without a keeper, the wardens have already ended the tree.
        with anyio.CancelScope(shield=True), anyio.move_on_after(STOP_SECONDS), suppress(KeeperError):
            await self.terminal.stop(STOP_GRACE)

    def close(self) -> None:
        """Close the pipes, once no task reads or writes them."""
        for fd in (self._stdin, self._stdout, self._stderr):
            os.close(fd)

    async def _read_lines(self) -> None:
        with anyio.CancelScope() as self._reading:
            if not self._exited:
                await anyio.wait_readable(self._stdout)
        data = self._read_stdout()
        if self._exited:
            self._last_bytes -= len(data or b"")
        if data and self._last_bytes > 0:
            self._feed(data)
        elif self._exited:
            self.give_up(_describe_exit(self.name, self.terminal.exit))
        elif data is not None:
            await self._give_up_after_close()

    def _read_stdout(self) -> bytes | None:
        """Read without blocking: b"" at the end of the output, None if no data is ready."""
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

    async def _give_up_after_close(self) -> None:
        with anyio.move_on_after(LEAVE_SECONDS):
            await self.terminal.wait()
        ending = self.terminal.exit
        self.give_up(
            f"{self.name} closed its output." if ending is None else _describe_exit(self.name, ending)
        )

    async def _watch_exit(self) -> None:
        await self.terminal.wait()
        self._exited = True
        self._reading.cancel()

    async def _write_unsent(self) -> None:
        while True:
            await self._has_unsent.wait()
            self._has_unsent = anyio.Event()
            while self._unsent:
                await anyio.wait_writable(self._stdin)
                try:
                    del self._unsent[: os.write(self._stdin, self._unsent[:READ])]
                except BlockingIOError:
                    continue
                except OSError:  # its input is closed; `_watch_exit` reports the exit
                    return

    async def _collect_stderr(self) -> None:
        while True:
            await anyio.wait_readable(self._stderr)
            data = self._read_stderr()
            if data == b"":
                return
            self._stderr_tail.feed(data or b"")

    def _drain_stderr(self) -> None:
        remaining = LAST_BYTES
        while remaining > 0 and (data := self._read_stderr()):
            self._stderr_tail.feed(data)
            remaining -= len(data)

    def _read_stderr(self) -> bytes | None:
        try:
            return os.read(self._stderr, READ)
        except BlockingIOError:
            return None


def _describe_exit(name: str, exit: Exit | None) -> str:
    if exit is None or exit.lost is not None:
        return f"{name} is gone. {exit.lost if exit else ''}".rstrip()
    if exit.signal is not None:
        return f"{name} was ended by {exit.signal}."
    return f"{name} ended by itself with exit code {exit.code}."


SAID_LINES = 50
SAID_CHARS = 500
"""Last lines kept of its standard error, and characters kept of each line."""
_ESCAPES = re.compile(
    r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]"
)


@dataclass()
class StderrTail:
    """The last lines of a program's standard error."""

    _lines: deque[str] = field(default_factory=lambda: deque(maxlen=SAID_LINES))
    _partial: bytes = b""

    def feed(self, data: bytes) -> None:
        *whole, self._partial = (self._partial + data).split(b"\n")
        self._partial = self._partial[: 4 * SAID_CHARS]
        self._lines.extend(filter(None, map(_clean_line, whole)))

    @property
    def lines(self) -> tuple[str, ...]:
        last = _clean_line(self._partial)
        return (*self._lines, last)[-SAID_LINES:] if last else tuple(self._lines)


def _clean_line(line: bytes) -> str:
    text = _ESCAPES.sub("", line[: 4 * SAID_CHARS].decode(errors="replace")).rstrip()
    return text if len(text) <= SAID_CHARS else f"{text[:SAID_CHARS]}…"
