"""PTYs and process launch: the PTY's master side, and the wardens that start programs with a PTY or pipes.

A warden whose tree has ended is kept for the next order, because the fork of a Python process takes longer than a short
command. An idle warden is marked, unreadable, without a PTY and without an order, and ends with the keeper. Its program
inherits from it, so it is used only if it is what a new one would be.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import socket
import struct
import termios
from collections import deque
from contextlib import ExitStack
from typing import TYPE_CHECKING

from handrail.keeper import lineage, system, warden
from handrail.keeper.message_framing import encode
from handrail.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from handrail.keeper.protocol import Start
    from handrail.keeper.spool import Spool


INPUT_MAX = 256 * 1024
"""Bytes of input queued for a program that does not read."""
PTY_HOLDS = 128 * 1024
"""Bytes read after the leader exits. Larger than a PTY's buffer, so none of the leader's output is lost."""
_IUTF8 = 0x4000
GATHER = 256 * 1024
"""Bytes collected for one write: a PTY read returns about a page, and a write per page costs more than the reads."""
FLOOD = 4 * 1024 - 1
"""The most that one read of a PTY returns (N_TTY). A program that printed as much may print more soon."""
_BYTES = bytearray(GATHER)
_BUFFER = memoryview(_BYTES)


class PtyMaster:
    """The master side of a PTY, non-blocking.

    The slave side stays open here too: a program may close its terminal and open /dev/tty again to ask for a password,
    and the keeper must not mistake that for the end of output.
    """

    def __init__(self, cols: int, rows: int) -> None:
        self.fd, self.slave = os.openpty()
        os.set_blocking(self.fd, False)
        if system.LINUX:
            modes = termios.tcgetattr(self.slave)
            modes[0] |= _IUTF8  # erase whole characters, not bytes
            termios.tcsetattr(self.slave, termios.TCSANOW, modes)
        self.resize(cols, rows)
        self._input: deque[tuple[memoryview, bool]] = deque()
        self.typed_ahead = 0

    def pump(self, spool: Spool, budget: int = GATHER, more: Iterable[None] = ()) -> bool:
        """Move output to the spool; False once the PTY has hung up.

        Takes at most `budget` bytes. If that was a lot, takes as much again for each item of `more`, which waits for it.
        """
        filled, is_open = self._fill(0, budget)
        if is_open and filled >= FLOOD:
            for _ in more:
                if filled >= budget:
                    _append(spool, filled)
                    filled = 0
                filled, is_open = self._fill(filled, budget)
                if not is_open:
                    break
        _append(spool, filled)
        return is_open

    def _fill(self, filled: int, budget: int) -> tuple[int, bool]:
        """Read into the buffer behind `filled` bytes; return the bytes in it, and False once the PTY has hung up."""
        readv, fd, buffer = os.readv, self.fd, _BUFFER
        try:
            # Each read returns a page at most: collect many reads for one write.
            while filled < budget:
                count = readv(fd, [buffer[filled:]])
                if count == 0:
                    return filled, False
                filled += count
        except BlockingIOError:
            pass
        except OSError:  # EIO: the session leader has exited
            return filled, False
        return filled, True

    def drain(self, spool: Spool) -> None:
        """Read the buffered output. Bounded, so that a grandchild that keeps writing cannot block the keeper."""
        self.pump(spool, PTY_HOLDS)

    @property
    def modes(self) -> tuple[bool, bool]:
        """The terminal modes ECHO and ICANON."""
        local = termios.tcgetattr(self.slave)[3]
        return bool(local & termios.ECHO), bool(local & termios.ICANON)

    @property
    def is_secret(self) -> bool:
        """Line input without echo: a password prompt. (A shell prompt is also without echo, but in raw mode.)"""
        return self.modes == (False, True)

    def type(self, data: bytes, person: bool) -> bool:
        """Queue input and write as much as fits; False, with nothing queued, if the queue is full."""
        if self.typed_ahead + len(data) > INPUT_MAX:
            return False
        if data:
            self._input.append((memoryview(data), person))
            self.typed_ahead += len(data)
            self.write_input()
        return True

    def write_input(self) -> None:
        """Write queued input. Input that is not a person's is dropped if the terminal no longer echoes."""
        try:
            while self._input:
                data, person = self._input[0]
                written = os.write(self.fd, data) if person or not self.is_secret else len(data)
                self.typed_ahead -= written
                self._input[0] = (data[written:], person)
                if written == len(data):
                    self._input.popleft()
        except BlockingIOError:
            pass
        except OSError:
            self._input.clear()
            self.typed_ahead = 0

    @property
    def wants_to_write(self) -> bool:
        return bool(self._input)

    def resize(self, cols: int, rows: int) -> None:
        """Set the window size; if it changed, the kernel sends SIGWINCH to the foreground process group."""
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", rows, cols, 0, 0))

    def close(self) -> None:
        os.close(self.fd)
        os.close(self.slave)


def _append(spool: Spool, filled: int) -> None:
    """Append this much of the buffer to the spool."""
    if filled:
        # find is many times faster than count, and a storm may contain no newline.
        lines = _BYTES.count(b"\n", 0, filled) if _BYTES.find(b"\n", 0, filled) >= 0 else 0
        spool.append(_BUFFER[:filled], lines)


ORDER_MAX = 64 * 1024
"""Bytes of an order for an idle warden. It fits into the buffer of a socket, so that sending it never waits."""
IDLE_MAX = 2
"""Wardens without a tree that are kept: the one that returns from its tree, and the one that was forked meanwhile."""


@dataclass(frozen=True, slots=True)
class WardenProcess:
    """A warden and our end of its link. It cannot be another process: only the keeper reaps it."""

    pid: int
    identity: tuple[int, int] | None
    link: socket.socket

    @classmethod
    def fork(
        cls, limits: tuple[int, int], order: Start | None = None, stdio: tuple[int, ...] = ()
    ) -> WardenProcess:
        """Raises OSError if the system lacks resources."""
        link, theirs = socket.socketpair()
        with theirs:
            try:
                pid = os.fork()
            except OSError:
                link.close()
                raise
            if pid == 0:
                warden.run(theirs, limits, order, stdio)
        link.setblocking(False)
        return cls(pid, lineage.identity(pid), link)

    def take(self, line: bytes, stdio: tuple[int, ...]) -> bool:
        """Give it an order; False if it is gone."""
        try:
            self.wake()
            return socket.send_fds(self.link, [line], stdio) == len(line)
        except OSError:
            return False

    def is_as_forked(self, limits: tuple[int, int]) -> bool:
        """Whether it has the state of a warden forked now: no process has lowered its limits or its priority since."""
        try:
            if system.LINUX:
                expected = {resource.RLIMIT_NOFILE: limits, resource.RLIMIT_MSGQUEUE: lineage.mark_limits()}
                if any(resource.prlimit(self.pid, number) != pair for number, pair in expected.items()):
                    return False
            return system.read_alterable_state(self.pid) == system.read_alterable_state(os.getpid())
        except OSError:
            return False

    def wake(self) -> None:
        """Continue it: another process may have stopped it."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End it without its tree; orphans of the tree fall to the keeper."""
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Launch:
    """An order that a warden has, with our end of its leader's PTY or pipes."""

    warden: WardenProcess
    pty: PtyMaster | None
    pipes: tuple[int, ...]


class Launcher:
    """Launches terminals; their leaders get this limit on open files."""

    def __init__(self, limits: tuple[int, int]) -> None:
        self.idle: dict[int, WardenProcess] = {}
        """Wardens without a tree, by pid, the one that was used last at the end."""
        self._limits = limits

    def launch(self, order: Start) -> Launch:
        """Give the order to an idle warden, or to a new one. Raises OSError if the system lacks resources."""
        with ExitStack() as undo:
            pty, pipes, stdio = _open_pipes(undo) if order.pipes else _open_pty(order, undo)
            process = self._use_idle(order, stdio) or WardenProcess.fork(self._limits, order, stdio)
            undo.pop_all()
        if pty is None:
            for fd in stdio:
                os.close(fd)
        return Launch(process, pty, pipes)

    def fork_idle(self) -> WardenProcess | None:
        """Fork a warden without an order; None if the system lacks resources, which the next launch reports."""
        try:
            process = WardenProcess.fork(self._limits)
        except OSError:
            return None
        self.idle[process.pid] = process
        return process

    def keep(self, process: WardenProcess) -> bool:
        """Keep a warden whose tree has ended; False if enough are kept."""
        if len(self.idle) >= IDLE_MAX:
            return False
        self.idle[process.pid] = process
        return True

    def _use_idle(self, order: Start, stdio: tuple[int, ...]) -> WardenProcess | None:
        """Use an idle warden; None if there is none as it was forked, or if the order is too long for one."""
        line = encode(order) if self.idle else b""
        while self.idle and len(line) <= ORDER_MAX:
            _, process = self.idle.popitem()
            if process.is_as_forked(self._limits) and process.take(line, stdio):
                return process
            process.link.close()
            process.kill()
        return None


def _open_pty(order: Start, undo: ExitStack) -> tuple[PtyMaster, tuple[int, ...], tuple[int, ...]]:
    """A PTY; no pipes; the leader's end."""
    pty = PtyMaster(order.cols, order.rows)
    undo.callback(pty.close)
    return pty, (), (pty.slave,)


def _open_pipes(undo: ExitStack) -> tuple[None, tuple[int, ...], tuple[int, ...]]:
    """No PTY; our ends of stdin, stdout and stderr; the leader's ends."""
    pairs: list[tuple[int, int]] = []
    for _ in range(3):
        pairs.append(os.pipe())
        for fd in pairs[-1]:
            undo.callback(os.close, fd)
    (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr) = pairs
    return None, (to_stdin, from_stdout, from_stderr), (stdin, stdout, stderr)
