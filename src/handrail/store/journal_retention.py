"""Retention of the journal: removes old events in the background, in small batches.

Each batch is one event and one transaction, so a crash at any point leaves the journal before or after it. Before a batch,
the keeper gets the journal's head and the hash of the event that will record the removal. A compaction that was not
announced is a fault at the next start. Without a keeper nothing is removed.
"""

import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import anyio
from anyio import to_thread

from handrail.errors import Unwritable
from handrail.store.anchor import ANCHORS, read_anchors
from handrail.store.database import has_link, open_reader
from handrail.store.events import encode
from handrail.store.hash_chain import Link, payload_hash
from handrail.store.integrity import ChainWalk
from handrail.store.journal import Journal
from handrail.store.journal_compaction import AlteredEvent, Gap, JournalCompacted, Limits, Plan, plan_batch

log = logging.getLogger(__name__)

APART = 86_400.0
"""Seconds between two runs. Each verifies the whole journal."""
DELAY = 60.0
"""Seconds before the first run: a start is busy enough."""
CHUNK, CHUNK_PAUSE = 1000, 0.02
"""Events verified at a time, and the seconds between: bounds the share of the processor."""
PAUSE = 0.1
"""Seconds between two batches: bounds the share of the writer's time."""
_DAY_MS = 86_400_000


class JournalRetention:
    """Removes events that are older than `keep_days` and no longer needed; none if that is 0."""

    def __init__(
        self,
        journal: Journal,
        database: Path,
        keep_days: float,
        store_head: Callable[[], Awaitable[Link | None]],
        announce: Callable[[bytes], Awaitable[bool]],
        anchors: Path = ANCHORS,
    ) -> None:
        """`store_head` has the keeper remember the journal's head, and returns it; `announce` has it remember the hash
        of the next compaction. They return None and False if the keeper does not answer."""
        self._journal = journal
        self._database = database
        self.keep_days = keep_days
        self._store_head = store_head
        self._announce = announce
        self._anchors = anchors

    async def run(self) -> None:
        """Compact soon and every day, until cancelled."""
        while True:
            await anyio.sleep(DELAY)
            try:
                if self.keep_days > 0:
                    await self.compact()
            except AlteredEvent as problem:
                log.warning("old events are not removed: %s. Run `handrail doctor`.", problem)
            except (OSError, Unwritable, sqlite3.Error) as problem:
                log.warning("old events could not be removed: %s", problem)
            await anyio.sleep(APART - DELAY)

    async def compact(self) -> int:
        """Remove the events that are too old now; return how many. Raises AlteredEvent at one that was altered."""
        before = time.time_ns() // 1_000_000 - int(self.keep_days * _DAY_MS)
        keep = frozenset(link.seq for link in await to_thread.run_sync(read_anchors, self._anchors))
        removed, upto = 0, 0
        if not await to_thread.run_sync(self._has_older, before):
            return 0
        gaps = await self._verify()
        while (head := await self._store_head()) is not None:
            limits = Limits(before=before, upto=head.seq, keep=keep, gaps=gaps)
            plan = await to_thread.run_sync(self._plan, upto, limits)
            if plan.event is not None:
                if not await self._remove(plan.event):
                    break
                removed += plan.event.events
                gaps |= frozenset(plan.event.gaps)
            if plan.is_last:
                break
            upto = plan.upto
            await anyio.sleep(PAUSE)
        return removed

    def _has_older(self, before: int) -> bool:
        with closing(open_reader(self._database)) as connection:
            row = connection.execute("SELECT at FROM events ORDER BY seq LIMIT 1").fetchone()
            return row is not None and row["at"] < before

    async def _verify(self) -> frozenset[Gap]:
        """Verify the chain up to the last event that this process wrote; return the gaps. Raises AlteredEvent.

        Otherwise a compaction could remove the evidence of a change, or record a gap that somebody else made.
        """
        walk, link = ChainWalk(), self._journal.link
        with closing(open_reader(self._database)) as connection:
            await to_thread.run_sync(walk.read_gaps, connection)
            while await to_thread.run_sync(walk.read_some, connection, CHUNK):  # noqa: ASYNC110 - a pause
                await anyio.sleep(CHUNK_PAUSE)
            walk.finish()
            if walk.faults or not has_link(connection, link):
                raise AlteredEvent(walk.faults[0].seq if walk.faults else link.seq)
        return walk.gaps

    def _plan(self, after: int, limits: Limits) -> Plan:
        with closing(open_reader(self._database)) as connection:
            connection.execute("BEGIN")
            return plan_batch(connection, after, limits)

    async def _remove(self, event: JournalCompacted) -> bool:
        _, payload = encode(event)
        if not await self._announce(payload_hash(payload)):
            return False
        await self._journal.committed(self._journal.append(event))
        return True
