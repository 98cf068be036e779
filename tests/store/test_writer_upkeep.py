"""The file is written anew after a deletion: when it is quiet, and never in the way of whoever writes."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from queue import SimpleQueue

import pytest
from tests.support.sample_events import JournalFiles

from handrail.store import writer
from handrail.store.database import open_writer
from handrail.store.writer import Order, Upkeep


@pytest.fixture
def connection(kept: JournalFiles) -> Iterator[sqlite3.Connection]:
    with closing(open_writer(kept.path)) as connection:
        yield connection


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "QUIET_SECONDS", 0.1)


def leave_free_pages(connection: sqlite3.Connection, rows: int) -> None:
    connection.execute("CREATE TABLE ballast (text TEXT)")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO ballast VALUES (?)", (("x" * 3000,) for _ in range(rows)))
    connection.execute("COMMIT")
    connection.execute("DELETE FROM ballast WHERE rowid % 2")
    connection.execute("UPDATE upkeep SET due = 1")


def free_pages(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA freelist_count").fetchone()[0])


def is_due(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT due FROM upkeep").fetchone()[0])


def order_after(orders: SimpleQueue[Order], seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, orders.put, ("commit",))
    timer.start()
    return timer


def test_a_quiet_moment_is_used(connection: sqlite3.Connection) -> None:
    leave_free_pages(connection, 200)
    orders: SimpleQueue[Order] = SimpleQueue()
    timer = order_after(orders, 1.5)
    assert Upkeep(connection, orders).next_order() == "commit"
    timer.join()
    assert free_pages(connection) == 0
    assert not is_due(connection)


def test_while_orders_come_nothing_is_done(connection: sqlite3.Connection) -> None:
    leave_free_pages(connection, 200)
    orders: SimpleQueue[Order] = SimpleQueue()
    upkeep = Upkeep(connection, orders)
    for _ in range(20):
        orders.put("commit")
        assert upkeep.next_order() == "commit"
    assert free_pages(connection) > 0
    assert is_due(connection)


class Coming(SimpleQueue[Order]):
    """An order comes the first time that somebody looks whether one has: while the file is being written."""

    came = False

    def empty(self) -> bool:
        if not self.came:
            self.came = True
            self.put("commit")
        return super().empty()


def test_whoever_comes_meanwhile_interrupts_it_and_it_is_done_later(connection: sqlite3.Connection) -> None:
    leave_free_pages(connection, 2_000)
    orders = Coming()
    upkeep = Upkeep(connection, orders)
    assert upkeep.next_order() == "commit"
    assert orders.came
    assert is_due(connection), "it was interrupted"
    assert free_pages(connection) > 0
    timer = order_after(orders, 3)
    assert upkeep.next_order() == "commit"
    timer.join()
    assert not is_due(connection)
    assert free_pages(connection) == 0


def test_a_log_that_somebody_reads_is_emptied_after_the_next_commit(
    connection: sqlite3.Connection, kept: JournalFiles
) -> None:
    upkeep = Upkeep(connection, SimpleQueue())
    connection.execute("CREATE TABLE ballast (text TEXT)")
    log = kept.path.with_name(kept.path.name + "-wal")
    with closing(sqlite3.connect(kept.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM upkeep").fetchone()
        connection.execute("INSERT INTO ballast VALUES ('x')")
        upkeep.deleted()
        upkeep.empty_log()
        assert log.stat().st_size > 0
        reader.execute("COMMIT")
    upkeep.empty_log()
    assert log.stat().st_size == 0
