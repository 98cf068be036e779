"""When to look for a daemon again: after a loss, after a failure, after a daemon that said bye.

Owns that decision and its delays. Does not know sockets or lines.
"""

from __future__ import annotations

import time

STEADY_SECONDS = 10.0
"""A connection that lived so long was sound: after it, looking begins without delay."""

DELAY_MAX = 5.0
"""Seconds; bounds the wait between two looks when daemons keep dying."""

FAILURE_SECONDS = 5.0
"""For so long a failure is not tried again; bounds what a busy client makes a broken machine do."""


class Retry:
    """The plan of one door for its next look; at the beginning that is at once."""

    def __init__(self) -> None:
        self.at: float | None = 0.0
        """When to look, whether or not the client asks; None: only when it does."""
        self._delay = 0.0
        self._failed_at = 0.0
        self._why = ""

    def is_due(self, asked: bool) -> bool:
        return asked if self.at is None else time.monotonic() >= self.at

    def lost(self, since: float, said_bye: bool) -> None:
        """A daemon that was told to stop stays stopped until the client asks; one that died is replaced."""
        now = time.monotonic()
        self._delay = 0.0 if now - since > STEADY_SECONDS else min(DELAY_MAX, self._delay * 2 or 0.05)
        self.at = None if said_bye else now + self._delay

    def looked(self) -> None:
        self.at = None

    def failed(self, why: str) -> None:
        self._failed_at = time.monotonic()
        self._why = why

    @property
    def recent_failure(self) -> str:
        """Why a look would fail that is taken now, or nothing where that is not known."""
        return self._why if time.monotonic() < self._failed_at + FAILURE_SECONDS else ""
