"""What a person makes of a proposal: what is written, and what the agent is told."""

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.actors import PAGE
from tests.support.tool_runner import ToolRunner, result_of

from handrail.errors import Conflict
from handrail.gate import person_actions
from handrail.gate.approval import Answer
from handrail.gate.tool import Refusal, Tool
from handrail.store.values import Comment
from handrail.tools.files.diff import Anchored, changed
from handrail.tools.files.edit_tools import ApplyDiffInput, WriteFileInput
from handrail.tools.files.file_change import ChangePlan
from handrail.tools.files.review import Fate, fates, is_selection, review

pytestmark = pytest.mark.anyio

BEFORE = [f"line {number}\n" for number in range(40)]
PROPOSED = BEFORE.copy()
PROPOSED[5] = "five\n"
PROPOSED[20:22] = ["twenty\n", "and one\n", "more\n"]
PROPOSED[36:36] = ["late\n"]
HUNKS = (slice(5, 6), slice(20, 23), slice(36, 37))


def left(*choices: str) -> str:
    """The file with each hunk kept, rejected or replaced by words of the person's own."""
    lines: list[str] = []
    before = {0: BEFORE[5:6], 1: BEFORE[20:22], 2: []}
    done = 0
    for number, (hunk, choice) in enumerate(zip(HUNKS, choices, strict=True)):
        lines += PROPOSED[done : hunk.start]
        own = {"kept": PROPOSED[hunk], "rejected": before[number]}
        lines += own.get(choice, [choice])
        done = hunk.stop
    return "".join(lines + PROPOSED[done:])


def writer(desk: ToolRunner) -> Tool[Any, Any]:
    return desk.gate.toolbox["write_file"]


async def planned(
    desk: ToolRunner, before: str | bytes | None = None, content: str = "".join(PROPOSED)
) -> ChangePlan:
    file = desk.root / "a.txt"
    if before is None:
        before = "".join(BEFORE)
    file.write_bytes(before if isinstance(before, bytes) else before.encode())
    return await writer(desk).plan(WriteFileInput(path="a.txt", content=content), desk.caller)


async def run(desk: ToolRunner, plan: ChangePlan) -> tuple[str, dict[str, object]]:
    result = await writer(desk).run(plan, desk.call("write_file"))
    return result.text, dict(result.data)


async def test_a_person_keeps_two_of_three_hunks_and_edits_one_and_the_agent_is_told_exactly(
    desk: ToolRunner,
) -> None:
    plan = await planned(desk)
    content = left("kept", "my own words\n", "kept")
    reviewed = writer(desk).review(plan, content, ())
    assert reviewed.bound != plan.bound
    text, data = await run(desk, reviewed)
    assert (desk.root / "a.txt").read_text() == content
    patch = (
        "--- a/a.txt\n+++ b/a.txt\n@@ -18,9 +18,7 @@\n line 17\n line 18\n line 19\n"
        "-twenty\n-and one\n-more\n+my own words\n line 22\n line 23\n line 24\n"
    )
    assert data["review"] == {
        "hunks": 3,
        "kept": 2,
        "partly": 0,
        "rejected": 0,
        "edited": 1,
        "patch": patch,
        "comments": [],
    }
    assert str(data["applied"]).count("@@ -") == 3
    assert "+my own words\n" in str(data["applied"])
    assert text.startswith("Wrote a.txt (+3 -3 lines")
    said = "The person kept 2 of 3 hunks and edited one.\nWhat was written differs from your proposal like this:\n"
    assert f"{said}{patch}".rstrip() in text


async def test_a_rejected_hunk_is_left_as_it_was(desk: ToolRunner) -> None:
    plan = await planned(desk)
    reviewed = writer(desk).review(plan, left("rejected", "kept", "rejected"), ())
    text, _ = await run(desk, reviewed)
    assert (desk.root / "a.txt").read_text() == "".join([*BEFORE[:20], *PROPOSED[20:23], *BEFORE[22:]])
    assert "The person kept 1 of 3 hunks and rejected 2." in text


async def test_a_review_that_leaves_the_proposal_is_the_proposal(desk: ToolRunner) -> None:
    plan = await planned(desk)
    assert writer(desk).review(plan, "".join(PROPOSED), ()) == plan


async def test_comments_alone_bind_nothing_and_are_told_with_their_lines(desk: ToolRunner) -> None:
    plan = await planned(desk)
    comments = (Comment(line=6, text="Why five?"), Comment(line=999, text="Elsewhere."))
    reviewed = writer(desk).review(plan, "".join(PROPOSED), comments)
    assert (reviewed.bound, reviewed.claims, reviewed.files) == (plan.bound, plan.claims, plan.files)
    text, data = await run(desk, reviewed)
    assert isinstance(data["review"], dict)
    assert data["review"]["comments"] == [
        {"line": 6, "on": "five", "text": "Why five?"},
        {"line": 999, "on": "", "text": "Elsewhere."},
    ]
    assert text.endswith(
        "The person reviewed this change and kept all of it.\nThey say, about lines of your proposal:\n"
        "- line 6 (five): Why five?\n- line 999: Elsewhere."
    )


async def test_a_review_that_leaves_the_file_as_it_was_writes_nothing_and_says_so(desk: ToolRunner) -> None:
    plan = await planned(desk)
    before = (desk.root / "a.txt").stat()
    reviewed = writer(desk).review(plan, "".join(BEFORE), (Comment(line=1, text="No."),))
    assert reviewed.files == ()
    call = desk.call("write_file")
    result = await writer(desk).run(reviewed, call)
    assert (desk.root / "a.txt").stat().st_ino == before.st_ino
    assert call.receipt.files_changed == ()
    assert (result.data["changed"], result.data["applied"]) == (False, "")
    assert result.text.startswith(
        "a.txt is as it was.\nThe person reviewed this change and rejected all of it: nothing was written."
    )
    assert "- line 1 (line 0): No." in result.text


async def test_a_new_file_of_which_all_is_rejected_is_not_made(desk: ToolRunner) -> None:
    plan = await writer(desk).plan(WriteFileInput(path="new/b.txt", content="one\n"), desk.caller)
    proposal = writer(desk).proposal(plan)
    assert proposal is not None
    assert (proposal.before, proposal.after) == (None, "one\n")
    text, data = await run(desk, writer(desk).review(plan, "", ()))
    assert not (desk.root / "new").exists()
    assert data["created"] is False
    assert "rejected all of it" in text
    await run(desk, writer(desk).review(plan, "two\n", ()))
    assert (desk.root / "new/b.txt").read_text() == "two\n"


async def test_line_endings_a_byte_order_mark_and_odd_bytes_come_through_a_review(desk: ToolRunner) -> None:
    plan = await planned(desk, b"\xef\xbb\xbfone\r\ncaf\xe9\r\nthree\r\n", "one\r\ncafe\r\nthree\r\n")
    proposal = writer(desk).proposal(plan)
    assert proposal is not None
    assert proposal.before is not None
    assert (proposal.before[:8], proposal.after) == ("one\ncaf" + proposal.before[7], "one\ncafe\nthree\n")
    await run(desk, writer(desk).review(plan, proposal.before.replace("three", "3"), ()))
    assert (desk.root / "a.txt").read_bytes() == b"\xef\xbb\xbfone\r\ncaf\xe9\r\n3\r\n"


async def test_a_missing_final_newline_is_respected(desk: ToolRunner) -> None:
    plan = await planned(desk, "one\ntwo", "one\n2")
    await run(desk, writer(desk).review(plan, "one\nzwei", ()))
    assert (desk.root / "a.txt").read_bytes() == b"one\nzwei"


async def test_a_deletion_can_be_reviewed_into_a_change_or_into_nothing(desk: ToolRunner) -> None:
    (desk.root / "a.txt").write_text("one\ntwo\n")
    diff = "--- a/a.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n"
    tool = desk.gate.toolbox["apply_diff"]
    plan = await tool.plan(ApplyDiffInput(path="a.txt", diff=diff), desk.caller)
    proposal = tool.proposal(plan)
    assert proposal is not None
    assert (proposal.before, proposal.after) == ("one\ntwo\n", None)
    assert tool.review(plan, "", ()) == plan
    kept = tool.review(plan, "one\n", ())
    assert [claim.action for claim in (*plan.claims, *kept.claims)] == ["delete", "write"]
    assert tool.review(plan, "one\ntwo\n", ()).files == ()
    result = await tool.run(kept, desk.call("apply_diff"))
    assert (desk.root / "a.txt").read_text() == "one\n"
    assert result.text.startswith("Wrote a.txt (+0 -1 lines")
    assert "kept some of its lines" in result.text


async def test_a_mode_change_goes_with_what_is_kept_and_falls_with_what_is_rejected(desk: ToolRunner) -> None:
    (desk.root / "a.sh").write_text("one\n")
    diff = "old mode 100644\nnew mode 100755\n--- a/a.sh\n+++ b/a.sh\n@@ -1 +1 @@\n-one\n+two\n"
    tool = desk.gate.toolbox["apply_diff"]
    plan = await tool.plan(ApplyDiffInput(path="a.sh", diff=diff), desk.caller)
    assert tool.review(plan, "one\n", ()).files == ()
    await tool.run(tool.review(plan, "mine\n", ()), desk.call("apply_diff"))
    assert (desk.root / "a.sh").read_text() == "mine\n"
    assert (desk.root / "a.sh").stat().st_mode & 0o100


async def test_content_that_cannot_be_written_is_refused(desk: ToolRunner) -> None:
    plan = await planned(desk)
    for content, sentence in {
        "a\0": "NUL",
        "\ud800": "half a character",
        "x" * 10_485_761: "too large",
    }.items():
        with pytest.raises(Refusal, match=sentence):
            writer(desk).review(plan, content, ())


async def test_a_change_that_will_fail_has_nothing_to_review(desk: ToolRunner, tmp_path: Path) -> None:
    (tmp_path / "far").write_bytes(b"\0")
    plan = await writer(desk).plan(WriteFileInput(path="../far", content="x"), desk.caller)
    assert writer(desk).proposal(plan) is None
    with pytest.raises(Refusal, match="binary"):
        writer(desk).review(plan, "y", ())


async def test_what_the_agent_will_be_told_is_known_before(desk: ToolRunner) -> None:
    plan = await planned(desk)
    assert writer(desk).describe_review(plan) == ""
    assert (
        writer(desk)
        .describe_review(writer(desk).review(plan, left("kept", "kept", "rejected"), ()))
        .startswith("The person kept 2 of 3 hunks and rejected one.")
    )


async def test_a_review_in_which_lines_elsewhere_changed_says_so(desk: ToolRunner) -> None:
    plan = await planned(desk)
    content = "".join(PROPOSED).replace("line 30\n", "thirty\n")
    assert (
        writer(desk)
        .describe_review(writer(desk).review(plan, content, ()))
        .startswith("The person kept 3 of 3 hunks and changed lines elsewhere.")
    )


async def test_a_review_goes_through_the_gate_and_only_what_was_seen_is_written(desk: ToolRunner) -> None:
    (desk.root / "a.txt").write_text("".join(BEFORE))
    call = await desk.waiting("write_file", path="a.txt", content="".join(PROPOSED))
    assert call.approval is not None
    mine = left("kept", "rejected", "mine\n")
    seen = await person_actions.edit(desk.gate, call, content=mine)
    assert seen.tells.startswith("The person kept 1 of 3 hunks, edited one and rejected one.")
    other = Answer(kind="allow", by=PAGE, content=f"{mine}more\n")
    with pytest.raises(Conflict):
        await person_actions.answer(desk.gate, call.approval, other, seen.digest)
    comments = (Comment(line=37, text="Not so late."),)
    answer = Answer(kind="allow", by=PAGE, content=mine, comments=comments)
    await person_actions.answer(desk.gate, call.approval, answer, seen.digest)
    result = result_of(await desk.ended(call))
    assert (desk.root / "a.txt").read_text() == mine
    assert seen.tells in result.text
    assert "- line 37 (late): Not so late." in result.text


async def test_a_review_of_a_file_that_changed_meanwhile_writes_nothing(desk: ToolRunner) -> None:
    (desk.root / "a.txt").write_text("".join(BEFORE))
    call = await desk.waiting("write_file", path="a.txt", content="".join(PROPOSED))
    assert call.approval is not None
    mine = left("kept", "kept", "rejected")
    seen = await person_actions.edit(desk.gate, call, content=mine)
    (desk.root / "a.txt").write_text("theirs\n")
    answer = Answer(kind="allow", by=PAGE, content=mine)
    with pytest.raises(Conflict, match="has changed since you looked at it"):
        await person_actions.answer(desk.gate, call.approval, answer, seen.digest)
    assert (desk.root / "a.txt").read_text() == "theirs\n"


_FATES = st.sampled_from(["kept", "rejected", "own"])


@given(
    sizes=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=4),
    choices=st.lists(_FATES, min_size=4, max_size=4),
)
def test_each_hunk_is_told_as_what_became_of_it(sizes: list[tuple[int, int]], choices: list[str]) -> None:
    old: list[bytes] = []
    new: list[bytes] = []
    final: list[bytes] = []
    expected: list[Fate] = []
    for number, (olds, news) in enumerate(sizes):
        between = [b"%d %d\n" % (number, at) for at in range(9)]
        before = [b"old %d %d\n" % (number, at) for at in range(olds)]
        after = [b"new %d %d\n" % (number, at) for at in range(news or not olds)]
        own = {"kept": after, "rejected": before, "own": [b"own %d\n" % number]}[choices[number]]
        old, new, final = old + between + before, new + between + after, final + between + own
        expected.append(
            "edited" if choices[number] == "own" else "kept" if choices[number] == "kept" else "rejected"
        )
    end = [b"end %d\n" % at for at in range(9)]
    assert len(changed(old + end, new + end)) == len(sizes)
    assert fates(old + end, new + end, final + end) == expected


def test_lines_that_are_kept_and_rejected_one_by_one_are_told_as_kept_in_part() -> None:
    old = [b"import os\n", b"one\n", b"two\n", b"end\n"]
    new = [b"import os\n", b"ONE\n", b"TWO\n", b"THREE\n", b"end\n"]
    for line, left in (
        (b"", [b"import os\n", b"ONE\n", b"THREE\n", b"end\n"]),
        (b"", [b"import os\n", b"two\n", b"TWO\n", b"end\n"]),
        (b"mine\n", [b"import os\n", b"ONE\n", b"mine\n", b"end\n"]),
    ):
        seen = review("a.py", b"".join(old), b"".join(new), b"".join(left))
        assert seen.fates == ("edited" if line else "partly",)
        assert ("kept some of its lines" in seen.words) is (line == b"")
        assert seen.patch.rstrip() in seen.words
    assert is_selection(old, new, [old[0], *new[1:3], old[3]])
    assert not is_selection(old, new, [new[1], new[4]])  # an unchanged line is gone


@given(st.data())
def test_every_selection_of_changed_lines_is_recognised(data: st.DataObject) -> None:
    line = st.sampled_from([b"a\n", b"b\n", b"c\n"])
    old, new = data.draw(st.lists(line, max_size=8)), data.draw(st.lists(line, max_size=8))
    left: list[bytes] = []
    for tag, begin, end, first, last in Anchored(old, new).get_opcodes():
        lines = old[begin:end] if tag == "equal" else [*old[begin:end], *new[first:last]]
        left += [each for each in lines if tag == "equal" or data.draw(st.booleans())]
    assert is_selection(old, new, left)
    assert not is_selection(old, new, [*left, b"mine\n"])


@given(st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d"]), max_size=8), st.data())
def test_any_three_texts_can_be_compared(old: list[bytes], data: st.DataObject) -> None:
    lines = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"e"]), max_size=8)
    before, proposed, final = b"".join(old), b"".join(data.draw(lines)), b"".join(data.draw(lines))
    seen = review("x", before, proposed, final)
    assert len(seen.fates) == len(changed(_split(before), _split(proposed)))
    assert set(seen.fates) <= {"kept"} if final == proposed else seen.patch
    assert not seen.fates or seen.words


@pytest.mark.parametrize("edit", [0, 20_000, 149_999])
def test_a_review_of_a_large_file_with_many_hunks_takes_bounded_time(edit: int) -> None:
    old = [b"%d\n" % (number % 7 if number % 3 else number) for number in range(150_000)]
    new = [b"new\n" if number % 30 == 5 else line for number, line in enumerate(old)]
    left = [*new[:edit], b"mine\n", *new[edit + 1 :]]
    began = time.thread_time()
    found = fates(old, new, left)
    assert time.thread_time() - began < 20
    assert (len(found), found.count("rejected")) == (5000, 0)
    assert found.count("edited") <= 1


def test_a_long_file_of_equal_lines_takes_bounded_time() -> None:
    same = [b"a\n"] * 100_000
    began = time.thread_time()
    found = fates([*same, b"b\n", *same], [*same, b"c\n", *same], [*same[1:], b"mine\n", *same, b"a\n"])
    assert time.thread_time() - began < 20
    assert len(found) == 1


def _split(raw: bytes) -> list[bytes]:
    return raw.splitlines(keepends=True)
