"""Restart of a daemon that ended unexpectedly: with backoff, and not without end.

Decides when; the server starts the process. Does not know how a daemon is started or why it ended.
"""

from __future__ import annotations

import time
from collections import deque

FIRST_SECONDS = 0.1
"""Delay of the first restart: a keeper that is told to end in the same moment must not start a daemon."""
BACKOFF_SECONDS = 1.0
"""Delay of the second restart within CRASH_SECONDS; each further one is delayed twice as long."""
RESTARTS_MAX = 5
"""Restarts within CRASH_SECONDS; bounds the load of a daemon that crashes again and again."""
CRASH_SECONDS = 600.0
"""Seconds for which a restart counts towards the backoff and the limit."""


class Supervisor:
    """When to restart the daemon. Monotonic times in seconds."""

    def __init__(self) -> None:
        self.restarts = 0
        """Restarts since the keeper began."""
        self.restarted_at = 0.0
        """When the last restart was, in seconds since 1970; 0 if there was none."""
        self.has_given_up = False
        """Whether the daemon ended too often. Then it must be started from outside."""
        self._recent: deque[float] = deque()
        self._due: float | None = None

    @property
    def is_pending(self) -> bool:
        """Whether a restart is planned."""
        return self._due is not None

    def lost(self) -> None:
        """The daemon ended unexpectedly, or did not come up: plan a restart, unless it ended too often."""
        now = time.monotonic()
        while self._recent and self._recent[0] < now - CRASH_SECONDS:
            self._recent.popleft()
        crashes = len(self._recent)
        self.has_given_up = crashes >= RESTARTS_MAX
        delay = FIRST_SECONDS if crashes == 0 else BACKOFF_SECONDS * 2.0 ** (crashes - 1)
        self._due = None if self.has_given_up else now + delay

    def take_due(self) -> bool:
        """Whether to restart the daemon now. True once for each planned restart."""
        return self._due is not None and time.monotonic() >= self._due and self.take_pending()

    def take_pending(self) -> bool:
        """Like `take_due`, without its delay: a client asks for the daemon."""
        if self._due is None:
            return False
        self._due = None
        self._recent.append(time.monotonic())
        self.restarts += 1
        self.restarted_at = time.time()
        return True

    def cancel(self) -> None:
        """A daemon is here, or none is wanted."""
        self._due = None
        self.has_given_up = False

    def wait_at_most(self) -> float | None:
        """Seconds until the planned restart is due."""
        return None if self._due is None else self._due - time.monotonic()
