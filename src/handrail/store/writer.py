"""The writer thread, its queue and its housekeeping: one transaction, one commit and one announcement per batch.

`WriteQueue` is the event loop's side: it queues events and changes, and orders commits. `Writer` is the thread: it owns
the writing connection, the last link of the chain and the head file. `Upkeep` rewrites the file after a deletion.

A commit either syncs the disk or not. A commit that does not survives the end of the process, but not a power loss; it costs
a tenth. The caller decides by `sync`, and everything is synced after `SYNC_SECONDS` in any case.

A `Change` is SQL that belongs to no event (streamed text, for example). It keeps its place among the events. If the
database rejects one for a reason other than the disk, that change alone is refused.

A failed batch also drops everything queued before the event loop learned of the failure: such rows carry the old
`era`. A later event must never be on disk without the earlier one.
"""

import logging
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from queue import Empty, SimpleQueue
from typing import Literal, Protocol

from handrail.errors import Unwritable
from handrail.lazy_dataclass import dataclass
from handrail.store._projection import project
from handrail.store.database import BUSY_SECONDS, Files, Statement
from handrail.store.debounce import Debounce, soon_here
from handrail.store.events import Event
from handrail.store.hash_chain import Link, chained, payload_hash
from handrail.store.journal_compaction import JournalCompacted
from handrail.store.threads.thread_records import ThreadDeleted

log = logging.getLogger(__name__)

Order = Literal["commit", "sync", "close"]
"""commit: without a sync of the disk. sync: with one, also of earlier commits. close: sync, and end the thread."""
Fate = Literal["landed", "lost", "refused"]
"""The outcome of a change. landed: on disk. lost: not on disk, may be retried. refused: the database rejects it."""


@dataclass(frozen=True, slots=True)
class Row:
    """An event queued for the writer."""

    seq: int
    at: int
    event: Event
    payload: str
    era: int
    """The number of failed commits that the event loop knew of when it queued the row."""
    size: int
    """Size in memory of the payload and of what is committed along with it, in bytes."""
    along: Sequence[Statement] = ()
    """Statements of the event's transaction that do not follow from the event."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """Statements that belong to no event, queued for the writer."""

    statements: tuple[Statement, ...]
    size: int
    """Approximate size in memory, in bytes."""
    era: int
    done: Callable[[Fate], object]
    """Called in the event loop with the outcome."""


class Writer:
    """The only thread that writes to the database. Calls `landed` and `fell` in that thread; they must not block.

    `landed` gets the rows of a commit, the changes that the database refused, and whether the disk was synced.
    """

    def __init__(
        self,
        files: Files,
        landed: Callable[[Sequence[Row | Change], frozenset[Change], bool], object],
        fell: Callable[[str], object],
    ) -> None:
        self._connection = files.connection
        self._head = files.head
        self._last = files.last
        self._wal = files.wal
        self._landed = landed
        self._fell = fell
        self._era = 0
        self._rows: deque[Row | Change] = deque()
        self._orders: SimpleQueue[Order] = SimpleQueue()
        self._syncs = True
        """The connection's setting: whether a commit syncs the disk."""
        self._upkeep = Upkeep(files.connection, self._orders)
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    @property
    def last(self) -> Link:
        """The last committed link. Safe to read from another thread."""
        return self._last

    def put(self, row: Row | Change) -> None:
        """Queue a row without waking the thread: waking costs the caller more than queueing."""
        self._rows.append(row)

    def write(self, sync: bool) -> None:
        """Order a commit of everything queued; does not wait for it. With `sync`, also of earlier rows, to the disk."""
        self._orders.put("sync" if sync else "commit")

    def close(self) -> None:
        """Write everything queued, then close the files. Blocks."""
        self._orders.put("close")
        self._thread.join()
        self._connection.close()
        self._head.close()

    def _work(self) -> None:
        order: Order = "commit"
        while order != "close":
            order = self._upkeep.next_order()
            rows = [row for row in self._take() if row.era == self._era]
            if rows or order != "commit":
                self._write(rows, sync=order != "commit")

    def _take(self) -> list[Row | Change]:
        rows: list[Row | Change] = []
        while self._rows:
            rows.append(self._rows.popleft())
        return rows

    def _write(self, rows: list[Row | Change], sync: bool) -> None:
        try:
            self._set_sync(sync)
            last, refused = self._commit_any(rows) if rows else self._sync_log()
        except Exception as error:  # the thread must survive any failure of a batch
            self._era += 1
            self._fell(_reason(error))
        else:
            self._last = last
            if sync:  # a head that is ahead of the disk after a power loss would look like a cut journal
                self._tell_head()
            if _has(ThreadDeleted, rows):
                self._upkeep.deleted()
            if _has(JournalCompacted, rows):
                self._upkeep.compacted()
            self._upkeep.empty_log()
            self._landed(rows, refused, sync)

    def _set_sync(self, sync: bool) -> None:
        if sync != self._syncs:
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
            self._syncs = sync

    def _sync_log(self) -> tuple[Link, frozenset[Change]]:
        """Sync earlier commits: a transaction that writes nothing would not. A checkpoint always syncs."""
        log_file = os.open(self._wal, os.O_RDONLY)
        try:
            os.fsync(log_file)
        finally:
            os.close(log_file)
        return self._last, frozenset()

    def _commit_any(self, rows: list[Row | Change]) -> tuple[Link, frozenset[Change]]:
        """Commit the rows. Not with a check of foreign keys if events are removed: it would scan the tables for each."""
        if not _has(JournalCompacted, rows):
            return self._commit(rows)
        self._connection.execute("PRAGMA foreign_keys = OFF")
        try:
            return self._commit(rows)
        finally:
            self._connection.execute("PRAGMA foreign_keys = ON")

    def _commit(self, rows: list[Row | Change]) -> tuple[Link, frozenset[Change]]:
        link = self._last
        refused: set[Change] = set()
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for row in rows:
                match row:
                    case Row():
                        link = self._insert(link, row)
                    case Change() if not self._change(row):
                        refused.add(row)
                    case _:
                        pass
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return link, frozenset(refused)

    def _change(self, change: Change) -> bool:
        """Apply the change in a savepoint, all or nothing; return whether the database accepted it."""
        self._connection.execute("SAVEPOINT change")
        try:
            for sql, parameters in change.statements:
                self._connection.execute(sql, parameters)
        except (sqlite3.Error, ValueError, OverflowError) as error:
            if _is_of_the_disk(error):  # fail the whole batch
                raise
            self._connection.execute("ROLLBACK TO change")
            log.error("a change to a thread could not be written: %s", error)
            return False
        finally:
            if self._connection.in_transaction:
                self._connection.execute("RELEASE change")
        return True

    def _insert(self, link: Link, row: Row) -> Link:
        hashed = payload_hash(row.payload)
        chain = chained(link.chain, row.seq, row.at, row.event.kind, hashed)
        values = (row.seq, row.at, row.event.kind, row.payload, hashed, chain)
        self._connection.execute(_INSERT, values)
        for sql, parameters in (*project(row.seq, row.at, row.event), *row.along):
            self._connection.execute(sql, parameters)
        return Link(row.seq, chain)

    def _tell_head(self) -> None:
        try:
            self._head.write(self._last)
        except OSError:
            # The head may lag: the commit holds, and the next one writes the head again.
            return


_INSERT = "INSERT INTO events (seq, at, kind, payload, payload_hash, chain) VALUES (?, ?, ?, ?, ?, ?)"


def _has(kind: type[Event], rows: Iterable[Row | Change]) -> bool:
    return any(isinstance(row, Row) and isinstance(row.event, kind) for row in rows)


def _is_of_the_disk(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode != sqlite3.SQLITE_ERROR


def _reason(error: Exception) -> str:
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return f"{error}, {name}"


PENDING_BYTES = 64 * 1024 * 1024
"""Bounds the memory of queued rows while the disk hangs; above it, appends are refused."""
LINGER_SECONDS = 0.01
"""How long an event without a waiter may stay in memory, so that the events of one call share a commit."""
FLOW_SECONDS = 0.1
"""How long streamed changes may stay in memory: bounds how much a crash loses."""
SYNC_SECONDS = 1.0
"""How long a commit without a sync may wait for one: bounds how much a power loss loses."""


class StreamSource(Protocol):
    """A source of streamed changes, written along with the events. It keeps track of its durable changes."""

    def flush(self) -> None:
        """Pass unwritten changes to `WriteQueue.write`. Called often: must be cheap with nothing to write."""
        ...

    def fell(self) -> None:
        """A commit failed: everything queued that is not known to be on disk is lost."""
        ...


class WriteQueue:
    """Queue of events and changes for the writer. Use it only in the event loop that created it."""

    def __init__(
        self,
        files: Files,
        landed: Callable[[Sequence[Row], bool], object],
        fell: Callable[[str], object],
    ) -> None:
        self._tell_landed = landed
        self._tell_fell = fell
        self._era = 0
        self._pending = 0
        self._unordered = False
        self._unsynced = False
        self._changes: deque[Change] = deque()
        self._flows: list[StreamSource] = []
        self._facts_linger = Debounce(LINGER_SECONDS, self.order_commit)
        self._flows_linger = Debounce(FLOW_SECONDS, self.order_commit)
        self._sync_linger = Debounce(SYNC_SECONDS, lambda: self.order_commit(sync=True))
        soon = soon_here()
        self._writer = Writer(
            files,
            lambda rows, refused, synced: soon(self._landed, rows, refused, synced),
            lambda reason: soon(self._fell, reason),
        )

    @property
    def last(self) -> Link:
        """The last committed link of the chain."""
        return self._writer.last

    def check_space(self, size: int) -> None:
        """Raise `Unwritable` if `size` more bytes would exceed `PENDING_BYTES`."""
        if self._is_full(size):
            raise Unwritable("the disk does not keep up")

    def put(
        self, seq: int, at: int, event: Event, payload: str, size: int, along: Sequence[Statement] = ()
    ) -> None:
        """Queue an event; call `check_space` first. Written with the next order, at the latest after `LINGER_SECONDS`."""
        self._pending += size
        self._writer.put(Row(seq, at, event, payload, self._era, size, along))
        self._note_unordered()
        self._facts_linger.request()

    def add_source(self, flow: StreamSource) -> None:
        """Register a source of streamed changes."""
        self._flows.append(flow)

    def schedule_flush(self) -> None:
        """A source has changes: `flush` is called with the next order, at the latest after `FLOW_SECONDS`."""
        self._flows_linger.request()

    def write(self, statements: Iterable[Statement], size: int, done: Callable[[Fate], object]) -> bool:
        """Queue statements that belong to no event; they keep their place among the events.

        Returns False, and queues nothing, when the disk does not keep up.
        """
        if self._is_full(size):
            return False
        self._pending += size
        change = Change(tuple(statements), size, self._era, done)
        self._changes.append(change)
        self._writer.put(change)
        self._note_unordered()
        self._flows_linger.request()
        return True

    def order_commit(self, sync: bool = False) -> None:
        """Flush the sources and order a commit, unless everything queued is already ordered (with a sync)."""
        self.flush()
        self._facts_linger.cancel()
        self._flows_linger.cancel()
        if self._unsynced if sync else self._unordered:
            self._unordered = False
            self._writer.write(sync)
        if sync:
            self._unsynced = False
            self._sync_linger.cancel()

    def flush(self) -> None:
        """Have every source queue its changes."""
        for flow in self._flows:
            flow.flush()

    def close(self) -> None:
        """Write everything queued and close the files. Blocks."""
        self._writer.close()

    def _is_full(self, size: int) -> bool:
        return self._pending + size > PENDING_BYTES and self._pending > 0

    def _note_unordered(self) -> None:
        self._unordered = self._unsynced = True
        self._sync_linger.request()

    def _landed(self, rows: Sequence[Row | Change], refused: frozenset[Change], synced: bool) -> None:
        facts = [row for row in rows if isinstance(row, Row)]
        self._pending -= sum(row.size for row in facts)
        self._tell_landed(facts, synced)
        for change in rows:
            if isinstance(change, Change):
                self._pending -= change.size
                self._changes.popleft()
                change.done("refused" if change in refused else "landed")

    def _fell(self, reason: str) -> None:
        self._era += 1
        self._pending = 0
        self._tell_fell(reason)
        changes, self._changes = self._changes, deque()
        for change in changes:
            change.done("lost")
        for flow in self._flows:
            flow.fell()


QUIET_SECONDS = 10.0
"""How long the writer must be idle before VACUUM rewrites the file; longer for large files."""
PAGES_AT_ONCE = 16_384
"""64 MiB: about a second of writing. The idle time grows by one step per so many pages."""
FREE_PAGES, FREE_SHARE = 4096, 0.25
"""Free pages (16 MiB) and their share of the file above which a compaction rewrites it."""
READERS_MS = 100
"""How long a WAL truncation waits for readers; every pending commit waits with it."""


class Upkeep:
    """Removes deleted content from the file: truncates the WAL and runs VACUUM. Used in the writer's thread."""

    def __init__(self, connection: sqlite3.Connection, orders: "SimpleQueue[Order]") -> None:
        self._connection = connection
        self._orders = orders
        self._empties = False
        self._refusals = 0
        self._due = bool(connection.execute("SELECT due FROM upkeep").fetchone()[0])

    def next_order(self) -> "Order":
        """Wait for the next order. If a rewrite is due and no order comes for a while, run VACUUM first."""
        while self._due:
            try:
                return self._orders.get(timeout=self._quiet())
            except Empty:
                self._rewrite()
        return self._orders.get()

    def deleted(self) -> None:
        """Note that a committed batch deleted content."""
        self._due = self._empties = True

    def compacted(self) -> None:
        """Note that events were removed. The file is rewritten when much of it is free; less is used for new events."""
        try:
            if not self._due and self._is_mostly_free():
                self._connection.execute("UPDATE upkeep SET due = 1")
                self._due = True
        except sqlite3.OperationalError as error:
            log.warning("the database is not rewritten after a compaction: %s", error)

    def _is_mostly_free(self) -> bool:
        free, pages = (
            self._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("freelist_count", "page_count")
        )
        return free > FREE_PAGES and free > pages * FREE_SHARE

    def empty_log(self) -> None:
        """Truncate the WAL if due. If a reader (a backup) blocks it, the next commit tries again."""
        if not self._empties:
            return
        self._connection.execute(f"PRAGMA busy_timeout = {READERS_MS}")
        try:
            busy, _, _ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._empties = bool(busy)
        except sqlite3.OperationalError as error:
            log.warning("what was deleted is still in the log beside the database: %s", error)
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")

    def _quiet(self) -> float:
        """Return the idle seconds before VACUUM: more for a large file, whose last phase cannot be interrupted."""
        pages = self._connection.execute("PRAGMA page_count").fetchone()[0]
        return QUIET_SECONDS * (1 + pages // PAGES_AT_ONCE) * (1 + 10 * self._refusals)

    def _rewrite(self) -> None:
        self._connection.set_progress_handler(lambda: not self._orders.empty(), 1000)
        try:
            self._connection.execute("VACUUM")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_INTERRUPT":
                self._refusals = min(self._refusals + 1, 10)
                log.warning("the database could not be written anew after a deletion: %s", error)
            return
        finally:
            self._connection.set_progress_handler(None, 0)
        self._connection.execute("UPDATE upkeep SET due = 0")
        self._due, self._empties, self._refusals = False, True, 0
        self.empty_log()
