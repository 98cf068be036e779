"""What is done to the database when something was deleted, so that it is gone from the file and not only from the tables.

Three steps, each surer and slower than the one before:
- Every deleted row is overwritten with zeros (`secure_delete`, database.py).
- With the deletion's own commit, the log beside the database is emptied, where older versions of its pages are.
- Where SQLite had moved rows from page to page, a copy of some may be left in the space between them. So the whole file
  is written anew (`VACUUM`), once nobody has written for a while; who comes meanwhile interrupts it, and it is tried again.
That this is due is itself in the database, so that it is done even after a restart.

Owns when. It does not know what was deleted.
"""

import logging
import sqlite3
from queue import Empty, SimpleQueue

from handrail.store.database import BUSY_SECONDS

log = logging.getLogger(__name__)

QUIET_SECONDS = 10.0
"""How long nobody must have written before the file is written anew."""
PAGES_AT_ONCE = 16_384
"""64 MiB: about a second of writing."""
READERS_MS = 100
"""How long the log's emptying waits for readers: all who wait for a commit wait with it."""


class Upkeep:
    """The housekeeping of the writer, in its thread."""

    def __init__(self, connection: sqlite3.Connection, orders: SimpleQueue[bool]) -> None:
        self._connection = connection
        self._orders = orders
        self._empties = False
        self._refusals = 0
        self._due = bool(connection.execute("SELECT due FROM upkeep").fetchone()[0])

    def next_order(self) -> bool:
        """Wait for it; in a quiet moment before it comes, the file is written anew if that is due."""
        while self._due:
            try:
                return self._orders.get(timeout=self._quiet())
            except Empty:
                self._rewrite()
        return self._orders.get()

    def deleted(self) -> None:
        """Something was, and that is committed."""
        self._due = self._empties = True

    def empty_log(self) -> None:
        """If that is due; while somebody reads the log, as a backup does, it is tried again after the next commit."""
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
        """The larger the file, the surer nobody should come: its last stretch cannot be interrupted."""
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
