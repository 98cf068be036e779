"""The writer thread: at each order, everything queued becomes one transaction, one commit, one announcement.

Owns the writing connection, the chain's last link and the head file. Does not know event loops: it announces
through the two functions it is given, which must not block.

A batch that fails takes with it all that was appended before its appender knew: those rows carry the batch's
`era` and are dropped, because a later fact must never be on disk without the earlier one.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue

from handrail.store.chain import Link, chained, payload_hash
from handrail.store.event import Event
from handrail.store.files import Files
from handrail.store.projection import project


@dataclass(frozen=True, slots=True)
class Row:
    """An event on its way to disk."""

    seq: int
    at: int
    event: Event
    payload: str
    era: int
    """How many failures its appender had been told of."""


class Writer:
    """The only thread that writes to the database."""

    def __init__(
        self,
        files: Files,
        landed: Callable[[Sequence[Row]], object],
        fell: Callable[[str], object],
    ) -> None:
        self._connection = files.connection
        self._head = files.head
        self._last = files.last
        self._landed = landed
        self._fell = fell
        self._era = 0
        self._rows: deque[Row] = deque()
        self._orders: SimpleQueue[bool] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def put(self, row: Row) -> None:
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
            more = self._orders.get()
            rows = [row for row in self._take() if row.era == self._era]
            if rows:
                self._write(rows)

    def _take(self) -> list[Row]:
        rows: list[Row] = []
        while self._rows:
            rows.append(self._rows.popleft())
        return rows

    def _write(self, rows: list[Row]) -> None:
        try:
            last = self._commit(rows)
        except Exception as error:  # the thread must outlive whatever one batch does to it
            self._era += 1
            self._fell(_reason(error))
        else:
            self._last = last
            self._tell_head()
            self._landed(rows)

    def _commit(self, rows: list[Row]) -> Link:
        link = self._last
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for row in rows:
                link = self._insert(link, row)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return link

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


def _reason(error: Exception) -> str:
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return f"{error}, {name}"
