"""A person's hand at one question: keys that were pressed after all of it was shown, while it is still open.

Owns that nothing else counts as an answer: what was typed before, what was meant for a daemon that is gone, what comes
after somebody else was first. Does not know what a key means.
"""

from collections.abc import Callable
from typing import TypeVar

from handrail.cli.inbox import Inbox
from handrail.cli.keyboard import Keyboard
from handrail.cli.link import Link
from handrail.cli.live import Live
from handrail.cli.show import say
from handrail.cli.words import Row

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
