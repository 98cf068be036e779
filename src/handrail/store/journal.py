"""The journal: all facts in order; appended in memory, committed by the writer thread, then announced.

Owns sequence numbers, who waits for which, and the bell that followers sleep on. Does not know SQL (writer.py,
projection/), nor what any event means. Followers hold a cursor: a slow one costs nothing and loses nothing.

A number is never given twice, not even after a failed commit: whoever waits for a lost one must not be told
that somebody else's record of the same number is safe. So numbers grow, but may have gaps.
"""

import sqlite3
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Never

from anyio import Event as Bell
from anyio import move_on_after, to_thread

from handrail.errors import Unwritable
from handrail.store.codec import decode, encode
from handrail.store.event import Entry, Event
from handrail.store.files import Files, open_files
from handrail.store.loop import later_here, soon_here
from handrail.store.reader import Reader
from handrail.store.ring import Ring
from handrail.store.writer import Row, Writer

PENDING_BYTES = 64 * 1024 * 1024
"""What a disk that hangs may hold in memory before appends are refused."""
BATCH_BYTES = 4 * 1024 * 1024
"""What one batch read from disk may hold in memory."""
LINGER_SECONDS = 0.01
"""How long an event that nobody waits for may stay in memory, so that those of one call share one commit."""
CLOSE_SECONDS = 10.0
"""How long a disk that hangs may hold up the daemon's end."""


@asynccontextmanager
async def open_journal(path: Path, head: Path) -> AsyncGenerator["Journal"]:
    """The journal in the database at `path`, with its head file; on leaving, all that was appended is written.

    Raises `Unwritable` or `NewerSchema`.
    """
    journal = Journal(await to_thread.run_sync(open_files, path, head), Reader(path))
    try:
        yield journal
    finally:
        with move_on_after(CLOSE_SECONDS, shield=True):
            await to_thread.run_sync(journal.close, abandon_on_cancel=True)


class Journal:
    """All facts in order. Belongs to the event loop it was made in; only that loop's thread may use it."""

    def __init__(self, files: Files, reader: Reader) -> None:
        self.head = files.highest
        """The number given last."""
        self.durable = files.last.seq
        """The newest number that is safely on disk."""
        self.commits = 0
        """How many commits there were; each holds one event or many."""
        self._era = 0
        self._pending = 0
        self._lost: list[tuple[range, str]] = []
        self._waiting: dict[int, Bell] = {}
        self._bell = Bell()
        self._ring = Ring(self.durable)
        self._reader = reader
        self._ordered = self.head
        self._order_at = 0.0
        self._lingers = False
        self._later = later_here()
        soon = soon_here()
        self._writer = Writer(
            files, lambda rows: soon(self._landed, rows), lambda reason: soon(self._fell, reason)
        )

    def append(self, event: Event) -> int:
        """Give the event its number and its time; it is written when somebody waits for it, or soon.

        What the event holds must not be changed afterwards. Raises `Unwritable` when the disk hangs.
        """
        event, payload = encode(event)
        if self._pending + len(payload) > PENDING_BYTES and self._pending:
            raise Unwritable("the disk does not keep up")
        self._pending += len(payload)
        self.head += 1
        self._writer.put(Row(self.head, time.time_ns() // 1_000_000, event, payload, self._era))
        if self._ordered == self.head - 1:
            self._linger()
        return self.head

    async def committed(self, seq: int) -> None:
        """Return when the event is safely on disk; raise `Unwritable` when it never will be.

        Says nothing of the events before it: a failed commit loses its own and lets later ones succeed.
        """
        while not self._settled(seq):
            self._order()
            await self._waiting.setdefault(seq, Bell()).wait()

    async def since(self, seq: int, limit: int = 500) -> list[Entry]:
        """Committed entries after `seq`: as many as fit, never none while there are any."""
        near = self._ring.after(seq, limit)
        if near is not None:
            return near
        return await self._reader.read(lambda connection: _after(connection, seq, limit))

    async def follow(self, seq: int, send: Callable[[Sequence[Entry]], Awaitable[None]]) -> Never:
        """Send every committed entry after `seq`, in order, once, at the pace of `send`; until cancelled."""
        while True:
            bell = self._bell  # taken before reading: what lands meanwhile rings this one
            entries = await self.since(seq)
            if entries:
                await send(entries)
                seq = entries[-1].seq
            else:
                await bell.wait()

    def close(self) -> None:
        """Write what was appended and let go of the files. Blocks."""
        self._reader.close()
        self._writer.close()

    def _linger(self) -> None:
        """Have the event just appended written soon, if nobody asks for it before."""
        self._order_at = time.monotonic() + LINGER_SECONDS
        if not self._lingers:
            self._lingers = True
            self._later(LINGER_SECONDS, self._lingered)

    def _lingered(self) -> None:
        left = self._order_at - time.monotonic()
        if self._ordered < self.head and left > 0:  # what this was set for has been asked for meanwhile
            self._later(left, self._lingered)
        else:
            self._lingers = False
            self._order()

    def _order(self) -> None:
        """Have the writer write all there is, unless it was told already."""
        if self._ordered < self.head:
            self._ordered = self.head
            self._writer.write()

    def _settled(self, seq: int) -> bool:
        for lost, reason in self._lost:
            if seq in lost:
                raise Unwritable(reason)
        return seq <= self.durable

    def _landed(self, rows: Sequence[Row]) -> None:
        self.durable = rows[-1].seq
        self.commits += 1
        for row in rows:
            self._pending -= len(row.payload)
            self._ring.add(Entry(seq=row.seq, at=row.at, event=row.event), len(row.payload))
            self._wake(row.seq)
        self._bell.set()
        self._bell = Bell()

    def _fell(self, reason: str) -> None:
        """All that is not durable by now is lost; the next append is a new try."""
        self._era += 1
        self._pending = 0
        lost = range(self.durable + 1, self.head + 1)
        if self._lost and self._lost[-1][0].start == lost.start:
            del self._lost[-1]  # nothing landed since: one longer loss
        self._lost.append((lost, reason))
        for seq in lost:
            self._wake(seq)

    def _wake(self, seq: int) -> None:
        waiting = self._waiting.pop(seq, None)
        if waiting is not None:
            waiting.set()


def _after(connection: sqlite3.Connection, seq: int, limit: int) -> list[Entry]:
    entries: list[Entry] = []
    size = 0
    with closing(connection.execute(_AFTER, (seq, limit))) as rows:
        for row in rows:
            entries.append(Entry(seq=row["seq"], at=row["at"], event=decode(row["payload"])))
            size += len(row["payload"])
            if size > BATCH_BYTES:
                break
    return entries


_AFTER = "SELECT seq, at, payload FROM events WHERE seq > ? AND payload IS NOT NULL ORDER BY seq LIMIT ?"
