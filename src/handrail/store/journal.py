"""The journal: an append-only sequence of events, committed by the writer thread, then sent to followers.

Owns sequence numbers, the waiters for commits, and a ring buffer of the newest entries, so that followers near the tail
need no disk read. Knows no SQL tables but `events`, and does not interpret events. A follower holds a cursor: a slow
one costs nothing and misses nothing.

A number is never reused, not even after a failed commit: a waiter for a lost event must not take another event of the
same number for its own. So numbers grow, but may have gaps.
"""

import sqlite3
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Never

from anyio import Event as Waiter
from anyio import move_on_after, to_thread

from handrail.errors import Unwritable
from handrail.store.bell import Bell
from handrail.store.database import Files, Statement, open_files, statement_size
from handrail.store.debounce import Debounce
from handrail.store.events import Entry, Event, decode, encode
from handrail.store.hash_chain import Link
from handrail.store.query import Reader
from handrail.store.threads.thread_records import ThreadDeleted, ThreadOpened, ThreadRenamed
from handrail.store.writer import Fate, Row, WriteQueue

BATCH_BYTES = 4 * 1024 * 1024
"""Bounds the memory of one batch read from disk."""
CLOSE_SECONDS = 10.0
"""How long a hanging disk may delay the daemon's exit."""
AGAIN_SECONDS = 1.0
"""How long after a failed commit the events that complete others are tried again."""


@asynccontextmanager
async def open_journal(path: Path, head: Path) -> AsyncGenerator["Journal"]:
    """Open the journal in the database at `path`, with its head file. On exit, everything appended is written.

    Raises `Unwritable` or `NewerSchema`.
    """
    journal = Journal(await to_thread.run_sync(open_files, path, head), Reader(path))
    try:
        yield journal
    finally:
        journal.append_again()
        journal.queue.flush()
        with move_on_after(CLOSE_SECONDS, shield=True):
            await to_thread.run_sync(journal.close, abandon_on_cancel=True)


class Journal:
    """The sequence of all events. Use it only in the thread of the event loop that created it."""

    def __init__(self, files: Files, reader: Reader) -> None:
        self.head = files.highest
        """The number assigned last."""
        self.durable = files.highest
        """The newest number committed: it survives the end of the process. At the start none is pending, even if the
        last ones were cut off."""
        self.synced = files.highest
        """The newest number that also survives a power loss."""
        self.commits = 0
        """Number of commits so far; each holds one or more events."""
        self.queue = WriteQueue(files, self._landed, self._fell)
        """The queue to the writer; takes streamed changes as well as events."""
        self._watchers: dict[str, list[Callable[[Entry], None]]] = {}
        self._lost: list[tuple[range, str]] = []
        self._sync_failure = (self.synced, "")
        """The newest number that could not be synced, and why."""
        self._completing: dict[int, tuple[Event, int]] = {}
        """Events that are appended again if their commit fails, each with the number of the event it completes."""
        self._again: list[tuple[Event, int]] = []
        self._again_soon = Debounce(AGAIN_SECONDS, self.append_again)
        self._waiting: dict[int, Waiter] = {}
        self._bell = Bell()
        self._cursors: set[_Cursor] = set()
        self._ring = Ring(self.durable)
        self._reader = reader

    @property
    def link(self) -> Link:
        """The last link of the chain that is on disk, as written by this process."""
        return self.queue.last

    def watch(self, kind: str, notify: Callable[[Entry], None]) -> None:
        """Call `notify` with each event of this kind right after its commit, before a waiter for it resumes.

        It runs outside of any task, so it must not use anyio.
        """
        self._watchers.setdefault(kind, []).append(notify)

    def append(self, event: Event, *, completes: int | None = None, along: Sequence[Statement] = ()) -> int:
        """Assign the event its number and time, and queue it. Written when awaited (`committed`), or soon after.

        The event's contents must not change afterwards. Raises `Unwritable` when the disk hangs. With `completes`, the
        number of an earlier event, a failed commit is not final: the event is appended again, under a new number, until
        it is on disk, unless the earlier event was lost. Otherwise a full disk would leave that one open for ever.
        The statements in `along` are committed with the event, all or nothing; not with one that is appended again.
        """
        event, payload = encode(event)
        size = len(payload) + sum(map(statement_size, along))
        try:
            self.queue.check_space(size)
        except Unwritable:
            if completes is not None:
                self._schedule_again([(event, completes)])
            raise
        self.head += 1
        if completes is not None:
            self._completing[self.head] = event, completes
        self.queue.put(self.head, time.time_ns() // 1_000_000, event, payload, size, along)
        return self.head

    def append_again(self) -> None:
        """Append the events whose commit failed and that complete an event on disk."""
        events, self._again = self._again, []
        for event, completes in events:
            if not self._is_lost(completes):
                with suppress(Unwritable):  # it is scheduled again
                    self.append(event, completes=completes)

    async def committed(self, seq: int, *, sync: bool = True) -> None:
        """Return when the event is on disk; raise `Unwritable` when it is lost.

        Without `sync` it survives the end of the process, but perhaps not a power loss: enough for an event that
        neither precedes an effect nor acknowledges an answer. Implies nothing about earlier events: a failed commit
        loses its own, and later ones may succeed.
        """
        while not self._settled(seq, sync):
            self.queue.order_commit(sync)
            waiter = self._waiting.get(seq)
            if waiter is None:
                waiter = self._waiting[seq] = Waiter()
            await waiter.wait()

    def order_commit(self, *, sync: bool) -> None:
        """Have the writer start now, for an event that is about to be awaited with `committed`."""
        self.queue.order_commit(sync)

    async def advanced(self, seq: int) -> None:
        """Return when an event after `seq` is on disk."""
        while self.durable <= seq:
            await self._bell.wait()

    async def written(self) -> None:
        """Return when every event and change queued so far is on disk; raise `Unwritable` when some are lost."""
        fates: list[Fate] = []
        bell = Waiter()

        def done(fate: Fate) -> None:
            fates.append(fate)
            bell.set()

        self.queue.flush()
        if not self.queue.write((), 0, done):
            raise Unwritable("the disk does not keep up")
        self.queue.order_commit(sync=True)
        await bell.wait()
        if fates != ["landed"]:
            raise Unwritable(self._lost[-1][1])

    async def since(self, seq: int, limit: int = 500) -> list[Entry]:
        """Return committed entries after `seq`, up to `limit` and a byte bound; at least one if any exist."""
        near = self._ring.after(seq, limit)
        if near is not None:
            return near
        return await self._reader.read(lambda connection: _after(connection, seq, limit))

    async def follow(
        self,
        seq: int,
        send: Callable[[Sequence[Entry]], Awaitable[None]],
        wants: Callable[[Event], bool] | None = None,
    ) -> Never:
        """Send every committed entry after `seq`, in order and once, at the pace of `send`, until cancelled.

        With `wants`, a commit without an event that it accepts does not wake the follower: its entries are skipped.
        """
        cursor = _Cursor(seq, wants)
        self._cursors.add(cursor)
        try:
            while True:
                bell = cursor.bell.next()  # taken before reading: a commit during the read sets this one
                entries = await self.since(cursor.seq)
                if entries:
                    await send(entries)
                    cursor.seq = entries[-1].seq
                else:
                    cursor.has_all = not bell.is_set()
                    await bell.wait()
        finally:
            self._cursors.discard(cursor)

    def close(self) -> None:
        """Write everything queued and close the files. Blocks."""
        self._reader.close()
        self.queue.close()

    def _settled(self, seq: int, sync: bool) -> bool:
        for lost, reason in self._lost:
            if seq in lost:
                raise Unwritable(reason)
        if seq <= self.synced or not sync:
            return seq <= self.durable
        failed, reason = self._sync_failure
        if seq <= failed:
            raise Unwritable(reason)
        return False

    def _is_lost(self, seq: int) -> bool:
        return any(seq in lost for lost, _ in self._lost)

    def _schedule_again(self, events: Iterable[tuple[Event, int]]) -> None:
        self._again += events
        if self._again:
            self._again_soon.request()

    def _landed(self, rows: Sequence[Row], synced: bool) -> None:
        self.commits += 1
        for row in rows:
            self.durable = row.seq
            self._completing.pop(row.seq, None)
            self._ring.add(Entry(seq=row.seq, at=row.at, event=row.event), len(row.payload))
        if synced:
            self.synced = self.durable
        self._wake_committed()
        if rows:
            self._bell.ring()
            for cursor in self._cursors:
                cursor.move(rows)
        if self._watchers:
            self._notify(rows)

    def _notify(self, rows: Sequence[Row]) -> None:
        for row in rows:
            for notify in self._watchers.get(row.event.kind, ()):
                notify(Entry(seq=row.seq, at=row.at, event=row.event))

    def _wake_committed(self) -> None:
        for seq in [seq for seq in self._waiting if seq <= self.durable]:
            self._wake(seq)

    def _fell(self, reason: str) -> None:
        """Mark every event that is not durable as lost. The next append tries again."""
        lost = range(self.durable + 1, self.head + 1)
        if self._lost and self._lost[-1][0].start == lost.start:
            del self._lost[-1]  # nothing was committed since: extend the range
        self._lost.append((lost, reason))
        self._sync_failure = (self.durable, reason)
        self._schedule_again([self._completing.pop(seq) for seq in sorted(self._completing) if seq in lost])
        for seq in [*self._waiting]:
            self._wake(seq)

    def _wake(self, seq: int) -> None:
        waiting = self._waiting.pop(seq, None)
        if waiting is not None:
            waiting.set()


class _Cursor:
    """The position of a follower."""

    __slots__ = ("_wants", "bell", "has_all", "seq")

    def __init__(self, seq: int, wants: Callable[[Event], bool] | None) -> None:
        self.seq = seq
        self.bell = Bell()
        self.has_all = False
        """The follower has every committed entry, and waits for the next."""
        self._wants = wants

    def move(self, rows: Sequence[Row]) -> None:
        """Wake the follower after a commit, or skip the rows if it waits and wants none of them."""
        wants = self._wants
        if self.has_all and wants is not None and not any(wants(row.event) for row in rows):
            self.seq = max(self.seq, rows[-1].seq)
        else:
            self.has_all = False
            self.bell.ring()


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
RING_BYTES = 1024 * 1024
"""Bound the memory that a burst of large results holds."""


class Ring:
    """Ring buffer of the entries after `floor`."""

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
        """Return the first `limit` entries after `seq`; None when some were evicted."""
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
        """Drop the events with the titles of a deleted thread; on disk their payloads are erased."""
        kept = [each for each in self._kept if not _names(each[0].event, thread)]
        self._kept = deque(kept)
        self._bytes = sum(size for _, size in kept)


def _names(event: Event, thread: str) -> bool:
    return isinstance(event, ThreadOpened | ThreadRenamed) and event.thread == thread
