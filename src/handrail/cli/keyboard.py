"""Keys, one at a time, that a person pressed after seeing what they answer.

Owns the terminal's mode and the guard against keys meant for something else. Does not know what a key means.
"""

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

GUARD_SECONDS = 0.7
"""A question that appears under a typing person takes no key for so long."""


class Keyboard:
    """The terminal on stdin, without line editing and without echo while it is held."""

    def __init__(self, descriptor: int | None = None) -> None:
        self._fd = sys.stdin.fileno() if descriptor is None else descriptor
        self._usual = termios.tcgetattr(self._fd)
        self._ready_at = 0.0

    def __enter__(self) -> Self:
        tty.setcbreak(self._fd, termios.TCSANOW)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        termios.tcsetattr(self._fd, termios.TCSAFLUSH, self._usual)

    def guard(self) -> None:
        """From now on, and for a moment, whatever was or is typed is thrown away."""
        termios.tcflush(self._fd, termios.TCIFLUSH)
        self._ready_at = time.monotonic() + GUARD_SECONDS

    def key(self, seconds: float) -> str | None:
        """One key, if exactly one is pressed in that time: a burst is a paste, a repeat or a key with a name."""
        until = time.monotonic() + seconds
        if self._ready_at:
            time.sleep(max(0.0, min(self._ready_at, until) - time.monotonic()))
            if time.monotonic() < self._ready_at:
                return None
            termios.tcflush(self._fd, termios.TCIFLUSH)
            self._ready_at = 0.0
        if not select.select([self._fd], [], [], max(0.0, until - time.monotonic()))[0]:
            return None
        typed = os.read(self._fd, 1024).decode(errors="replace")
        if not typed:
            raise KeyboardInterrupt  # the terminal is gone
        return typed if len(typed) == 1 else None

    def line(self, ask: Callable[[], None]) -> str:
        """A whole line, with the terminal's own editing; whatever was typed before it was asked for is lost."""
        with self.lent():
            ask()
            return os.read(self._fd, 64 << 10).decode(errors="replace").strip()

    @contextmanager
    def lent(self) -> Generator[None]:
        """The terminal as it was before us, for a line or for another program; what nobody read is lost."""
        termios.tcsetattr(self._fd, termios.TCSAFLUSH, self._usual)
        try:
            yield
        finally:
            tty.setcbreak(self._fd, termios.TCSAFLUSH)
