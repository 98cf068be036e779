"""Settings and migrations of the database."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from tests.support.sample_events import JournalFiles, daemon_stopped

from handrail.errors import LostJournal, NewerSchema, Unwritable
from handrail.store.approvals import IS_OPEN
from handrail.store.database import Migration, open_files, open_reader, open_writer, schema_of, shipped
from handrail.store.events import ApprovalExpired
from handrail.store.integrity import verify
from handrail.store.journal import open_journal
from handrail.store.records import open_records
from handrail.store.terminals import TerminalRecord

FIRST = Migration(1, "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (1);")
SECOND = Migration(2, "ALTER TABLE a ADD COLUMN y TEXT; UPDATE a SET y = 'moved';")
BROKEN = Migration(3, "CREATE TABLE b (x INTEGER) STRICT; INSERT INTO nowhere VALUES (1);")


def pragma(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def test_a_fresh_database_gets_the_newest_schema_and_is_private(kept: JournalFiles) -> None:
    with closing(open_writer(kept.path)) as connection:
        assert schema_of(connection) == shipped()[-1].number
        assert [step.number for step in shipped()] == list(range(1, len(shipped()) + 1))
        strict = connection.execute(
            "SELECT min(strict) FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
        assert strict.fetchone()[0] == 1
        assert kept.path.stat().st_mode & 0o777 == 0o600
        assert kept.path.with_name("handrail.db-wal").stat().st_mode & 0o777 == 0o600


def test_the_writer_is_durable_and_distrusts_the_file(kept: JournalFiles) -> None:
    with closing(open_writer(kept.path)) as connection:
        assert pragma(connection, "journal_mode") == "wal"
        assert pragma(connection, "synchronous") == 2
        assert pragma(connection, "foreign_keys") == 1
        assert pragma(connection, "trusted_schema") == 0


def test_a_reader_cannot_write(kept: JournalFiles) -> None:
    open_writer(kept.path).close()
    with closing(open_reader(kept.path)) as reader, pytest.raises(sqlite3.OperationalError):
        reader.execute("DELETE FROM events")


def test_a_reader_does_not_make_a_database(kept: JournalFiles) -> None:
    with pytest.raises(sqlite3.OperationalError):
        open_reader(kept.path)
    assert not kept.path.exists()


def test_an_older_database_is_moved_up_with_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    open_writer(path, [FIRST]).close()
    with closing(open_writer(path, [FIRST, SECOND])) as connection:
        assert connection.execute("SELECT x, y FROM a").fetchall() == [(1, "moved")]
        assert schema_of(connection) == 2


def test_the_terminals_of_the_first_schema_are_moved_up_as_commands(kept: JournalFiles) -> None:
    with closing(open_writer(kept.path, shipped()[:1])) as connection:
        connection.execute("INSERT INTO events VALUES (1, 5, 'TerminalOpened', NULL, x'00', x'00')")
        connection.execute(
            "INSERT INTO terminals (id, call, name, cwd, pid, opened_at, opened_seq) VALUES ('t1', 'c1', 'sh', '/', 7, 5, 1)"
        )
    open_writer(kept.path).close()

    async def found() -> TerminalRecord | None:
        async with open_records(kept.path) as records:
            return await records.terminals.get("t1")

    record = anyio.run(found)
    assert record is not None
    assert (record.of, record.owner, record.argv, record.nonce) == ("command", None, (), "")
    assert (record.call, record.cols, record.rows, record.taken_by, record.asked_at) == (
        *("c1", 80, 24),
        *(None, None),
    )


def test_calls_of_an_older_database_know_which_approval_was_a_review(kept: JournalFiles) -> None:
    with closing(open_writer(kept.path, shipped()[:13])) as connection:
        connection.executemany(
            "INSERT INTO events VALUES (?, 5, 'X', NULL, x'00', x'00')", [(seq,) for seq in range(1, 8)]
        )
        connection.executemany(
            "INSERT INTO calls (id, tool, title, door, client, caller_key, assurance, opened_at, opened_seq, started_seq) "
            "VALUES (?, 's__t', 't', 'stdio', 'zed', 'k', 'forwarded', 5, ?, ?)",
            [("asked", 1, None), ("reviewed", 2, 5), ("neither", 3, 6)],
        )
        connection.executemany(
            "INSERT INTO approvals (id, call, digest, risk, opened_at, opened_seq) VALUES (?, ?, 'd', 'low', ?, ?)",
            [("a1", "asked", 10, 4), ("a2", "reviewed", 20, 4), ("a3", "reviewed", 30, 7)],
        )
    with closing(open_writer(kept.path)) as connection:
        moments = connection.execute("SELECT id, asked_at, reviewed_at FROM calls ORDER BY opened_seq")
        assert moments.fetchall() == [("asked", 10, None), ("reviewed", 20, 30), ("neither", None, None)]


@pytest.mark.parametrize("schema", [1, 2])
def test_what_was_asked_before_there_were_rules_is_moved_up_and_still_open(
    kept: JournalFiles, schema: int
) -> None:
    with closing(open_writer(kept.path, shipped()[:schema])) as connection:
        for seq, kind in enumerate(("CallOpened", "ApprovalOpened", "ApprovalOpened"), 1):
            connection.execute("INSERT INTO events VALUES (?, 5, ?, NULL, x'00', x'00')", (seq, kind))
        connection.execute(
            "INSERT INTO calls (id, tool, title, door, client, caller_key, assurance, approval, opened_at, opened_seq) "
            "VALUES ('c1', 'write_file', 'Write a', 'stdio', 'zed', 'k', 'bound', 'a2', 5, 1)"
        )
        connection.executemany(
            "INSERT INTO approvals (id, call, digest, risk, opened_at, opened_seq, answered_at, answer) "
            "VALUES (?, 'c1', 'd', 'medium', 5, ?, ?, ?)",
            [("a1", 2, 6, "allow"), ("a2", 3, None, None)],
        )

    async def tell() -> None:
        async with open_journal(kept.path, kept.head) as journal, open_records(kept.path) as records:
            (approval,) = await records.approvals.find(open_only=True)
            assert (approval.id, approval.edited, approval.expired_at, approval.verdicts) == (
                *("a2", False),
                *(None, ()),
            )
            (call,) = await records.calls.still_open()
            assert (call.call.status, call.files, call.asked) == ("waiting", (), None)
            assert (await records.rules.all(), await records.rules.uses(), await records.rules.folders()) == (
                [],
                {},
                [],
            )
            assert await records.changes.of_calls(["c1"]) == []
            await journal.committed(journal.append(ApprovalExpired(approval="a2", call="c1", after_ms=1)))
            assert await records.approvals.find(open_only=True) == []

    anyio.run(tell)


@pytest.mark.parametrize(
    ("sql", "index"),
    [
        ("SELECT max(seq) FROM events WHERE kind = 'DaemonStarted'", "events_of_starts"),
        ("SELECT seq FROM events WHERE kind = 'JournalCompacted' AND seq > 5", "events_of_compactions"),
        (
            "SELECT * FROM calls WHERE ending IS NOT NULL AND stopped_at IS NULL ORDER BY opened_seq",
            "calls_unwinding",
        ),
        ("SELECT * FROM calls WHERE ending IS NULL", "calls_open"),
        (f"SELECT * FROM approvals WHERE {IS_OPEN} ORDER BY opened_seq", "approvals_open_in_order"),
        ("SELECT * FROM operations WHERE opened_seq BETWEEN 1 AND 9", "operations_in_order"),
        (
            "SELECT * FROM terminals WHERE ended_at IS NOT NULL AND forgotten_at IS NULL AND id > '' ORDER BY id",
            "terminals_with_output",
        ),
        (
            "SELECT * FROM messages WHERE ended_at IS NULL OR queued ORDER BY thread DESC, n DESC",
            "messages_open",
        ),
    ],
)
def test_a_start_scans_no_table_that_grows(kept: JournalFiles, sql: str, index: str) -> None:
    with closing(open_writer(kept.path)) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
    assert any(f"INDEX {index}" in step for step in plan), plan


async def test_a_journal_of_the_schema_before_compactions_is_moved_up(kept: JournalFiles) -> None:
    open_writer(kept.path, shipped()[:6]).close()
    assert verify(kept.path, None).ok
    async with open_journal(kept.path, kept.head) as journal:
        await journal.committed(journal.append(daemon_stopped()))
    verdict = verify(kept.path, kept.head)
    assert verdict.ok
    assert (verdict.rows, verdict.compacted) == (1, 0)


def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        open_writer(path, [FIRST, SECOND, BROKEN])
    with closing(open_writer(path, [FIRST, SECOND])) as connection:
        assert schema_of(connection) == 2
        assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'b'").fetchone()[0] == 0


def test_a_newer_database_is_refused_with_a_sentence_and_left_alone(kept: JournalFiles) -> None:
    with closing(open_writer(kept.path)) as connection:
        connection.execute("PRAGMA user_version = 999")
    before = kept.path.read_bytes()

    async def main() -> None:
        async with open_journal(kept.path, kept.head):
            pass

    with pytest.raises(NewerSchema, match="schema 999") as refused:
        anyio.run(main)
    assert "Upgrade Handrail" in str(refused.value)
    assert kept.path.read_bytes() == before


@pytest.mark.anyio
async def test_an_emptied_database_is_refused_with_what_to_do(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        journal.append(daemon_stopped())
    kept.path.with_name("handrail.db-wal").unlink(missing_ok=True)
    kept.path.write_bytes(b"")
    for _ in range(2):  # the first try gives the file a schema
        with pytest.raises(
            LostJournal, match=r"is empty, but the journal had 1 events.*Put a backup in its place"
        ):
            open_files(kept.path, kept.head)
    kept.head.unlink()
    async with open_journal(kept.path, kept.head) as journal:
        assert journal.head == 0


@pytest.mark.timeout(10)
def test_a_fifo_in_the_place_of_the_database_is_refused_without_waiting(kept: JournalFiles) -> None:
    os.mkfifo(kept.path)
    with pytest.raises(Unwritable, match="is not a regular file"):
        open_files(kept.path, kept.head)
