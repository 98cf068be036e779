"""Delete the output of ended terminals by age and total size.

Calls `forgotten` before each deletion and waits until it is journaled. The terminal's record stays; only its output
is deleted.
"""

from __future__ import annotations

import logging
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.to_thread

from handrail.errors import Unwritable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from handrail.store.records import Records
    from handrail.store.terminals import TerminalRecord
    from handrail.terminal.terminals import Terminals

log = logging.getLogger(__name__)

APART = 3600.0
"""Seconds between two runs."""
LINGER = 60.0
"""Seconds for which an ended terminal stays in memory, here and in the keeper, for callers that still wait for it."""
DAY = 86_400.0
PAGE = 1000
"""Records per query."""


class _KeptOutput(NamedTuple):
    """The output of an ended terminal. Sorts in order of deletion."""

    ended_at: float
    id: str
    bytes: int


class Retention:
    """Keeps the output of ended terminals within the configured limits."""

    def __init__(
        self,
        records: Records,
        terminals: Terminals,
        spool: Path,
        keep_days: float,
        keep_bytes: int,
        forgotten: Callable[[str, str], Awaitable[None]],
    ) -> None:
        """`forgotten` gets the id of the terminal whose output will be deleted, and the reason; it returns when that
        is journaled."""
        self._records = records
        self._terminals = terminals
        self._spool = spool
        self.keep_days = keep_days
        self.keep_bytes = keep_bytes
        self._forgotten = forgotten

    async def run(self) -> None:
        """Prune now and every hour, until cancelled."""
        while True:
            try:
                await self.prune()
            except (OSError, Unwritable) as problem:
                log.warning("old output could not be deleted: %s", problem)
            await anyio.sleep(APART)

    async def prune(self) -> None:
        """Delete output that is too old, then the oldest until the rest is within the size limit.

        Terminals still in memory, running or just ended, are skipped and not counted.
        """
        ended = await self._read_ended()
        self._release(ended)
        sizes = await anyio.to_thread.run_sync(_measure_sizes, self._spool)
        kept = sorted(
            _KeptOutput((record.ended_at or 0) / 1000, record.id, sizes[record.id])
            for record in ended.values()
            if record.id in sizes and self._terminals.get(record.id) is None
        )
        for item, why in self._find_surplus(kept):
            self._terminals.deleted(item.id)
            await self._forgotten(item.id, why)
            await self._delete(item.id)
        await self._delete_unknown(sizes, ended)

    def _find_surplus(self, kept: list[_KeptOutput]) -> list[tuple[_KeptOutput, str]]:
        oldest, total = time.time() - self.keep_days * DAY, sum(item.bytes for item in kept)
        surplus: list[tuple[_KeptOutput, str]] = []
        for item in kept:
            if item.ended_at < oldest:
                surplus.append((item, f"It ended more than {self.keep_days:g} days ago."))
            elif total > self.keep_bytes:
                surplus.append(
                    (item, f"Ended terminals had more than {self.keep_bytes:,} bytes of output together.")
                )
            else:
                break
            total -= item.bytes
        return surplus

    async def _read_ended(self) -> dict[str, TerminalRecord]:
        """The ended terminals that still have output."""
        ended: dict[str, TerminalRecord] = {}
        while page := await self._records.terminals.with_output(after=max(ended, default=""), limit=PAGE):
            ended |= {record.id: record for record in page}
        return ended

    def _release(self, ended: dict[str, TerminalRecord]) -> None:
        """Release the terminals whose end is journaled, here and in the keeper."""
        now = time.time()
        for terminal in self._terminals.known:
            record = ended.get(terminal.id)
            if record is not None and (record.ended_at or 0) / 1000 + LINGER < now:
                self._terminals.release(terminal.id)

    async def _delete_unknown(self, sizes: dict[str, int], ended: dict[str, TerminalRecord]) -> None:
        """Delete output without a record: the daemon or its database was lost before the journal had it."""
        for unknown in sizes.keys() - ended.keys():
            record = await self._records.terminals.get(unknown)
            is_running = record is not None and record.forgotten_at is None
            if not is_running and self._terminals.get(unknown) is None and (record or self._is_old(unknown)):
                await self._delete(unknown)

    def _is_old(self, id: str) -> bool:
        try:
            return (self._spool / id).stat().st_mtime < time.time() - self.keep_days * DAY
        except FileNotFoundError:
            return False

    async def _delete(self, id: str) -> None:
        await anyio.to_thread.run_sync(_remove, self._spool / id)


def _remove(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)


def _measure_sizes(spool: Path) -> dict[str, int]:
    """Bytes of output on disk, by terminal id."""
    sizes: dict[str, int] = {}
    for directory in spool.iterdir() if spool.is_dir() else ():
        try:
            sizes[directory.name] = sum(file.stat().st_size for file in directory.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            continue
    return sizes
