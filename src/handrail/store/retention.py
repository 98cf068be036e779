"""How long replaced contents are kept: so many days, and so many bytes of all together.

Owns when old ones go. What a call did stays in the record; only that it can be undone does not.
"""

import logging

import anyio
import anyio.to_thread

from handrail.store.blobs import Blobs

log = logging.getLogger(__name__)

APART = 3600.0
"""Seconds between two looks at what is kept."""


class BlobRetention:
    """Keeps what is kept for undo within the person's limits."""

    def __init__(self, blobs: Blobs, keep_days: float, keep_bytes: int) -> None:
        self._blobs = blobs
        self._keep_days = keep_days
        self._keep_bytes = keep_bytes

    async def run(self) -> None:
        """Now, and every hour; until cancelled."""
        while True:
            try:
                await self.prune()
            except OSError as problem:
                log.warning("old contents could not be let go: %s", problem)
            await anyio.sleep(APART)

    async def prune(self) -> int:
        """How many went."""
        return await anyio.to_thread.run_sync(self._blobs.prune, self._keep_days, self._keep_bytes)
