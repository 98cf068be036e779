"""Whoever is the daemon at the moment, and what it is told.

Owns the seat, one daemon at a time, and what it may hear late. Does not know what is said.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from handrail.keeper.connection import close_all

if TYPE_CHECKING:
    from handrail.keeper.connection import Connection
    from handrail.keeper.protocol import Attached, Overheard, Resized

HEARD_MAX = 256 * 1024
"""Bytes typed in windows that wait for a daemon; what is older is lost to the history."""
HEARD_COST = 256
"""What one entry counts for beside its bytes, so that a thousand single keys are bounded too."""


class Audience:
    """The daemon's seat; what is told to an empty one is dropped, since the next daemon gets every fact anew.

    What was typed in windows is no such fact: it waits for the next one.
    """

    def __init__(self) -> None:
        self.daemon: Connection | None = None
        self._latest: dict[tuple[str, str], Attached | Resized] = {}
        self._heard: deque[Overheard] = deque()
        self._heard_size = 0

    @property
    def has_room(self) -> bool:
        """Whether a notice that may as well come later would go out now, instead of waiting in memory."""
        return self.daemon is None or not self.daemon.wants_to_send

    def tell(self, message: object, descriptors: tuple[int, ...] = ()) -> None:
        if self.daemon is None:
            close_all(descriptors)
        else:
            self.daemon.send(message, descriptors)

    def tell_latest(self, notice: Attached | Resized) -> None:
        """Of a daemon that reads slowly, only the latest of a kind waits for each terminal."""
        self._latest[type(notice).__name__, notice.terminal] = notice
        self.catch_up()

    def overhear(self, heard: Overheard) -> None:
        self._heard.append(heard)
        self._heard_size += HEARD_COST + len(heard.data)
        while self._heard_size > HEARD_MAX:
            self._next_heard()
        self.catch_up()

    def catch_up(self) -> None:
        """Tell what waits, as far as the daemon reads."""
        if self.daemon is None:
            self._latest.clear()
            return
        while self._latest and self.has_room:
            self.daemon.send(self._latest.pop(next(iter(self._latest))))
        while self._heard and self.has_room:
            self.daemon.send(self._next_heard())

    def _next_heard(self) -> Overheard:
        heard = self._heard.popleft()
        self._heard_size -= HEARD_COST + len(heard.data)
        return heard
