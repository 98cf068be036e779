"""The writer thread: at each order, everything queued becomes one transaction, one commit, one announcement.

Owns the writing connection, the chain's last link and the head file. Does not know event loops: it announces
through the functions it is given, which must not block.

Between the events stand changes that are none: text that grows, an index. They keep their place in the queue, and one
that the database will not take, for a reason of its own and not of the disk's, is refused alone.

A batch that fails takes with it all that was appended before its appender knew: those rows carry the batch's
`era` and are dropped, because a later fact must never be on disk without the earlier one.
"""

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Literal

from handrail.store.chain import Link, chained, payload_hash
from handrail.store.event import Event, ThreadDeleted
from handrail.store.files import Files
from handrail.store.projection import project
from handrail.store.projection.statement import Statement
from handrail.store.upkeep import Upkeep

log = logging.getLogger(__name__)

Fate = Literal["landed", "lost", "refused"]
"""Of a change: it is on disk; it is not, and may be tried again; the database will never take it."""


@dataclass(frozen=True, slots=True)
class Row:
    """An event on its way to disk."""

    seq: int
    at: int
    event: Event
    payload: str
    era: int
    """How many failures its appender had been told of."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """Statements that belong to no event, on their way to disk."""

    statements: tuple[Statement, ...]
    size: int
    """About as many bytes of memory."""
    era: int
    done: Callable[[Fate], object]
    """Told in the event loop what became of it."""


class Writer:
    """The only thread that writes to the database."""

    def __init__(
        self,
        files: Files,
        landed: Callable[[Sequence[Row | Change], frozenset[Change]], object],
        fell: Callable[[str], object],
    ) -> None:
        self._connection = files.connection
        self._head = files.head
        self._last = files.last
        self._landed = landed
        self._fell = fell
        self._era = 0
        self._rows: deque[Row | Change] = deque()
        self._orders: SimpleQueue[bool] = SimpleQueue()
        self._upkeep = Upkeep(files.connection, self._orders)
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def put(self, row: Row | Change) -> None:
        """Queue a row, without waking the thread: that costs the caller more than the queueing."""
        self._rows.append(row)

    def write(self) -> None:
        """Have everything queued written, and go on at once."""
        self._orders.put(True)

    def close(self) -> None:
        """Write what is queued, then let go of the files. Blocks."""
        self._orders.put(False)
        self._thread.join()
        self._connection.close()
        self._head.close()

    def _work(self) -> None:
        more = True
        while more:
            more = self._upkeep.next_order()
            rows = [row for row in self._take() if row.era == self._era]
            if rows:
                self._write(rows)

    def _take(self) -> list[Row | Change]:
        rows: list[Row | Change] = []
        while self._rows:
            rows.append(self._rows.popleft())
        return rows

    def _write(self, rows: list[Row | Change]) -> None:
        try:
            last, refused = self._commit(rows)
        except Exception as error:  # the thread must outlive whatever one batch does to it
            self._era += 1
            self._fell(_reason(error))
        else:
            self._last = last
            self._tell_head()
            if any(isinstance(row, Row) and isinstance(row.event, ThreadDeleted) for row in rows):
                self._upkeep.deleted()
            self._upkeep.empty_log()
            self._landed(rows, refused)

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
        """Whether the database took it: all of it, or nothing."""
        self._connection.execute("SAVEPOINT change")
        try:
            for sql, parameters in change.statements:
                self._connection.execute(sql, parameters)
        except (sqlite3.Error, ValueError, OverflowError) as error:
            if _is_of_the_disk(error):  # all that is in the batch goes with it
                raise
            self._connection.execute("ROLLBACK TO change")
            log.error("something that was said could not be kept: %s", error)
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
        for sql, parameters in project(row.seq, row.at, row.event):
            self._connection.execute(sql, parameters)
        return Link(row.seq, chain)

    def _tell_head(self) -> None:
        try:
            self._head.write(self._last)
        except OSError:
            # It may lag: the commit stands, and the next one writes it again.
            return


_INSERT = "INSERT INTO events (seq, at, kind, payload, payload_hash, chain) VALUES (?, ?, ?, ?, ?, ?)"


def _is_of_the_disk(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode != sqlite3.SQLITE_ERROR


def _reason(error: Exception) -> str:
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return f"{error}, {name}"
