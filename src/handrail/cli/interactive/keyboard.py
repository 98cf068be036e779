"""Keys, one at a time, that a person pressed after seeing what they answer.

Owns the terminal's mode and the guard against keys meant for something else. Does not know what a key means.

A person's hand at one question: keys that were pressed after all of it was shown, while it is still open.

A last look before something is done: one key, from a person who has seen what it is.

What waits for the person at this terminal, as the facts tell it.
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
from typing import Self, TypeVar

from handrail.cli.client import Link, Live
from handrail.cli.render.formats import Row
from handrail.cli.render.output import say

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


class Inbox:
    """Questions by their ids, oldest first."""

    def __init__(self, waiting: list[str], also: Callable[[list[Row]], None] = lambda _: None) -> None:
        """`also` hears every fact, too: whoever puts a question takes in what happens meanwhile."""
        self._waiting = dict.fromkeys(waiting)
        self._also = also

    def hear(self, entries: list[Row]) -> None:
        self._also(entries)
        for entry in entries:
            event: Row = entry["event"]
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
"""Seconds between two looks at what happened elsewhere while a question stands."""
T = TypeVar("T")


class Hand:
    """At one question."""

    def __init__(self, live: Live, keyboard: Keyboard, inbox: Inbox, asked: Row) -> None:
        self._live = live
        self.keyboard = keyboard
        self._inbox = inbox
        self._id: str = asked["id"]
        self._open = asked["status"] == "open"

    @property
    def link(self) -> Link:
        return self._live.link

    def pressed(self, means: Callable[[str], T | None]) -> T | None:
        """What the first key means that means something; None when the question is no longer open."""
        self.keyboard.guard()
        link = self.link
        while self._open and self._id in self._inbox:
            key = self.keyboard.key(TICK)
            self._inbox.hear(self._live.wait(0))
            if self.link is not link:  # a new daemon: what was typed meanwhile answers nothing
                link = self.link
                self.keyboard.guard()
            elif key and (found := means(key)) is not None:
                return found
        return None

    def line(self, words: str) -> str:
        """A whole line, typed after these words were shown."""
        return self.keyboard.line(lambda: say(words))

    def drop(self) -> None:
        """Ask this one no more."""
        self._inbox.drop(self._id)


LOOK_SECONDS = 3600.0
"""For one wait for a key; there is another after it."""


def sure(question: str) -> bool:
    """Whether the person at this terminal says yes, by a key pressed after the question was shown."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    with Keyboard() as keyboard:
        say((question, "bold"), "   [y]es   [n]o")
        keyboard.guard()
        while True:
            match keyboard.key(LOOK_SECONDS):
                case "y" | "Y":
                    return True
                case "n" | "N" | "q" | "\x1b" | "\n" | "\r":
                    return False
                case _:
                    pass
