"""PTYs and process launch: the PTY's master side, and the warden with a PTY or pipes for its leader.

A warden is forked for its order, or was forked before: after the first command a spare one waits for the next, because
two forks of a Python process take longer than a short command. The spare is marked, unreadable and without a PTY, holds
no order, is used once, and ends with the keeper.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct
import termios
from collections import deque
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from handrail.keeper import lineage, system, warden
from handrail.keeper.message_framing import encode
from handrail.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import NoReturn

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
"""Bytes of an order for a spare warden. It fits into the buffer of a socket, so that sending it never waits."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A forked warden: our end of its link, and of its leader's PTY or pipes."""

    warden_pid: int
    warden: tuple[int, int] | None
    link: socket.socket
    pty: PtyMaster | None
    pipes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Spare:
    """A warden without an order; its leader waits for one at the other end of `orders`."""

    pid: int
    warden: tuple[int, int] | None
    link: socket.socket
    orders: socket.socket

    @classmethod
    def fork(cls, descriptors: tuple[int, int]) -> Spare:
        with ExitStack() as undo:
            orders, theirs = socket.socketpair()
            undo.callback(orders.close)
            with theirs:
                lead = partial(warden.wait_for_order, theirs, descriptors)
                pid, link = _fork_warden({theirs.fileno()}, 0.0, lead)
            undo.pop_all()
        orders.setblocking(False)
        return cls(pid, lineage.identity(pid), link, orders)

    def send(self, order: Start, slave: int) -> bool:
        """Send the order and the PTY; False if it is too long, or if the warden or its leader is gone."""
        line = encode(order)
        try:
            return (
                len(line) <= ORDER_MAX
                and self.link.send(encode(warden.Begin(order.grace))) > 0
                and socket.send_fds(self.orders, [line], [slave]) == len(line)
            )
        except OSError:
            return False

    def close(self) -> None:
        """Close both sockets, on which warden and leader exit."""
        self.link.close()
        self.orders.close()


class Launcher:
    """Launches terminals; their leaders get this limit on open files."""

    def __init__(self, descriptors: tuple[int, int]) -> None:
        self.spare: Spare | None = None
        self._descriptors = descriptors

    def launch(self, order: Start) -> Launch:
        """Start the order with the spare warden, or with a new one. Raises OSError if the system lacks resources."""
        if order.pipes:
            return self._launch_pipes(order)
        with ExitStack() as undo:
            pty = PtyMaster(order.cols, order.rows)
            undo.callback(pty.close)
            launched = self._use_spare(order, pty) or self._launch_pty(order, pty)
            undo.pop_all()
        return launched

    def fork_spare(self) -> None:
        with contextlib.suppress(OSError):  # the next launch forks, and reports the reason
            self.spare = self.spare or Spare.fork(self._descriptors)

    def drop_spare(self) -> None:
        if self.spare is not None:
            self.spare.close()
            self.spare = None

    def _use_spare(self, order: Start, pty: PtyMaster) -> Launch | None:
        """Use the spare warden; None if it is missing, or if it cannot be used."""
        spare = self.spare
        if spare is None or not spare.send(order, pty.slave):
            self.drop_spare()
            return None
        self.spare = None
        spare.orders.close()
        return Launch(spare.pid, spare.warden, spare.link, pty, ())

    def _launch_pty(self, order: Start, pty: PtyMaster) -> Launch:
        lead = partial(warden.become, order, (pty.slave, pty.slave, pty.slave), self._descriptors)
        pid, link = _fork_warden({pty.slave}, order.grace, lead)
        return Launch(pid, lineage.identity(pid), link, pty, ())

    def _launch_pipes(self, order: Start) -> Launch:
        with ExitStack() as undo:
            pipes, stdio = _open_pipes(undo)
            lead = partial(warden.become, order, stdio, self._descriptors)
            pid, link = _fork_warden(set(stdio), order.grace, lead)
            undo.pop_all()
        for fd in stdio:
            os.close(fd)
        return Launch(pid, lineage.identity(pid), link, None, pipes)


def _fork_warden(
    descriptors: set[int], grace: float, lead: Callable[[int], NoReturn]
) -> tuple[int, socket.socket]:
    """Fork a warden that keeps these descriptors for its leader; return its pid, and our end of its link."""
    link, theirs = socket.socketpair()
    with theirs:
        try:
            pid = os.fork()
        except OSError:
            link.close()
            raise
        if pid == 0:
            warden.run(theirs, descriptors, grace, lead)
    link.setblocking(False)
    return pid, link


def _open_pipes(undo: ExitStack) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Our ends and the leader's ends of stdin, stdout and stderr."""
    pairs: list[tuple[int, int]] = []
    for _ in range(3):
        pairs.append(os.pipe())
        for fd in pairs[-1]:
            undo.callback(os.close, fd)
    (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr) = pairs
    return (to_stdin, from_stdout, from_stderr), (stdin, stdout, stderr)
