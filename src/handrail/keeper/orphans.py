"""What falls to the keeper itself when a warden is killed, and its end.

Owns the set of the keeper's own children that are to live. Does not know terminals.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from handrail.keeper import lineage, tree
from handrail.keeper.ending import Ending

if TYPE_CHECKING:
    from handrail.keeper.facts import Report


class Orphans:
    """Marked processes whose warden is dead: they are killed without a grace."""

    def __init__(self, reference: int) -> None:
        self.spared: set[int] = set()
        """Wardens, daemons we started, and what cannot be killed."""
        self._reference = reference
        self._ending: Ending | None = None

    def look(self) -> None:
        """Begin to end what has fallen to us, if anything has."""
        for pid in set(tree.children(os.getpid())) - self.spared:
            if not lineage.is_marked(pid, self._reference):
                self.spared.add(pid)  # a daemon's own child: not ours to end
            elif self._ending is None:
                self._ending = Ending("warden gone", 0, self.spared)

    def go_on(self) -> Report | None:
        """Another round of killing; the report once nothing of them is left."""
        if self._ending is None:
            return None
        stuck = self._ending.go_on()
        living = set(tree.children(os.getpid())) - self.spared
        if living and not stuck:
            return None
        report = self._ending.report(left=bool(living))
        self.spared |= living
        self._ending = None
        return report

    def wait_at_most(self) -> float | None:
        return None if self._ending is None else self._ending.wait_at_most()
