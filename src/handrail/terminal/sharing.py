"""The words in which a terminal is shared: who types, who has it, what it asks, and whoever is told.

Values only; they do not know the terminal they are about.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from handrail.store.value import Sure
    from handrail.terminal.terminal import Terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class Typist:
    """Who types."""

    person: bool
    name: str
    """As the history shows it: `claude-code`, `a person on the page`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """What runs in a terminal waits for input."""

    prompt: str
    sure: Sure
    secret: bool
    """It hides what is typed: only a person may answer."""
    since: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A person has it: agents cannot type."""

    by: str
    holds: bool
    """Until it is released; otherwise only while the person types."""


class TypingRefused(Exception):
    """Nothing was typed; the sentence says why, and what to do."""


class NotReading(TypingRefused):
    """The program left so much unread that nothing more fits: the same may be typed again a little later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Who is told what happens in terminals, at once and in order. None of these may block or await."""

    typed: Callable[[Terminal, Typist, bytes | None, int], None]
    """None for the bytes where the terminal hid them; the number is how far its output had come."""
    taken: Callable[[Terminal], None]
    released: Callable[[Terminal, str], None]
    asked: Callable[[Terminal], None]
    went_on: Callable[[Terminal], None]
