"""The keeper's event loop: a selector that calls back when a descriptor is ready, and measures its slowest pass.

Callbacks must not block.
"""

from __future__ import annotations

import math
import select
import selectors
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE


class Loop:
    """Calls the callbacks of ready descriptors; `ready_count` is the number of descriptors ready in this pass."""

    def __init__(self) -> None:
        self.ready_count = 1
        self._selector = selectors.DefaultSelector()
        self._worst = 0.0
        self._checked_at = 0.0
        self._next_timer = math.inf

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
        self._next_timer = math.inf if timeout is None else time.monotonic() + timeout
        ready = self._selector.select(timeout)
        self._checked_at = time.monotonic()
        self.ready_count = max(1, len(ready))
        for key, events in ready:
            # An earlier callback in this pass may have closed the descriptor, and its number may be reused already.
            if self._selector.get_map().get(key.fd) is key:
                key.data(events)
        self._note_pass(time.monotonic())

    def wait_alone(self, fd: int, until: float) -> Generator[None]:
        """Yield each time `fd` is readable; end at `until`, at the next timer, or if another descriptor is ready.

        For use in the callback of `fd`. It saves a flood of output the passes of the loop between two reads.
        """
        until = min(until, self._next_timer)
        if until <= time.monotonic():
            return
        key = self._selector.unregister(fd)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.register(self._selector.fileno(), select.POLLIN)  # readable if another descriptor is ready
        try:
            while (now := time.monotonic()) < until:
                self._note_pass(now)
                ready = poll.poll((until - now) * 1000)
                self._checked_at = time.monotonic()
                if len(ready) != 1 or ready[0][0] != fd:
                    return
                yield
        finally:
            self._selector.register(fd, key.events, key.data)

    def _note_pass(self, now: float) -> None:
        """Record how long other descriptors were not checked."""
        self._worst = max(self._worst, now - self._checked_at)

    def take_worst(self) -> float:
        """Return and reset the duration of the longest pass, in seconds."""
        worst, self._worst = self._worst, 0.0
        return worst
