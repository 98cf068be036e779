"""The keeper's loop: who is readable or writable, and how long a pass took.

Owns the selector. Does not know what its callbacks do; they must not block.
"""

from __future__ import annotations

import selectors
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE


class Loop:
    """Calls back whoever is ready; `crowd` is how many were ready in this pass."""

    def __init__(self) -> None:
        self.crowd = 1
        self._selector = selectors.DefaultSelector()
        self._worst = 0.0

    def watch(self, fd: int, events: int, callback: Callable[[int], None]) -> None:
        """Watch a descriptor, or change what is watched of it; no events means no longer."""
        known = self._selector.get_map().get(fd)
        if known is None:
            if events:
                self._selector.register(fd, events, callback)
        elif not events:
            self._selector.unregister(fd)
        elif known.events != events:
            self._selector.modify(fd, events, known.data)

    def once(self, timeout: float | None) -> None:
        ready = self._selector.select(timeout)
        began = time.monotonic()
        self.crowd = max(1, len(ready))
        for key, events in ready:
            # An earlier callback of this pass may have closed it, and its number may be another's by now.
            if self._selector.get_map().get(key.fd) is key:
                key.data(events)
        self._worst = max(self._worst, time.monotonic() - began)

    def take_worst(self) -> float:
        """The longest pass since this was last asked, in seconds."""
        worst, self._worst = self._worst, 0.0
        return worst
