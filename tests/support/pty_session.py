"""A program on a pseudo-terminal, driven as a user of a terminal emulator does. Every wait is under `BOUND`."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.support.scripted_daemon import BOUND, SRC

OWN_TERMINAL = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
"""Makes stdin the terminal that the program, and all it starts, belong to."""
HANDRAIL = (sys.executable, "-m", "handrail")
LAST = b"\x00last\x00"
"""What no program shows: the mark that comes after all that was printed."""


class PtySession:
    """A program on a pseudo-terminal, and its user."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: Path | None = None,
        size: tuple[int, int] = (100, 30),
        stdout: int | None = None,
    ) -> None:
        self.fd, self._theirs = os.openpty()
        self.seen = b""
        self.resize(*size)
        self.usual = termios.tcgetattr(self._theirs)
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWN_TERMINAL, *argv],
            env={"TERM": "xterm", "PYTHONPATH": str(SRC), **env},
            cwd=cwd,
            start_new_session=True,
            stdin=self._theirs,
            stdout=self._theirs if stdout is None else stdout,
            stderr=self._theirs,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(BOUND)
        self.close()

    def type(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def resize(self, cols: int, rows: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", rows, cols, 0, 0))

    def sees(self, words: bytes) -> bytes:
        """All output up to these words, once they appear. Consumes it."""
        until = time.monotonic() + BOUND
        while words not in self.seen:
            assert self._read(until), f"{words!r} was not shown; there was {self.seen[-2000:]!r}"
        before, _, self.seen = self.seen.partition(words)
        return before + words

    def rest(self) -> bytes:
        """All that is shown until the program has ended."""
        until = time.monotonic() + BOUND
        while self.process.poll() is None:
            assert time.monotonic() < until, f"it did not end; there was {self.seen[-2000:]!r}"
            self._read(time.monotonic() + 0.05)
        self._read_all(until)
        shown, self.seen = self.seen, b""
        return shown

    def ends(self) -> int:
        """The exit status, or minus the signal. Reads all output meanwhile."""
        self.seen = self.rest()
        return self.process.wait(BOUND)

    def modes(self) -> list[Any]:
        return termios.tcgetattr(self._theirs)

    def becomes_raw(self) -> None:
        self._loses(termios.ISIG)

    def becomes_quiet(self) -> None:
        """Wait until the terminal stops echoing."""
        self._loses(termios.ECHO)

    def _loses(self, mode: int) -> None:
        until = time.monotonic() + BOUND
        while self.modes()[3] & mode:
            assert time.monotonic() < until, f"the terminal did not become raw; there was {self.seen!r}"
            self._read(time.monotonic() + 0.02)

    def close(self) -> None:
        """The window is closed."""
        for fd in (self.fd, self._theirs):
            if fd >= 0:
                os.close(fd)
        self.fd = self._theirs = -1

    def kill(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def _read_all(self, until: float) -> None:
        """Read output that is still in flight after the program's exit. Our mark comes after it."""
        ours = os.open(os.ttyname(self._theirs), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            mark = LAST
            while mark := mark[_taken(ours, mark) :]:
                assert self._read(until), "the terminal does not take its last mark"
        finally:
            os.close(ours)
        while LAST not in self.seen:
            assert self._read(until), f"the last mark was not shown; there was {self.seen[-2000:]!r}"
        self.seen = self.seen.replace(LAST, b"")

    def _read(self, until: float) -> bool:
        if not select.select([self.fd], [], [], max(0.0, until - time.monotonic()))[0]:
            return False
        self.seen += os.read(self.fd, 1 << 16)
        return True


def _taken(fd: int, data: bytes) -> int:
    try:
        return os.write(fd, data)
    except BlockingIOError:
        return 0
