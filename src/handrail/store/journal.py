"""The journal: all facts in order; appended in memory, committed by the writer thread, then announced.

Owns sequence numbers, who waits for which, and the bell that followers sleep on. Does not know SQL (writer.py,
projection/), nor what any event means. What flows (threads.py) is written with the facts, in its place among them. Followers hold a cursor: a slow one costs nothing and loses nothing.

A number is never given twice, not even after a failed commit: whoever waits for a lost one must not be told
that somebody else's record of the same number is safe. So numbers grow, but may have gaps.
"""

import sqlite3
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Never, Protocol

from anyio import Event as Bell
from anyio import move_on_after, to_thread

from handrail.errors import Unwritable
from handrail.store.codec import decode, encode
from handrail.store.event import Entry, Event
from handrail.store.files import Files, open_files
from handrail.store.linger import Linger
from handrail.store.loop import soon_here
from handrail.store.projection.statement import Statement
from handrail.store.reader import Reader
from handrail.store.ring import Ring
from handrail.store.writer import Change, Fate, Row, Writer

PENDING_BYTES = 64 * 1024 * 1024
"""What a disk that hangs may hold in memory before appends are refused."""
BATCH_BYTES = 4 * 1024 * 1024
"""What one batch read from disk may hold in memory."""
LINGER_SECONDS = 0.01
"""How long an event that nobody waits for may stay in memory, so that those of one call share one commit."""
FLOW_SECONDS = 0.1
"""How long what flows may stay in memory: so much of it a crash may take."""
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
        journal.flush()
        with move_on_after(CLOSE_SECONDS, shield=True):
            await to_thread.run_sync(journal.close, abandon_on_cancel=True)


class Flow(Protocol):
    """Something that is written along with the facts, and knows itself what of it is on disk."""

    def flush(self) -> None:
        """`write` what is not yet written. Called often: with nothing to write it must cost nothing."""
        ...

    def fell(self) -> None:
        """A commit failed: what was appended or written and is not known to be on disk never will be."""
        ...


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
        self._unordered = False
        self._changes: deque[Change] = deque()
        self._flows: list[Flow] = []
        self._facts_linger = Linger(LINGER_SECONDS, self._order)
        self._flows_linger = Linger(FLOW_SECONDS, self._order)
        soon = soon_here()
        self._writer = Writer(
            files,
            lambda rows, refused: soon(self._landed, rows, refused),
            lambda reason: soon(self._fell, reason),
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
        self._unordered = True
        self._facts_linger.ask()
        return self.head

    async def committed(self, seq: int) -> None:
        """Return when the event is safely on disk; raise `Unwritable` when it never will be.

        Says nothing of the events before it: a failed commit loses its own and lets later ones succeed.
        """
        while not self._settled(seq):
            self._order()
            await self._waiting.setdefault(seq, Bell()).wait()

    def join(self, flow: "Flow") -> None:
        """Have something that flows written along with the facts."""
        self._flows.append(flow)

    def flowing(self) -> None:
        """Something flows: its `flush` is called with the next order, at the latest after `FLOW_SECONDS`."""
        self._flows_linger.ask()

    def write(
        self,
        statements: Iterable[Statement],
        size: int = 0,
        done: Callable[[Fate], object] = lambda _: None,
    ) -> bool:
        """Have statements that are no event's written, between what was appended before and what comes after.

        False when the disk does not keep up: they are not queued then.
        """
        if self._pending + size > PENDING_BYTES and self._pending:
            return False
        self._pending += size
        change = Change(tuple(statements), size, self._era, done)
        self._changes.append(change)
        self._writer.put(change)
        self._unordered = True
        self._flows_linger.ask()
        return True

    async def written(self, statements: Iterable[Statement] = ()) -> None:
        """Write, and return when it is on disk with all that was appended, or flowed, before it.

        Raises `Unwritable`.
        """
        fates: list[Fate] = []
        bell = Bell()

        def done(fate: Fate) -> None:
            fates.append(fate)
            bell.set()

        self.flush()
        if not self.write(statements, done=done):
            raise Unwritable("the disk does not keep up")
        self._order()
        await bell.wait()
        if fates[0] != "landed":
            raise Unwritable(self._lost[-1][1] if fates[0] == "lost" else "the database refused it")

    def flush(self) -> None:
        """Queue what flows."""
        for flow in self._flows:
            flow.flush()

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

    def _order(self) -> None:
        """Have the writer write all there is, unless it was told already."""
        self.flush()
        if self._unordered:
            self._unordered = False
            self._facts_linger.met()
            self._writer.write()
        self._flows_linger.met()

    def _settled(self, seq: int) -> bool:
        for lost, reason in self._lost:
            if seq in lost:
                raise Unwritable(reason)
        return seq <= self.durable

    def _landed(self, rows: Sequence[Row | Change], refused: frozenset[Change]) -> None:
        self.commits += 1
        for row in rows:
            if isinstance(row, Change):
                self._pending -= row.size
                self._changes.popleft().done("refused" if row in refused else "landed")
                continue
            self.durable = row.seq
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
        changes, self._changes = self._changes, deque()
        for change in changes:
            change.done("lost")
        for flow in self._flows:
            flow.fell()

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
