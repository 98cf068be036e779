"""How the daemon and the keeper feel: memory, descriptors, and how late their loops are."""

import os
from collections import deque
from pathlib import Path

import anyio

from handrail import __version__
from handrail.server.api.call_models import Health, ProcessHealth
from handrail.terminal.keeper_client import Keeper, KeeperError

BEAT_SECONDS = 0.02
"""Between two looks at the clock: fine enough to see a stall of a few milliseconds."""
BEATS_KEPT = 3000
"""One minute of beats."""


class Pulse:
    """Measures how late the loop wakes up."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._late: deque[float] = deque(maxlen=BEATS_KEPT)

    async def run(self) -> None:
        while True:
            due = anyio.current_time() + BEAT_SECONDS
            await anyio.sleep(BEAT_SECONDS)
            self._late.append(anyio.current_time() - due)

    async def health(self) -> Health:
        return Health(ok=True, version=__version__, daemon=self._daemon(), keeper=await self._keepers())

    def _daemon(self) -> ProcessHealth:
        late = sorted(self._late) or [0.0]
        return ProcessHealth(
            pid=os.getpid(),
            rss_bytes=_resident(),
            descriptors=_descriptors(),
            loop_lag_ms=late[int(len(late) * 0.99) - 1] * 1000,
        )

    async def _keepers(self) -> ProcessHealth | None:
        try:
            found = await self._keeper.health()
        except KeeperError:
            return None
        return ProcessHealth(
            pid=self._keeper.pid,
            rss_bytes=found.rss_bytes,
            descriptors=found.descriptors,
            loop_lag_ms=found.lag_ms,
        )


def _resident() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _descriptors() -> int:
    for listing in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(listing))  # noqa: PTH208  (a count, not paths)
        except OSError:
            continue
    return 0
