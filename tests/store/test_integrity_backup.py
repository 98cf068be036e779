"""Copies of a journal, made while it is written."""

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from tests.support.sample_events import JournalFiles, daemon_stopped

from handrail.store.integrity import Verdict, backup
from handrail.store.journal import open_journal


async def backed_up_while_writing(kept: JournalFiles, target: Path) -> Verdict:
    """Copy a journal of at least 500 events, with one appender at work."""
    async with open_journal(kept.path, kept.head) as journal, anyio.create_task_group() as group:

        async def write() -> None:
            while True:
                await journal.committed(journal.append(daemon_stopped("x" * 500)))

        for _ in range(500):
            journal.append(daemon_stopped())
        await journal.committed(500)
        group.start_soon(write)
        try:
            return await anyio.to_thread.run_sync(backup, kept.path, target)
        finally:
            group.cancel_scope.cancel()
    raise AssertionError("a group that is left returns")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_copy_made_while_the_journal_is_written_is_whole_and_one_file(
    kept: JournalFiles, backend: str
) -> None:
    target = kept.path.with_name("copy.db")
    verdict = anyio.run(backed_up_while_writing, kept, target, backend=backend)
    assert verdict.ok
    assert verdict.rows >= 500
    assert sorted(path.name for path in kept.path.parent.glob("copy*")) == ["copy.db"]
    with closing(sqlite3.connect(target)) as copy:
        assert copy.execute("SELECT count(*) FROM events").fetchone()[0] == verdict.rows


def test_a_copy_overwrites_nothing(kept: JournalFiles) -> None:
    anyio.run(write_one, kept)
    target = kept.path.with_name("copy.db")
    target.write_text("mine")
    with pytest.raises(FileExistsError, match="does not exist yet"):
        backup(kept.path, target)
    assert target.read_text() == "mine"


def test_a_copy_can_be_opened_as_a_journal_and_goes_on(kept: JournalFiles) -> None:
    anyio.run(write_one, kept)
    target = kept.path.with_name("copy.db")
    assert backup(kept.path, target).ok
    anyio.run(write_one, JournalFiles(target, target.with_suffix(".head")))
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_copy_of_a_tampered_journal_is_kept_and_says_so(kept: JournalFiles) -> None:
    anyio.run(write_one, kept)
    with closing(sqlite3.connect(kept.path)) as connection:
        connection.execute("UPDATE events SET at = 1")
        connection.commit()
    target = kept.path.with_name("copy.db")
    assert [fault.seq for fault in backup(kept.path, target).faults] == [1]
    assert target.exists()


async def write_one(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        await journal.committed(journal.append(daemon_stopped()))
