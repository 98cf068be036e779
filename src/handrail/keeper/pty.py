"""Our end of a PTY: output into the spool, input from a bounded queue, the window's size.

Owns the descriptor. Does not know the loop, nor who types.

The fork of a warden, with everything its leader will hold.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import termios
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handrail.keeper import lineage, system, warden

if TYPE_CHECKING:
    from handrail.keeper.protocol import Start
    from handrail.keeper.spool import Spool


INPUT_MAX = 256 * 1024
"""Bytes typed ahead of a program that does not read."""
PTY_HOLDS = 128 * 1024
"""More than a PTY holds: what a leader wrote before it left is within this many bytes."""
_IUTF8 = 0x4000
GATHER = 256 * 1024
"""Bytes moved at once: a page at a time would cost more in writing than in reading."""
_BYTES = bytearray(GATHER)
_BUFFER = memoryview(_BYTES)


class PtyEnd:
    """The master side, never blocking.

    The other side stays open here too: a program may close its terminal and open /dev/tty again to ask for a
    password, and we must not have taken that pause for the end.
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

    def pump(self, spool: Spool, budget: int = GATHER) -> bool:
        """Move at most `budget` bytes of output to the spool; False once the kernel has hung the PTY up."""
        filled, open_still = 0, True
        try:
            # Each read gives no more than a page or so: gather many into one write.
            while filled < budget:
                got = os.readv(self.fd, [_BUFFER[filled:]])
                if got == 0:
                    open_still = False
                    break
                filled += got
        except BlockingIOError:
            pass
        except OSError:  # EIO: the session's leader has left
            open_still = False
        if filled:
            # To look for a line's end is many times faster than to count them, and a storm may have none.
            lines = _BYTES.count(b"\n", 0, filled) if _BYTES.find(b"\n", 0, filled) >= 0 else 0
            spool.append(_BUFFER[:filled], lines)
        return open_still

    def drain(self, spool: Spool) -> None:
        """Take what the PTY holds now; a grandchild that goes on writing cannot keep us here."""
        self.pump(spool, PTY_HOLDS)

    @property
    def modes(self) -> tuple[bool, bool]:
        """Whether it shows what is typed, and whether it is read line by line."""
        local = termios.tcgetattr(self.slave)[3]
        return bool(local & termios.ECHO), bool(local & termios.ICANON)

    @property
    def is_secret(self) -> bool:
        """It hides what is typed, line by line. (A shell's own prompt does not show the keys either, but is raw.)"""
        return self.modes == (False, True)

    def type(self, data: bytes, person: bool) -> bool:
        """Queue input; False, and nothing is typed, when too much already waits."""
        if self.typed_ahead + len(data) > INPUT_MAX:
            return False
        if data:
            self._input.append((memoryview(data), person))
            self.typed_ahead += len(data)
            self.write_input()
        return True

    def write_input(self) -> None:
        """Type what waits. What is not a person's is dropped where the terminal has come to hide it meanwhile."""
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
        """The kernel sends SIGWINCH to the foreground by itself when the size differs."""
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", rows, cols, 0, 0))

    def close(self) -> None:
        os.close(self.fd)
        os.close(self.slave)


@dataclass(frozen=True, slots=True)
class Launch:
    """A warden on its way: our end of its link, and of its leader's PTY or pipes."""

    warden_pid: int
    warden: tuple[int, int] | None
    link: socket.socket
    pty: PtyEnd | None
    pipes: tuple[int, ...]


def launch(order: Start, descriptors: tuple[int, int]) -> Launch:
    """Start a warden whose leader gets this limit on open files. Raises OSError when the system has no room."""
    with ExitStack() as undo:
        pty, pipes, stdio = _pipes(undo) if order.pipes else _pty(order, undo)
        link, theirs = socket.socketpair()
        undo.callback(link.close)
        with theirs:
            pid = os.fork()
            if pid == 0:
                warden.run(order, stdio, theirs, descriptors)
        undo.pop_all()
    if pty is None:
        for fd in stdio:
            os.close(fd)
    link.setblocking(False)
    return Launch(pid, lineage.identity(pid), link, pty, pipes)


def _pty(order: Start, undo: ExitStack) -> tuple[PtyEnd | None, tuple[int, ...], tuple[int, int, int]]:
    pty = PtyEnd(order.cols, order.rows)
    undo.callback(pty.close)
    return pty, (), (pty.slave, pty.slave, pty.slave)


def _pipes(undo: ExitStack) -> tuple[PtyEnd | None, tuple[int, ...], tuple[int, int, int]]:
    pairs: list[tuple[int, int]] = []
    for _ in range(3):
        pairs.append(os.pipe())
        for fd in pairs[-1]:
            undo.callback(os.close, fd)
    (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr) = pairs
    return None, (to_stdin, from_stdout, from_stderr), (stdin, stdout, stderr)
