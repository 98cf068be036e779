"""What the store says of calls beside their status: edits, files, what belongs together, what is usual."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from tests.support.sample_events import (
    JournalFiles,
    approval_allowed,
    approval_opened,
    call_opened,
    call_settled,
    call_started,
    caller,
    records_after,
)

from handrail.store.calls import TypicalDuration
from handrail.store.database import open_writer
from handrail.store.events import CallOpened, Event
from handrail.store.records import open_records
from handrail.store.values import FileChange, Result

pytestmark = pytest.mark.anyio

CHANGE = FileChange(path="/w/a.txt", before="ab", after="cd", mode=0o644)


def belonging(call: str, thread: str | None, operation: str | None) -> CallOpened:
    return replace(call_opened(call), caller=replace(caller(), thread=thread, operation=operation))


async def test_a_call_tells_the_input_it_runs_with_and_the_one_that_was_asked_for(kept: JournalFiles) -> None:
    story: list[Event] = [
        call_opened(input={"path": "a"}),
        approval_opened(),
        replace(approval_allowed(), input={"path": "b"}),
    ]
    async with records_after(kept, *story) as records:
        detail = await records.calls.get("c1")
        assert detail is not None
        assert (detail.input, detail.asked) == ({"path": "b"}, {"path": "a"})


@pytest.mark.parametrize("answer", [approval_allowed(), replace(approval_allowed(), content="reviewed")])
async def test_where_no_input_was_changed_nothing_else_was_asked_for(
    kept: JournalFiles, answer: Event
) -> None:
    async with records_after(kept, call_opened(input={"path": "a"}), approval_opened(), answer) as records:
        detail = await records.calls.get("c1")
        assert detail is not None
        assert (detail.input, detail.asked, detail.files) == ({"path": "a"}, None, ())


async def test_a_call_tells_which_files_it_set_out_to_change(kept: JournalFiles) -> None:
    async with records_after(kept, call_opened(), replace(call_started(), files=(CHANGE,))) as records:
        detail = await records.calls.get("c1")
        assert detail is not None
        assert detail.files == (CHANGE,)


async def test_the_calls_of_an_operation_and_of_a_thread_are_told_oldest_first(kept: JournalFiles) -> None:
    story = [
        *(belonging("c1", "t1", "o1"), belonging("c2", "t1", "o2"), belonging("c3", "t2", "o1")),
        *(belonging("c4", None, None), belonging("c5", "t1", "o1")),
    ]
    async with records_after(kept, *story) as records:
        assert [call.id for call in await records.calls.of_operation("o1")] == ["c1", "c3", "c5"]
        assert [call.id for call in await records.calls.of_thread("t1")] == ["c1", "c2", "c5"]
        assert await records.calls.of_thread("nothing") == []
        assert await records.calls.of_operation("") == []


def filled(kept: JournalFiles, rows: list[tuple[str, str, str | None, int | None, int]]) -> None:
    """Calls of these tools, titles and endings, that started and were settled at these times."""
    with closing(open_writer(kept.path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO calls (id, tool, title, door, client, caller_key, assurance, opened_at, opened_seq, ending, "
            "started_at, settled_at) VALUES ('c' || ?1, ?2, ?3, 'stdio', 'zed', 'k', 'bound', 0, ?1, ?4, ?5, ?6)",
            [(number, *row) for number, row in enumerate(rows, 1)],
        )
        connection.execute("COMMIT")


async def test_what_is_usual_is_taken_from_the_time_after_the_start_of_done_calls_alike(
    kept: JournalFiles,
) -> None:
    filled(
        kept,
        [
            *(("sh", "make", "done", 1000, 1000 + took) for took in (50, 10, 30, 20, 40)),
            *(("sh", "make", "failed", 0, 9000), ("sh", "make", "done", None, 9000)),
            *(("sh", "make test", "done", 0, 9000), ("other", "make", "done", 0, 9000)),
            *(("sh", "rare", "done", 0, 1), ("sh", "rare", "done", 0, 1)),
        ],
    )
    async with open_records(kept.path) as records:
        assert await records.calls.typical_duration("sh", "make") == TypicalDuration(
            median_ms=30, p95_ms=50, of=5
        )
        assert await records.calls.typical_duration("sh", "rare") is None
        assert await records.calls.typical_duration("sh", "never") is None


async def test_only_the_last_fifty_tell_what_is_usual(kept: JournalFiles) -> None:
    old = [("sh", "make", "done", 0, 100_000)] * 100
    filled(kept, [*old, *(("sh", "make", "done", 0, took) for took in range(1, 51))])
    async with open_records(kept.path) as records:
        assert await records.calls.typical_duration("sh", "make") == TypicalDuration(
            median_ms=26, p95_ms=48, of=50
        )


async def test_what_is_usual_is_found_among_a_hundred_thousand_calls_without_reading_them(
    kept: JournalFiles,
) -> None:
    filled(kept, [("sh", f"make {number % 10}", "done", 0, number) for number in range(100_000)])
    with closing(sqlite3.connect(kept.path)) as connection:
        plan = connection.execute(
            "EXPLAIN QUERY PLAN SELECT settled_at FROM calls WHERE tool = ? AND title = ? AND ending = 'done' "
            "AND started_at IS NOT NULL ORDER BY opened_seq DESC LIMIT 50",
            ("sh", "make 3"),
        ).fetchall()
    assert [row[3] for row in plan] == ["SEARCH calls USING INDEX calls_alike (tool=? AND title=?)"]
    async with open_records(kept.path) as records:
        assert await records.calls.typical_duration("sh", "make 3") is not None


async def test_a_settled_time_before_the_start_is_no_time_at_all(kept: JournalFiles) -> None:
    filled(kept, [("sh", "make", "done", 1000, 900)] * 3)
    async with open_records(kept.path) as records:
        assert await records.calls.typical_duration("sh", "make") == TypicalDuration(0, 0, 3)


async def test_the_time_a_person_took_is_not_counted(kept: JournalFiles) -> None:
    story: list[Event] = []
    for number in range(3):
        call, approval = f"c{number}", f"a{number}"
        story += [
            call_opened(call),
            approval_opened(approval, call),
            approval_allowed(approval, call),
            call_started(call),
            approval_opened(f"r{number}", call),
            approval_allowed(f"r{number}", call),
            call_settled(call),
        ]
    async with records_after(kept, *story):
        pass
    with closing(sqlite3.connect(kept.path)) as connection:
        connection.execute(
            """UPDATE calls SET opened_at = started_at - 100000, reviewed_at = started_at + 7,
            settled_at = started_at + 60007"""
        )
        connection.execute(
            """UPDATE approvals SET answered_at = calls.settled_at
            FROM calls WHERE approvals.id = calls.approval"""
        )
        connection.commit()
    async with open_records(kept.path) as records:
        assert await records.calls.typical_duration("write_file", "write a.txt") == TypicalDuration(7, 7, 3)
        assert [(call.waited_ms, call.ran_ms) for call in await records.calls.find()] == [(160_000, 7)] * 3


async def test_a_call_tells_when_it_was_asked_answered_run_and_ended_and_how_its_command_ended(
    kept: JournalFiles,
) -> None:
    result = Result(text="No module named pytest", data={"exit_code": 1, "signal": None})
    story: list[Event] = [
        replace(call_opened(), tool="execute_command"),
        approval_opened(),
        approval_allowed(),
        call_started(),
        replace(call_settled(), result=result),
    ]
    async with records_after(kept, *story) as records:
        call = (await records.calls.find())[0]
        times = (call.opened_at, call.asked_at, call.answered_at, call.started_at, call.settled_at)
        assert None not in times
        assert list(times) == sorted(time or 0 for time in times)
        assert (call.exit_code, call.signal, call.edited) == (1, None, False)
        assert call.answered_by == approval_allowed().by


async def test_an_exit_code_that_a_call_only_reports_is_not_its_own(kept: JournalFiles) -> None:
    result = Result(text="", data={"exit_code": 1, "signal": "SIGKILL"})
    story: list[Event] = [
        replace(call_opened(), tool="get_terminal_buffer"),
        call_started(),
        replace(call_settled(), result=result),
    ]
    async with records_after(kept, *story) as records:
        call = (await records.calls.find())[0]
        assert (call.exit_code, call.signal, call.asked_at) == (None, None, None)
