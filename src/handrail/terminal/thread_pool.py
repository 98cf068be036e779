"""Rooms for work that takes a while: so much at once, and no more, beside everything else the daemon does in threads.

Owns how many. Whoever asks for a hundred screens at once waits for them; nobody else does. It does not know the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

if TYPE_CHECKING:
    from collections.abc import Callable


T = TypeVar("T")
Args = TypeVarTuple("Args")


class Room:
    """Threads of its own; one who waits for one holds up nobody outside."""

    def __init__(self, name: str, size: int) -> None:
        self._size = size
        self._limiter: RunVar[anyio.CapacityLimiter] = RunVar(f"room {name}")

    async def run(self, work: Callable[[*Args], T], *args: *Args, abandon: bool = False) -> T:
        """Run it in a thread; with `abandon`, who is cancelled does not wait for its end."""
        return await anyio.to_thread.run_sync(
            work, *args, abandon_on_cancel=abandon, limiter=self._its_limiter()
        )

    def _its_limiter(self) -> anyio.CapacityLimiter:
        try:
            return self._limiter.get()
        except LookupError:
            limiter = anyio.CapacityLimiter(self._size)
            self._limiter.set(limiter)
            return limiter


AGENTS = Room("agents", 2)
PEOPLE = Room("people", 4)
"""Screens and searches for agents, who may ask for any number; and for people and for Handrail itself."""
FILES = Room("files", 8)
"""Searches of files, each of which waits for a process."""
