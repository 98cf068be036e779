"""The journal: all facts in order; appended in memory, committed by the writer thread, then announced.

Owns sequence numbers, who waits for which, and the bell that followers sleep on. Does not know SQL (writer.py,
projection/), nor what any event means, nor what is written beside them (outbox.py). Followers hold a cursor: a slow one
costs nothing and loses nothing.

A number is never given twice, not even after a failed commit: whoever waits for a lost one must not be told
that somebody else's record of the same number is safe. So numbers grow, but may have gaps.

The newest entries, kept in memory so that followers near the tail cost no read.
"""

import sqlite3
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Never

from anyio import Event as Bell
from anyio import move_on_after, to_thread

from handrail.errors import Unwritable
from handrail.store.database import Files, open_files
from handrail.store.events import Entry, Event, decode, encode
from handrail.store.query import Reader
from handrail.store.threads.thread_records import ThreadDeleted, ThreadOpened, ThreadRenamed
from handrail.store.writer import Fate, Outbox, Row

BATCH_BYTES = 4 * 1024 * 1024
"""What one batch read from disk may hold in memory."""
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
        journal.outbox.flush()
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
        self.outbox = Outbox(files, self._landed, self._fell)
        """Where what flows is written along with the facts."""
        self._lost: list[tuple[range, str]] = []
        self._waiting: dict[int, Bell] = {}
        self._bell = Bell()
        self._ring = Ring(self.durable)
        self._reader = reader

    def append(self, event: Event) -> int:
        """Give the event its number and its time; it is written when somebody waits for it, or soon.

        What the event holds must not be changed afterwards. Raises `Unwritable` when the disk hangs.
        """
        event, payload = encode(event)
        self.outbox.room(len(payload))
        self.head += 1
        self.outbox.put(self.head, time.time_ns() // 1_000_000, event, payload)
        return self.head

    async def committed(self, seq: int) -> None:
        """Return when the event is safely on disk; raise `Unwritable` when it never will be.

        Says nothing of the events before it: a failed commit loses its own and lets later ones succeed.
        """
        while not self._settled(seq):
            self.outbox.order()
            await self._waiting.setdefault(seq, Bell()).wait()

    async def written(self) -> None:
        """Return when all that was appended, or flowed, by now is on disk; raise `Unwritable` when some of it is lost."""
        fates: list[Fate] = []
        bell = Bell()

        def done(fate: Fate) -> None:
            fates.append(fate)
            bell.set()

        self.outbox.flush()
        if not self.outbox.write((), 0, done):
            raise Unwritable("the disk does not keep up")
        self.outbox.order()
        await bell.wait()
        if fates != ["landed"]:
            raise Unwritable(self._lost[-1][1])

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
        self.outbox.close()

    def _settled(self, seq: int) -> bool:
        for lost, reason in self._lost:
            if seq in lost:
                raise Unwritable(reason)
        return seq <= self.durable

    def _landed(self, rows: Sequence[Row]) -> None:
        self.commits += 1
        for row in rows:
            self.durable = row.seq
            self._ring.add(Entry(seq=row.seq, at=row.at, event=row.event), len(row.payload))
            self._wake(row.seq)
        if rows:
            self._bell.set()
            self._bell = Bell()

    def _fell(self, reason: str) -> None:
        """All that is not durable by now is lost; the next append is a new try."""
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

RING_ENTRIES = 4096
RING_BYTES = 8 * 1024 * 1024
"""Bound what a burst of large results may hold in memory."""


class Ring:
    """Entries after `floor`, without gaps."""

    def __init__(self, floor: int, entries: int = RING_ENTRIES, size: int = RING_BYTES) -> None:
        self.floor = floor
        self._kept: deque[tuple[Entry, int]] = deque()
        self._bytes = 0
        self._entries_max = entries
        self._bytes_max = size

    def add(self, entry: Entry, size: int) -> None:
        self._kept.append((entry, size))
        self._bytes += size
        if isinstance(entry.event, ThreadDeleted):
            self._forget(entry.event.thread)
        while self._kept and (len(self._kept) > self._entries_max or self._bytes > self._bytes_max):
            oldest, freed = self._kept.popleft()
            self._bytes -= freed
            self.floor = oldest.seq

    def after(self, seq: int, limit: int) -> list[Entry] | None:
        """The first `limit` entries after `seq`; None when they are no longer all here."""
        if seq < self.floor:
            return None
        newer: list[Entry] = []
        for entry, _ in reversed(self._kept):
            if entry.seq <= seq:
                break
            newer.append(entry)
        newer.reverse()
        return newer[:limit]

    def _forget(self, thread: str) -> None:
        """What a deleted thread was called, as on disk: the facts that say so are no more."""
        kept = [each for each in self._kept if not _names(each[0].event, thread)]
        self._kept = deque(kept)
        self._bytes = sum(size for _, size in kept)


def _names(event: Event, thread: str) -> bool:
    return isinstance(event, ThreadOpened | ThreadRenamed) and event.thread == thread
