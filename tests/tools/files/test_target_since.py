"""A file that changed since its change was proposed: said with the difference, and with what to do."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.tool_runner import ToolRunner

from handrail.gate.call import Call
from handrail.tools.files.edit_tools import WriteFileInput
from handrail.tools.files.target import Target, changed_since, look
from handrail.tools.workspace import Workspace

pytestmark = pytest.mark.anyio


def target_of(root: Path, path: str) -> Target:
    return look(Workspace(str(root)).place(path))


def test_a_file_that_is_what_it_was_has_not_changed(root: Path) -> None:
    (root / "a").write_text("one\n")
    assert changed_since(target_of(root, "a")) is None
    assert changed_since(target_of(root, "new")) is None
    assert changed_since(target_of(root, "new/deep/b")) is None


def test_what_changed_is_told_with_the_difference(root: Path) -> None:
    (root / "a").write_text("one\n")
    target = target_of(root, "a")
    (root / "a").write_text("two\n")
    drift = changed_since(target)
    assert drift is not None
    assert drift.sentence.startswith("a changed on disk since this change was proposed")
    assert drift.sentence.endswith("Read it again, then propose your change again.")
    assert drift.diff == "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n"


def test_a_file_that_is_gone_or_there_by_now_is_told(root: Path) -> None:
    (root / "a").write_text("one\n")
    gone, new, deep = target_of(root, "a"), target_of(root, "b"), target_of(root, "x/y")
    (root / "a").unlink()
    (root / "b").write_text("theirs\n")
    (root / "x").write_text("a file\n")
    found = [changed_since(target) for target in (gone, new, deep)]
    assert [drift.sentence.split(" since")[0] for drift in found if drift is not None] == [
        "a was deleted on disk",
        "b was created on disk",
        "x/y was created on disk",
    ]


def test_something_else_in_its_place_is_told(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "a").write_text("one\n")
    (root / "sub/b").write_text("one\n")
    file, below = target_of(root, "a"), target_of(root, "sub/b")
    (root / "a").unlink()
    (root / "a").symlink_to("sub/b")
    (root / "sub").rename(root / "was")
    (root / "sub").mkdir()
    for target in (file, below):
        drift = changed_since(target)
        assert drift is not None
        assert "is no longer what it was" in drift.sentence


async def test_a_tool_tells_what_became_of_its_file(desk: ToolRunner) -> None:
    (desk.root / "a.txt").write_text("one\n")
    tool = desk.gate.toolbox["write_file"]
    plan = await tool.plan(WriteFileInput(path="a.txt", content="two\n"), desk.caller)
    assert tool.changed_since(plan) is None
    (desk.root / "a.txt").write_text("three\n")
    found = tool.changed_since(plan)
    assert found is not None
    assert found[1].endswith("-one\n+three\n")


def other_agent(desk: ToolRunner) -> ToolRunner:
    return replace(desk, caller=replace(desk.caller, client="other", key="other"))


async def proposed_by_two(desk: ToolRunner) -> tuple[Call, Call]:
    (desk.root / "a.txt").write_text("one\ntwo\nthree\n")
    first = await desk.waiting("edit_file", path="a.txt", old_string="one", new_string="1")
    second = await other_agent(desk).waiting("edit_file", path="a.txt", old_string="three", new_string="3")
    return first, second


async def test_of_two_agents_that_edit_one_file_the_second_is_refused_with_the_difference(
    desk: ToolRunner,
) -> None:
    first, second = await proposed_by_two(desk)
    assert (await desk.allow(first)).ending == "done"
    outcome = await desk.allow(second)
    assert outcome.ending == "failed"
    assert (
        "a.txt changed on disk since this change was proposed: another agent or program wrote it."
        in outcome.message
    )
    assert "Read it again, then propose your change again." in outcome.message
    assert outcome.result is not None
    assert "-one\n+1\n two\n three\n" in outcome.result.text
    assert (desk.root / "a.txt").read_text() == "1\ntwo\nthree\n"
    again = await other_agent(desk).allowed("edit_file", path="a.txt", old_string="three", new_string="3")
    assert again.ending == "done"
    assert (desk.root / "a.txt").read_text() == "1\ntwo\n3\n"


async def test_the_second_is_told_the_same_where_its_edit_no_longer_fits(desk: ToolRunner) -> None:
    (desk.root / "a.txt").write_text("one\n")
    first = await desk.waiting("edit_file", path="a.txt", old_string="one", new_string="1")
    second = await other_agent(desk).waiting("edit_file", path="a.txt", old_string="one", new_string="uno")
    await desk.allow(first)
    outcome = await desk.allow(second)
    assert outcome.ending == "failed"
    assert "Read it again, then propose your change again." in outcome.message
    assert outcome.result is not None
    assert "-one\n+1\n" in outcome.result.text
    assert (desk.root / "a.txt").read_text() == "1\n"
