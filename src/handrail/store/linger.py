"""A while that may pass before something is done, so that what comes meanwhile is done with it.

Owns one timer. It does not know what for.
"""

import time
from collections.abc import Callable

from handrail.store.loop import later_here


class Linger:
    """Runs a function `seconds` after it was first asked to, unless it was done meanwhile. Belongs to its loop."""

    def __init__(self, seconds: float, function: Callable[[], object]) -> None:
        self._seconds = seconds
        self._function = function
        self._later = later_here()
        self._due: float | None = None
        self._armed = False

    def ask(self) -> None:
        """Have it done in a while; who asks again meanwhile does not put it off."""
        if self._due is None:
            self._due = time.monotonic() + self._seconds
            self._arm(self._seconds)

    def met(self) -> None:
        """It has been done: nothing is asked for any more."""
        self._due = None

    def _arm(self, seconds: float) -> None:
        if not self._armed:
            self._armed = True
            self._later(seconds, self._ring)

    def _ring(self) -> None:
        self._armed = False
        if self._due is None:
            return
        left = self._due - time.monotonic()
        if left > 0:  # what this was set for was done, and it was asked for again
            self._arm(left)
        else:
            self._due = None
            self._function()
