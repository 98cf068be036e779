"""When to tell someone how far a terminal's output has come: at once, then no more than every so often.

Owns which terminals have grown unannounced. Does not know sockets; it holds one entry per terminal, never a queue,
so a listener that does not read costs nothing.
"""

from __future__ import annotations

import time

APART = 0.02
"""Seconds between two notices for one terminal: a storm must not become a storm of messages."""


class Growth:
    """Terminals whose growth has not been told yet."""

    def __init__(self, apart: float = APART) -> None:
        self._apart = apart
        self._due: dict[str, float] = {}
        self._told: dict[str, float] = {}

    def grew(self, terminal: str) -> None:
        if terminal not in self._due:
            self._due[terminal] = self._told.get(terminal, 0.0) + self._apart

    def take_due(self) -> list[str]:
        """The terminals to tell of now."""
        now = time.monotonic()
        due = [terminal for terminal, at in self._due.items() if at <= now]
        for terminal in due:
            del self._due[terminal]
            self._told[terminal] = now
        return due

    def wait_at_most(self) -> float | None:
        return max(0.0, min(self._due.values()) - time.monotonic()) if self._due else None

    def forget(self, terminal: str) -> None:
        self._due.pop(terminal, None)
        self._told.pop(terminal, None)
