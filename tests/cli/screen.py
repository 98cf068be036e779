"""A person at a terminal: types, and waits for what appears."""

import os
import re
import select
import subprocess
import sys
import time
from types import TracebackType
from typing import Self

from tests.cli.scene import BOUND, Home

OWN_TERMINAL = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
"""Makes stdin the terminal whose Ctrl-C the program hears."""
AGAIN = 2.0
"""Seconds after which a person presses a key again that did nothing: more than any guard lasts."""


class Screen:
    """A command on a terminal of its own."""

    def __init__(self, home: Home, *arguments: str) -> None:
        self.text = ""
        self._fd, terminal = os.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-c", OWN_TERMINAL, *home.argv(*arguments)],
            env={**home.env, "TERM": "xterm"},
            cwd=home.workspace,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
        os.close(terminal)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(BOUND)
        os.close(self._fd)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def shows(self, words: str, within: float = BOUND) -> str:
        """All text up to and with these words, once they appear; it is then behind us."""
        until = time.monotonic() + within
        while words not in self.text:
            if not self._read(until):
                raise AssertionError(f"{words!r} did not appear; the terminal shows:\n{self.text}")
        seen, _, self.text = self.text.partition(words)
        return seen + words

    def press(self, key: str, words: str) -> str:
        """Type a key until these words tell that it was taken, as a person does: one under the guard is thrown away."""
        until = time.monotonic() + BOUND
        while time.monotonic() < until:
            self.type(key)
            if not self.stays_without(words, AGAIN):
                return self.shows(words)
        raise AssertionError(f"{key!r} was not taken; the terminal shows:\n{self.text}")

    def stays_without(self, words: str, seconds: float) -> bool:
        """Whether these words do not appear for so long."""
        until = time.monotonic() + seconds
        while words not in self.text:
            if not self._read(until):
                return True
        return False

    def ends(self) -> int:
        """The exit status, once the command has ended."""
        return self._process.wait(BOUND)

    def _read(self, until: float) -> bool:
        if not select.select([self._fd], [], [], max(0.0, until - time.monotonic()))[0]:
            return False
        styled = os.read(self._fd, 65536).decode(errors="replace")
        self.text += re.sub(r"\x1b\[[0-9;]*m", "", styled).replace("\r\n", "\n")
        return True
