"""What the store says of changed files: by whom, in which order, and what was taken back."""

from dataclasses import replace

import pytest
from tests.support.sample_events import JournalFiles, call_opened, call_settled, call_started, records_after

from handrail.store.events import Event, FilesRestored
from handrail.store.file_changes import ChangeRecord
from handrail.store.values import FileChange

pytestmark = pytest.mark.anyio

MADE = FileChange(path="/w/new/deep/a", before=None, after="a1", made=("/w/new", "/w/new/deep"))
EDITED = FileChange(path="/w/b", before="b1", after="b2", mode=0o755)
GONE = FileChange(path="/w/b", before="b2", after=None, mode=0o644)
BACK = FileChange(path="/w/b", before=None, after="b2")


def changing(call: str, *files: FileChange) -> list[Event]:
    return [call_opened(call, title=f"change by {call}"), replace(call_started(call), files=files)]


STORY: list[Event] = [
    *(*changing("c1", MADE, EDITED), call_settled("c1")),
    *(*changing("c2", GONE), call_settled("c2", "failed")),
    *changing("c3"),
    FilesRestored(undo="u1", calls=("c2",), files=(BACK,), by="ann"),
]


def told(changes: list[ChangeRecord]) -> list[tuple[str, FileChange]]:
    return [(record.call, record.change) for record in changes]


async def test_what_calls_did_to_files_is_told_in_the_order_it_was_done(kept: JournalFiles) -> None:
    async with records_after(kept, *STORY) as records:
        found = await records.changes.of_calls(["c2", "c1", "c3", "nobody"])
        assert told(found) == [("c1", MADE), ("c1", EDITED), ("c2", GONE)]
        assert [(record.title, record.ending) for record in found] == [
            *[("change by c1", "done")] * 2,
            ("change by c2", "failed"),
        ]
        assert [record.seq for record in found] == [2, 2, 5]
        assert await records.changes.of_calls([]) == []


async def test_all_that_was_done_to_one_file_is_told_undos_included(kept: JournalFiles) -> None:
    async with records_after(kept, *STORY) as records:
        everything = await records.changes.of_path("/w/b")
        assert told(everything) == [("c1", EDITED), ("c2", GONE), ("u1", BACK)]
        assert (everything[-1].title, everything[-1].ending) == (None, None)
        assert told(await records.changes.of_path("/w/b", since=2)) == [("c2", GONE), ("u1", BACK)]
        assert await records.changes.of_path("/w/c") == []


async def test_an_undo_is_known_with_what_it_took_back(kept: JournalFiles) -> None:
    async with records_after(kept, *STORY) as records:
        undo = await records.changes.undo("u1")
        assert undo is not None
        assert (undo.id, undo.calls, undo.by) == ("u1", ("c2",), "ann")
        assert told(await records.changes.of_calls(["u1"])) == [("u1", BACK)]
        assert await records.changes.undo("c1") is None
        assert await records.changes.undos(["c1", "u1"]) == [undo]


async def test_ten_thousand_calls_can_be_named_at_once(kept: JournalFiles) -> None:
    async with records_after(kept, *STORY) as records:
        assert len(await records.changes.of_calls(f"c{number}" for number in range(40_000))) == 3
