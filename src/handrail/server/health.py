"""Health of the daemon and the keeper: memory, file descriptors, event-loop lag."""

import os
import time
from collections import deque
from pathlib import Path

import anyio
from starlette.requests import Request

from handrail import __version__
from handrail.server.api.daemon_models import Health, ProcessHealth
from handrail.terminal.keeper_client import Keeper, KeeperError, KeeperHangs

BEAT_SECONDS = 0.02
"""Sampling interval of the loop lag: short enough to catch a stall of a few milliseconds."""
BEATS_KEPT = 3000
"""Lag samples kept: one minute."""
WATCHED_SECONDS = 120.0
"""How long sampling goes on after a request for the health: an idle daemon must not wake up."""


class LoopMonitor:
    """Measures the lag of the event loop, for a while after each request for the health."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._lags: deque[float] = deque(maxlen=BEATS_KEPT)
        self._until = 0.0
        self._requested = anyio.Event()

    async def run(self) -> None:
        while True:
            await self._requested.wait()
            # Not the loop's own clock, which stands still during a turn of the loop.
            while (due := time.monotonic() + BEAT_SECONDS) < self._until:
                await anyio.sleep(BEAT_SECONDS)
                self._lags.append(max(0.0, time.monotonic() - due))
            self._lags.clear()
            self._requested = anyio.Event()

    async def health(self) -> Health:
        self._until = time.monotonic() + WATCHED_SECONDS
        self._requested.set()
        daemon = self._daemon_health()
        try:
            keeper = await self._keeper.health()
        except KeeperHangs:
            return Health(ok=True, version=__version__, daemon=daemon, hung_keeper=self._keeper.pid)
        except KeeperError:  # it is gone, and another is being started
            return Health(ok=True, version=__version__, daemon=daemon)
        return Health(
            ok=True,
            version=__version__,
            daemon=daemon,
            keeper=ProcessHealth(
                pid=self._keeper.pid,
                rss_bytes=keeper.rss_bytes,
                descriptors=keeper.descriptors,
                loop_lag_ms=keeper.lag_ms,
            ),
            restarts=keeper.restarts,
            restarted_at=int(keeper.restarted_at * 1000) or None,
        )

    def _daemon_health(self) -> ProcessHealth:
        lags = sorted(self._lags) or [0.0]
        return ProcessHealth(
            pid=os.getpid(),
            rss_bytes=_resident_bytes(),
            descriptors=_count_descriptors(),
            loop_lag_ms=lags[int(len(lags) * 0.99) - 1] * 1000,
        )


async def build_health(monitor: LoopMonitor, request: Request) -> Health:
    """The answer to a request for the health; the process figures are only for a signed-in person."""
    if request.scope.get("handrail.person") is None:
        return Health(ok=True, version=__version__)
    return await monitor.health()


def _resident_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _count_descriptors() -> int:
    for listing in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(listing))  # noqa: PTH208  (a count, not paths)
        except OSError:
            continue
    return 0
