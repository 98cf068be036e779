"""The keeper's event loop: a selector that calls back when a descriptor is ready, and measures its slowest pass.

Callbacks must not block.
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
    """Calls the callbacks of ready descriptors; `ready_count` is the number of descriptors ready in this pass."""

    def __init__(self) -> None:
        self.ready_count = 1
        self._selector = selectors.DefaultSelector()
        self._worst = 0.0

    def watch(self, fd: int, events: int, callback: Callable[[int], None]) -> None:
        """Watch a descriptor for these events, or change the events; 0 stops watching."""
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
        self.ready_count = max(1, len(ready))
        for key, events in ready:
            # An earlier callback in this pass may have closed the descriptor, and its number may be reused already.
            if self._selector.get_map().get(key.fd) is key:
                key.data(events)
        self._worst = max(self._worst, time.monotonic() - began)

    def take_worst(self) -> float:
        """Return and reset the duration of the longest pass, in seconds."""
        worst, self._worst = self._worst, 0.0
        return worst
