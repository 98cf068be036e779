"""Fixed-size thread pools, separate from anyio's default limiter.

A caller that requests a hundred screens fills its own pool and does not delay other thread work in the daemon.
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


class ThreadPool:
    """A thread pool of fixed size. Waiting for a free thread does not affect other pools."""

    def __init__(self, name: str, size: int) -> None:
        self._size = size
        self._limiter: RunVar[anyio.CapacityLimiter] = RunVar(f"room {name}")

    async def run(self, work: Callable[[*Args], T], *args: *Args, abandon: bool = False) -> T:
        """Run `work` in a thread; with `abandon`, a cancelled caller does not wait until it ends."""
        return await anyio.to_thread.run_sync(
            work, *args, abandon_on_cancel=abandon, limiter=self._get_limiter()
        )

    def _get_limiter(self) -> anyio.CapacityLimiter:
        try:
            return self._limiter.get()
        except LookupError:
            limiter = anyio.CapacityLimiter(self._size)
            self._limiter.set(limiter)
            return limiter


AGENTS = ThreadPool("agents", 2)
"""Screens and searches for agents, which may request any number of them."""
PEOPLE = ThreadPool("people", 4)
"""Screens and searches for people and for Handrail's own use, so that agents cannot delay them."""
FILES = ThreadPool("files", 8)
"""File searches; each thread waits for a ripgrep process."""
