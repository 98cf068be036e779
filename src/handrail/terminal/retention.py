"""How long the output of ended terminals is kept: so many days, and so many bytes of all together.

Owns what is let go and when. It does not journal: whoever composes the daemon is told first, and only when that is
written down is anything deleted. What a terminal did stays in the record; its output does not.
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
"""Seconds between two looks at what is kept."""
LINGER = 60.0
"""Seconds after its end in which a terminal stays at hand, in the keeper too, for whoever still waits for it."""
DAY = 86_400.0
PAGE = 1000
"""Records read at once."""


class _Kept(NamedTuple):
    """An ended terminal's output. In the order in which it goes."""

    ended_at: float
    id: str
    bytes: int


class Retention:
    """Keeps what is kept of ended terminals within the person's limits."""

    def __init__(
        self,
        records: Records,
        terminals: Terminals,
        spool: Path,
        keep_days: float,
        keep_bytes: int,
        forgotten: Callable[[str, str], Awaitable[None]],
    ) -> None:
        """`forgotten` is told which terminal's output is about to be deleted, and why; it returns when that is safe
        on disk."""
        self._records = records
        self._terminals = terminals
        self._spool = spool
        self._keep_days = keep_days
        self._keep_bytes = keep_bytes
        self._forgotten = forgotten

    async def run(self) -> None:
        """Now, and every hour; until cancelled."""
        while True:
            try:
                await self.prune()
            except (OSError, Unwritable) as problem:
                log.warning("old output could not be let go: %s", problem)
            await anyio.sleep(APART)

    async def prune(self) -> None:
        """Let go of what is too old, and then of the oldest until the rest is within the limit.

        What is still at hand, running or just ended, is left alone and not counted.
        """
        ended = await self._ended()
        self._release(ended)
        sizes = await anyio.to_thread.run_sync(_sizes, self._spool)
        kept = sorted(
            _Kept((record.ended_at or 0) / 1000, record.id, sizes[record.id])
            for record in ended.values()
            if record.id in sizes and self._terminals.get(record.id) is None
        )
        for item, why in self._surplus(kept):
            self._terminals.deleted(item.id)
            await self._forgotten(item.id, why)
            await self._delete(item.id)
        await self._delete_unknown(sizes, ended)

    def _surplus(self, kept: list[_Kept]) -> list[tuple[_Kept, str]]:
        oldest, total = time.time() - self._keep_days * DAY, sum(item.bytes for item in kept)
        found: list[tuple[_Kept, str]] = []
        for item in kept:
            if item.ended_at < oldest:
                found.append((item, f"It ended more than {self._keep_days:g} days ago."))
            elif total > self._keep_bytes:
                found.append(
                    (item, f"Ended terminals had more than {self._keep_bytes:,} bytes of output together.")
                )
            else:
                break
            total -= item.bytes
        return found

    async def _ended(self) -> dict[str, TerminalRecord]:
        """Terminals that have ended and whose output is kept."""
        found: dict[str, TerminalRecord] = {}
        while page := await self._records.terminals.with_output(after=max(found, default=""), limit=PAGE):
            found |= {record.id: record for record in page}
        return found

    def _release(self, ended: dict[str, TerminalRecord]) -> None:
        """The keeper need not hold what has ended and is written down; nor need we."""
        now = time.time()
        for terminal in self._terminals.known:
            record = ended.get(terminal.id)
            if record is not None and (record.ended_at or 0) / 1000 + LINGER < now:
                self._terminals.release(terminal.id)

    async def _delete_unknown(self, sizes: dict[str, int], ended: dict[str, TerminalRecord]) -> None:
        """Output that no record leads to: the daemon, or its database, was gone before it was written down."""
        for unknown in sizes.keys() - ended.keys():
            record = await self._records.terminals.get(unknown)
            is_running = record is not None and record.forgotten_at is None
            if not is_running and self._terminals.get(unknown) is None and (record or self._is_old(unknown)):
                await self._delete(unknown)

    def _is_old(self, id: str) -> bool:
        try:
            return (self._spool / id).stat().st_mtime < time.time() - self._keep_days * DAY
        except FileNotFoundError:
            return False

    async def _delete(self, id: str) -> None:
        await anyio.to_thread.run_sync(_remove, self._spool / id)


def _remove(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)


def _sizes(spool: Path) -> dict[str, int]:
    """The bytes of every terminal's output there is."""
    found: dict[str, int] = {}
    for directory in spool.iterdir() if spool.is_dir() else ():
        try:
            found[directory.name] = sum(file.stat().st_size for file in directory.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            continue
    return found
