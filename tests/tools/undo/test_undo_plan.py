"""What undoing means for one file, by the record alone; and that it never loses what somebody else did."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.store.file_changes import ChangeRecord, UndoRecord
from handrail.store.values import Ending, FileChange
from handrail.tools.undo._undo_plan import PriorState, UndoConflict, include_undos, judge_history

Who = Literal["ours", "others", "hand"]


def change(
    seq: int, call: str, before: str | None, after: str | None, ending: Ending | None = "done"
) -> ChangeRecord:
    title = None if call.startswith("u") else f"Write by {call}"
    put = FileChange(path="/w/a", before=before, after=after, mode=0o600 + seq)
    return ChangeRecord(seq=seq, call=call, at=0, change=put, title=title, ending=ending)


def undo(id: str, *calls: str) -> UndoRecord:
    return UndoRecord(id=id, calls=calls, by="ann", at=0)


@given(st.lists(st.sampled_from(["ours", "others", "hand"]), max_size=12))
def test_a_file_is_put_back_only_if_all_that_happened_since_is_ours(story: list[Who]) -> None:
    """Every change makes another content, so whatever is not ours would be lost."""
    history: list[ChangeRecord] = []
    for seq, who in enumerate(["ours", *story]):
        if who != "hand":
            history.append(change(seq, "mine" if who == "ours" else "other", f"v{seq}", f"v{seq + 1}"))
    found = judge_history(history, {"mine"}, f"v{len(story) + 1}")
    assert isinstance(found, PriorState) == (set(story) <= {"ours"})
    if isinstance(found, PriorState):
        assert (found.sha, found.mode) == ("v0", 0o600)


@given(st.lists(st.tuples(st.sampled_from(["ours", "others"]), st.booleans()), max_size=10))
def test_calls_that_failed_before_they_wrote_change_nothing_about_that(story: list[tuple[Who, bool]]) -> None:
    history, now = [change(0, "mine", "v0", "v1")], "v1"
    for seq, (who, writes) in enumerate(story, 1):
        call = "mine" if who == "ours" else "other"
        history.append(change(seq, call, now, f"v{seq + 1}", "done" if writes else "failed"))
        now = f"v{seq + 1}" if writes else now
    found = judge_history(history, {"mine"}, now)
    assert isinstance(found, PriorState) == all(who == "ours" or not writes for who, writes in story)


@pytest.mark.parametrize(("now", "can"), [("x", True), ("y", True), ("z", False), (None, False)])
def test_what_was_interrupted_may_or_may_not_have_been_written(now: str | None, can: bool) -> None:
    found = judge_history([change(1, "mine", "x", "y", "interrupted")], {"mine"}, now)
    assert isinstance(found, PriorState) == can


def test_a_file_put_back_by_somebody_else_keeps_the_mode_they_gave_it() -> None:
    history = [change(1, "mine", "x", "y"), change(2, "other", "y", "x")]
    assert judge_history(history, {"mine"}, "x") == PriorState(
        sha="x", mode=None, because="call mine (Write by mine)"
    )


def test_the_one_in_the_way_is_the_last_that_wrote() -> None:
    history = [
        *(change(1, "mine", "x", "y"), change(2, "other", "y", "z")),
        *(change(3, "third", "z", "w"), change(4, "vain", "w", "v", "failed")),
    ]
    found = judge_history(history, {"mine"}, "w")
    assert isinstance(found, UndoConflict)
    assert "by call third (Write by third)" in found.sentence
    assert (found.left, found.then) == ("y", "x")


def test_an_undo_in_the_way_is_named_with_its_time() -> None:
    history = [change(1, "mine", "x", "y"), change(2, "u1", "y", "z", None)]
    found = judge_history(history, {"mine"}, "z")
    assert isinstance(found, UndoConflict)
    assert "by the undo u1 of 1970-01-01 00:00 UTC" in found.sentence


def test_undos_of_what_is_selected_belong_to_it_and_so_do_undos_of_those() -> None:
    undos = [undo("u1", "c1"), undo("u2", "u1"), undo("u3", "c1", "c9"), undo("u4", "u3")]
    assert include_undos({"c1", "c2"}, undos) == {"c1", "c2", "u1", "u2"}
