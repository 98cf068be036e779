"""Whoever is the daemon at the moment, and what it is told.

Owns the seat: one daemon at a time. Does not know what is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from handrail.keeper.connection import close_all

if TYPE_CHECKING:
    from handrail.keeper.connection import Connection


class Audience:
    """The daemon's seat; what is told to an empty one is dropped, since the next daemon gets every fact anew."""

    def __init__(self) -> None:
        self.daemon: Connection | None = None

    @property
    def has_room(self) -> bool:
        """Whether a notice that may as well come later would go out now, instead of waiting in memory."""
        return self.daemon is None or not self.daemon.wants_to_send

    def tell(self, message: object, descriptors: tuple[int, ...] = ()) -> None:
        if self.daemon is None:
            close_all(descriptors)
        else:
            self.daemon.send(message, descriptors)
