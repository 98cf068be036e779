"""Every way to alter a journal after it was written is found, and the place is named."""

import sqlite3
from contextlib import closing

import anyio
import pytest
from tests.support.sample_events import JournalFiles, daemon_stopped

from handrail.store.integrity import verify
from handrail.store.journal import open_journal


def write(kept: JournalFiles, count: int) -> None:
    async def main() -> None:
        async with open_journal(kept.path, kept.head) as journal:
            for number in range(count):
                journal.append(daemon_stopped(f"event {number}"))

    anyio.run(main)


def alter(kept: JournalFiles, *statements: str) -> None:
    with closing(sqlite3.connect(kept.path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def places(kept: JournalFiles) -> list[int]:
    return [fault.seq for fault in verify(kept.path, kept.head).faults]


def test_an_untouched_journal_is_whole(kept: JournalFiles) -> None:
    write(kept, 10)
    verdict = verify(kept.path, kept.head)
    assert verdict.ok
    assert (verdict.rows, verdict.erased, verdict.last.seq) == (10, 0, 10)
    assert str(verdict) == "The journal is whole: 10 events, the last is 10."


def test_a_journal_without_events_is_whole(kept: JournalFiles) -> None:
    write(kept, 0)
    assert verify(kept.path, kept.head).ok


def test_an_erased_payload_is_no_fault(kept: JournalFiles) -> None:
    write(kept, 10)
    alter(kept, "UPDATE events SET payload = NULL WHERE seq IN (3, 4, 10)")
    verdict = verify(kept.path, kept.head)
    assert verdict.ok
    assert verdict.erased == 3


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE events SET at = at + 1 WHERE seq = 5", [5]),
        ("UPDATE events SET kind = 'DaemonStarted' WHERE seq = 5", [5]),
        ("UPDATE events SET payload = replace(payload, 'event 4', 'event 9') WHERE seq = 5", [5]),
        ("UPDATE events SET payload = CAST(x'ff00fe' AS TEXT) WHERE seq = 5", [5]),
        ("UPDATE events SET payload_hash = zeroblob(32) WHERE seq = 5", [5, 5]),
        ("UPDATE events SET payload = NULL, payload_hash = zeroblob(32) WHERE seq = 5", [5]),
        ("UPDATE events SET chain = zeroblob(32) WHERE seq = 5", [5]),
        ("UPDATE events SET seq = 55 WHERE seq = 5", [6, 55]),
        ("UPDATE events SET seq = seq + 100 WHERE seq > 8", [109, 110, 10]),
        ("DELETE FROM events WHERE seq = 5", [6]),
        ("DELETE FROM events WHERE seq = 1", [2]),
        ("DELETE FROM events WHERE seq BETWEEN 3 AND 7", [8]),
        (
            "INSERT INTO events SELECT 11, at, kind, payload, payload_hash, chain FROM events WHERE seq = 10",
            [11],
        ),
    ],
)
def test_an_altered_row_is_found_where_it_is(kept: JournalFiles, statement: str, found: list[int]) -> None:
    write(kept, 10)
    alter(kept, statement)
    assert places(kept) == found


def test_a_payload_altered_together_with_its_hash_is_found_by_the_chain(kept: JournalFiles) -> None:
    write(kept, 10)
    alter(
        kept,
        "UPDATE events SET payload = (SELECT payload FROM events WHERE seq = 2),"
        " payload_hash = (SELECT payload_hash FROM events WHERE seq = 2) WHERE seq = 5",
    )
    assert places(kept) == [5]


def test_two_rows_that_changed_places_are_found(kept: JournalFiles) -> None:
    write(kept, 10)
    alter(
        kept,
        "UPDATE events SET seq = 99 WHERE seq = 5",
        "UPDATE events SET seq = 5 WHERE seq = 6",
        "UPDATE events SET seq = 6 WHERE seq = 99",
    )
    assert {5, 6} <= set(places(kept))


@pytest.mark.parametrize("kept_rows", [9, 5, 0])
def test_a_cut_tail_is_found_by_the_head_file(kept: JournalFiles, kept_rows: int) -> None:
    write(kept, 10)
    alter(kept, f"DELETE FROM events WHERE seq > {kept_rows}")
    assert places(kept) == [10]
    assert "had reached event 10" in str(verify(kept.path, kept.head))


def test_a_cut_tail_is_still_found_after_the_journal_went_on_writing(kept: JournalFiles) -> None:
    write(kept, 10)
    alter(kept, "DELETE FROM events WHERE seq > 7")
    write(kept, 5)
    verdict = verify(kept.path, kept.head)
    assert [fault.seq for fault in verdict.faults] == [10]
    assert verdict.last.seq == 15, "the numbers of the cut events are not given again"


def test_a_head_file_that_lags_is_no_fault(kept: JournalFiles) -> None:
    write(kept, 5)
    earlier = kept.head.read_bytes()
    write(kept, 5)
    kept.head.write_bytes(earlier)
    assert verify(kept.path, kept.head).ok
    write(kept, 1)
    assert verify(kept.path, kept.head).ok


@pytest.mark.parametrize("content", [b"0" * 86, b"\xff\xfe", b"12 zz\n"])
def test_a_head_file_that_says_nothing_is_reported(kept: JournalFiles, content: bytes) -> None:
    write(kept, 5)
    kept.head.write_bytes(content)
    assert not verify(kept.path, kept.head).ok


def test_a_missing_head_file_is_reported(kept: JournalFiles) -> None:
    write(kept, 5)
    kept.head.unlink()
    assert "head file is missing" in str(verify(kept.path, kept.head))


def test_a_damaged_file_is_reported_and_never_a_traceback(kept: JournalFiles) -> None:
    write(kept, 2000)
    whole = bytearray(kept.path.read_bytes())
    whole[8192:40960] = b"\xa5" * (40960 - 8192)
    kept.path.write_bytes(whole)
    assert not verify(kept.path, kept.head).ok


def test_a_journal_that_is_being_written_can_be_verified(kept: JournalFiles) -> None:
    async def main() -> None:
        async with open_journal(kept.path, kept.head) as journal:
            for number in range(300):
                journal.append(daemon_stopped(str(number)))
                if number % 30 == 0:
                    verdict = await anyio.to_thread.run_sync(verify, kept.path, kept.head)
                    assert verdict.ok, str(verdict)
            await journal.committed(300)

    anyio.run(main)
