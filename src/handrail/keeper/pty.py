"""The master side of a PTY: reads output into the spool, and writes queued input."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from collections import deque
from typing import TYPE_CHECKING

from handrail.keeper import system

if TYPE_CHECKING:
    from collections.abc import Iterable

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
