"""The marks of every terminal that is being asked about.

Owns which marks are held in memory, and that reading them never stalls the loop. It does not know what a mark looks
like (marks.py).
"""

from collections import OrderedDict

import anyio
import anyio.to_thread

from handrail.terminal.output.tail import Tail
from handrail.terminal.shells.marks import Marks

MOST = 200
"""Terminals whose marks are held; those of another are read anew from its output."""


class Marked:
    """Marks by terminal, read as far as the output has come."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, tuple[Marks, anyio.Lock]] = OrderedDict()

    async def of(self, id: str, nonce: str, tail: Tail) -> Marks | None:
        """The marks of a terminal up to now; None when its shell makes none."""
        if not nonce:
            return None
        marks, lock = self._hold(id, nonce)
        async with lock:
            await anyio.to_thread.run_sync(marks.catch_up, tail)
        return marks

    def _hold(self, id: str, nonce: str) -> tuple[Marks, anyio.Lock]:
        if id not in self._held:
            self._held[id] = Marks(nonce), anyio.Lock()
        self._held.move_to_end(id)
        while len(self._held) > MOST:
            self._held.popitem(last=False)
        return self._held[id]
