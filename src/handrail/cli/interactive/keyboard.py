"""Keyboard input for approvals: single keys, the list of open approvals, and yes/no confirmation.

A key counts only if it was pressed after the question was shown and a short guard time has passed, and if the approval is
still open. So keys that were typed for something else answer nothing.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from handrail.cli.client import Link, Live
from handrail.cli.render.output import say

if TYPE_CHECKING:
    from handrail.cli.wire import ApprovalView, Entry

GUARD_SECONDS = 0.7
"""Seconds in which a new question ignores keys: the person may be typing something else."""


class Keyboard:
    """The terminal on stdin, in cbreak mode without echo while the context is open."""

    def __init__(self, descriptor: int | None = None) -> None:
        self._fd = sys.stdin.fileno() if descriptor is None else descriptor
        self._saved_mode = termios.tcgetattr(self._fd)
        self._ready_at = 0.0

    def __enter__(self) -> Self:
        tty.setcbreak(self._fd, termios.TCSANOW)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        termios.tcsetattr(self._fd, termios.TCSAFLUSH, self._saved_mode)

    def guard(self) -> None:
        """Discard pending input, and ignore keys for GUARD_SECONDS."""
        termios.tcflush(self._fd, termios.TCIFLUSH)
        self._ready_at = time.monotonic() + GUARD_SECONDS

    def key(self, seconds: float) -> str | None:
        """The key pressed within this time. None for none or several: those are a paste, a repeat or a function key."""
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
        """Read a line with the terminal's line editing; input typed before `ask` is discarded."""
        with self.normal_mode():
            ask()
            return os.read(self._fd, 64 << 10).decode(errors="replace").strip()

    @contextmanager
    def normal_mode(self) -> Generator[None]:
        """Restore the normal terminal mode, for a line or another program. Unread input is discarded."""
        termios.tcsetattr(self._fd, termios.TCSAFLUSH, self._saved_mode)
        try:
            yield
        finally:
            tty.setcbreak(self._fd, termios.TCSAFLUSH)


class TypedLines:
    """Lines that a person types while something else is shown. Nothing here waits."""

    def __init__(self, descriptor: int | None = None) -> None:
        self._fd = sys.stdin.fileno() if descriptor is None else descriptor
        self._is_open = os.isatty(self._fd)

    def poll(self) -> str:
        """The next whole line; empty without one. The terminal edits a line until Enter."""
        if not self._is_open or not self._is_in_foreground() or not select.select([self._fd], [], [], 0)[0]:
            return ""
        typed = os.read(self._fd, 64 << 10)
        self._is_open = bool(typed)  # at its end the terminal is gone, or the person pressed Ctrl-D
        return typed.decode(errors="replace").strip()

    def _is_in_foreground(self) -> bool:
        """Whether a read would stop this process instead."""
        try:
            return os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            return False


class Inbox:
    """Ids of open approvals, oldest first, kept up to date from journal events."""

    def __init__(self, waiting: list[str], also: Callable[[list[Entry]], None] = lambda _: None) -> None:
        """`also` is called with the same entries, so that an open question does not hold them back from others."""
        self._waiting = dict.fromkeys(waiting)
        self._also = also

    def apply(self, entries: list[Entry]) -> None:
        self._also(entries)
        for entry in entries:
            event = entry["event"]
            match event["kind"]:
                case "ApprovalOpened":
                    self._waiting[event["approval"]] = None
                case "ApprovalAnswered" | "ApprovalWithdrawn" | "ApprovalExpired":
                    self._waiting.pop(event["approval"], None)
                case _:
                    pass

    def drop(self, id: str) -> None:
        self._waiting.pop(id, None)

    def first(self) -> str | None:
        return next(iter(self._waiting), None)

    def __contains__(self, id: str) -> bool:
        return id in self._waiting


TICK = 0.1
"""Seconds between two polls of the journal while a question is open."""
T = TypeVar("T")


class ApprovalKeys:
    """Reads the keys that answer one approval, and watches whether it is still open."""

    def __init__(self, live: Live, keyboard: Keyboard, inbox: Inbox, approval: ApprovalView) -> None:
        self._live = live
        self.keyboard = keyboard
        self._inbox = inbox
        self._id = approval["id"]
        self._open = approval["status"] == "open"

    @property
    def link(self) -> Link:
        return self._live.link

    def wait_for_key(self, interpret: Callable[[str], T | None]) -> T | None:
        """The first result of `interpret` that is not None; None if the approval is no longer open."""
        self.keyboard.guard()
        link = self.link
        while self._open and self._id in self._inbox:
            key = self.keyboard.key(TICK)
            self._inbox.apply(self._live.wait(0))
            if self.link is not link:  # reconnected: keys typed meanwhile do not count
                link = self.link
                self.keyboard.guard()
            elif key and (result := interpret(key)) is not None:
                return result
        return None

    def line(self, prompt: str) -> str:
        """Show a prompt and read a line."""
        return self.keyboard.line(lambda: say(prompt))

    def drop(self) -> None:
        """Remove this approval from the inbox."""
        self._inbox.drop(self._id)


WAIT_SECONDS = 3600.0
"""Seconds of one wait for a key; the wait is repeated."""


def confirm(question: str) -> bool:
    """Ask for y or n. Without a terminal the answer is yes: a script has no one to ask."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    with Keyboard() as keyboard:
        say((question, "bold"), "   [y]es   [n]o")
        keyboard.guard()
        while True:
            match keyboard.key(WAIT_SECONDS):
                case "y" | "Y":
                    return True
                case "n" | "N" | "q" | "\x1b" | "\n" | "\r":
                    return False
                case _:
                    pass
