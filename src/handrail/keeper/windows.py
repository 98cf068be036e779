"""The windows on one terminal: people who see it and type there, whether or not a daemon runs.

Owns who they are and what each has still to be told: at once what happens once, and of what changes again and again
only the latest, when it reads. So a window that never reads costs a few lines. Does not know what they may ask for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from handrail.keeper.growth import Growth
from handrail.keeper.protocol import Grown, Resized

if TYPE_CHECKING:
    from collections.abc import Iterator

    from handrail.keeper.connection import Connection
    from handrail.keeper.protocol import Exited, Swept, Unrecorded
    from handrail.keeper.spool import Spool

APART = 0.005
"""Seconds between two notices of growth to one window: somebody waits for the echo of a key."""
WINDOWS_MAX = 32
"""Windows on one terminal: each costs the keeper a descriptor."""


class Window:
    """One peer's view of a terminal; with `ends`, the terminal ends when it is closed."""

    def __init__(self, peer: Connection, terminal: str, spool: Spool, ends: bool) -> None:
        self.peer = peer
        self.ends = ends
        self._terminal = terminal
        self._spool = spool
        self._growth = Growth(APART)
        self._resized: Resized | None = None

    def grew(self) -> None:
        self._growth.grew(self._terminal)

    def resized(self, cols: int, rows: int) -> None:
        self._resized = Resized(self._terminal, cols, rows)
        self.catch_up()

    def catch_up(self) -> None:
        """Tell what is due, unless the peer has not read what it was told before."""
        if not self.peer.wants_to_send and self._resized is not None:
            self.peer.send(self._resized)
            self._resized = None
        if not self.peer.wants_to_send and self._growth.take_due():
            self.peer.send(Grown(self._terminal, self._spool.size))

    def wait_at_most(self) -> float | None:
        return None if self.peer.wants_to_send else self._growth.wait_at_most()


class Windows:
    """All windows on one terminal; true while there is any."""

    def __init__(self, terminal: str, spool: Spool) -> None:
        self._terminal, self._spool = terminal, spool
        self._open: list[Window] = []

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Window]:
        return iter(self._open)

    def open(self, peer: Connection, ends: bool) -> Window:
        window = Window(peer, self._terminal, self._spool, ends)
        self._open.append(window)
        return window

    def close(self, window: Window) -> None:
        self._open.remove(window)

    def tell(self, fact: Exited | Swept | Unrecorded) -> None:
        for window in self._open:
            window.peer.send(fact)

    def grew(self) -> None:
        for window in self._open:
            window.grew()

    def hang_up(self) -> None:
        """Nothing more will ever be told: let each go once it has read what was."""
        for window in self._open:
            window.peer.closing = True
