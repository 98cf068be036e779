"""How long contents are kept: those that were replaced, so many days and so many bytes of all together; pictures, for as
long as a conversation points to them.

Owns when they go. What a call did stays in the record; only that it can be undone does not.
"""

import logging
from abc import ABC, abstractmethod

import anyio
import anyio.to_thread

from handrail.store.blobs import Blobs
from handrail.store.query import Records

log = logging.getLogger(__name__)

APART = 3600.0
"""Seconds between two looks at what is kept."""
YOUNG = 10.0
"""Seconds that a picture is kept in any case: it is kept before it is said."""
_DAY = 86_400
_NO_LIMIT = 1 << 62


class _Retention(ABC):
    """Looks now and then."""

    async def run(self) -> None:
        """Now, and every hour; until cancelled."""
        while True:
            try:
                await self.prune()
            except OSError as problem:
                log.warning("old contents could not be let go: %s", problem)
            await anyio.sleep(APART)

    @abstractmethod
    async def prune(self) -> int:
        """How many went."""


class BlobRetention(_Retention):
    """Keeps what is kept for undo within the person's limits."""

    def __init__(self, blobs: Blobs, keep_days: float, keep_bytes: int) -> None:
        self._blobs = blobs
        self._keep_days = keep_days
        self._keep_bytes = keep_bytes

    async def prune(self) -> int:
        return await anyio.to_thread.run_sync(self._blobs.prune, self._keep_days, self._keep_bytes)


class PictureRetention(_Retention):
    """Lets go of pictures that no conversation shows any more."""

    def __init__(self, images: Blobs, records: Records) -> None:
        self._images = images
        self._records = records

    async def prune(self) -> int:
        shown = await self._records.pictures()
        return await anyio.to_thread.run_sync(self._images.prune, YOUNG / _DAY, _NO_LIMIT, shown.__contains__)
