"""Undo over real files and a real journal: what is put back, what is refused, and what a crash leaves."""

import sqlite3
import stat
from collections.abc import AsyncGenerator
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from tests.support.actors import ANN
from tests.support.undo_workspace import UndoWorkspace, sha, undo_actions, undo_message, undo_workspace

from handrail.errors import Conflict, Unwritable
from handrail.gate.call import Call, Outcome
from handrail.gate.tool import UnknownUndo
from handrail.store.actor import actor_from_text
from handrail.store.events import CallOpened, CallSettled, CallStarted
from handrail.store.old_contents import SMALL
from handrail.store.values import FileChange, Receipt
from handrail.tools.files.target import Target
from handrail.tools.undo import undo_call
from handrail.tools.undo.undo_call import Undo

pytestmark = pytest.mark.anyio


@pytest.fixture
async def regret(home: Path, root: Path) -> AsyncGenerator[UndoWorkspace]:
    async with undo_workspace(home, root) as place:
        yield place


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def below(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


# One file


async def test_a_changed_file_gets_back_its_content_and_the_preview_shows_that_first(
    regret: UndoWorkspace, root: Path
) -> None:
    (root / "a").write_text("old\nsame\n")
    call = await regret.write("a", "new\nsame\n")

    plan = await regret.undo.preview(call)
    assert (plan.what, plan.of, plan.title, plan.undo) == (call, "call", "Write a", None)
    (file,) = plan.files
    assert (file.path, file.does, file.added, file.removed) == (str(root / "a"), "restore", 1, 1)
    assert file.says == f"It gets back what it held before call {call} (Write a)."
    assert file.diff.splitlines()[-3:] == ["-new", "+old", " same"]
    assert (root / "a").read_text() == "new\nsame\n"
    assert await regret.restored() == []

    done = await regret.undo.undo(call, plan.digest, ANN)
    assert (root / "a").read_text() == "old\nsame\n"
    assert (done.files[0].does, done.files[0].says) == ("restore", "It is as it was before.")
    (event,) = await regret.restored()
    assert (event.undo, event.calls, event.by) == (done.undo, (call,), "ann")
    assert event.files == (
        FileChange(
            path=str(root / "a"), before=sha("new\nsame\n"), after=sha("old\nsame\n"), mode=mode(root / "a")
        ),
    )
    assert len(done.undo or "") == 11


async def test_a_created_file_goes_with_the_folders_made_for_it(regret: UndoWorkspace, root: Path) -> None:
    call = await regret.write("new/deep/a", "x\n")
    plan = await regret.undo.preview(call)
    assert undo_actions(plan) == {"a": "remove"}
    assert plan.files[0].removed == 1
    assert undo_message(plan, "a") == f"It goes: it was not there before call {call} (Write new/deep/a)."
    await regret.take_back(call)
    assert below(root) == []


async def test_a_folder_that_somebody_uses_since_stays(regret: UndoWorkspace, root: Path) -> None:
    call = await regret.write("new/deep/a", "x\n")
    (root / "new" / "mine").write_text("y\n")
    await regret.take_back(call)
    assert below(root) == ["new", "new/mine"]


async def test_folders_made_for_several_files_go_with_the_last_of_them(
    regret: UndoWorkspace, root: Path
) -> None:
    await regret.write("new/a", "x\n")
    await regret.write("new/b", "x\n")
    assert undo_actions(await regret.take_back("o1")) == {"a": "remove", "b": "remove"}
    assert below(root) == []


async def test_a_folder_that_was_there_before_stays_even_when_it_is_empty(
    regret: UndoWorkspace, root: Path
) -> None:
    (root / "old").mkdir()
    await regret.take_back(await regret.write("old/a", "x\n"))
    assert below(root) == ["old"]


async def test_a_deleted_file_comes_back_with_the_mode_it_had(regret: UndoWorkspace, root: Path) -> None:
    (root / "a").write_text("secret\n")
    (root / "a").chmod(0o640)
    call = await regret.delete("a")
    assert not (root / "a").exists()
    plan = await regret.undo.preview(call)
    assert undo_actions(plan) == {"a": "recreate"}
    assert "with mode 640" in undo_message(plan, "a")
    await regret.undo.undo(call, plan.digest, ANN)
    assert ((root / "a").read_text(), mode(root / "a")) == ("secret\n", 0o640)


async def test_a_deleted_file_comes_back_though_its_folder_is_gone(regret: UndoWorkspace, root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "a").write_text("x\n")
    call = await regret.delete("sub/a")
    (root / "sub").rmdir()
    done = await regret.take_back(call)
    assert (root / "sub" / "a").read_text() == "x\n"
    await regret.take_back(done.undo or "")  # and so the folder that was made for it goes again
    assert below(root) == []


async def test_a_mode_that_was_changed_goes_back(regret: UndoWorkspace, root: Path) -> None:
    (root / "a").write_text("x\n")
    (root / "a").chmod(0o644)
    call = await regret.patch(
        "a",
        "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n",
    )
    assert mode(root / "a") == 0o755
    plan = await regret.undo.preview(call)
    assert "Its mode goes back from 755 to 644." in undo_message(plan, "a")
    done = await regret.undo.undo(call, plan.digest, ANN)
    assert ((root / "a").read_text(), mode(root / "a")) == ("x\n", 0o644)
    await regret.take_back(done.undo or "")
    assert ((root / "a").read_text(), mode(root / "a")) == ("y\n", 0o755)


async def test_a_change_of_the_mode_alone_is_undone(regret: UndoWorkspace, root: Path) -> None:
    (root / "a").write_text("x\n")
    (root / "a").chmod(0o644)
    call = await regret.patch("a", "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n")
    plan = await regret.undo.preview(call)
    assert (undo_actions(plan), undo_message(plan, "a")) == (
        {"a": "restore"},
        "Its mode goes back from 755 to 644.",
    )
    await regret.undo.undo(call, plan.digest, ANN)
    assert mode(root / "a") == 0o644


async def test_content_that_is_not_utf8_comes_back_byte_for_byte(regret: UndoWorkspace, root: Path) -> None:
    raw = b"caf\xe9\r\n\xff\xfe\n"
    (root / "a").write_bytes(raw)
    call = await regret.write("a", "plain\n")
    plan = await regret.undo.preview(call)
    assert "+caf\\xe9" in plan.files[0].diff
    await regret.undo.undo(call, plan.digest, ANN)
    assert (root / "a").read_bytes() == raw


async def test_an_empty_file_is_not_the_same_as_none(regret: UndoWorkspace, root: Path) -> None:
    (root / "a").write_text("")
    await regret.take_back(await regret.write("a", "x\n"))
    assert (root / "a").read_text() == ""


# Several calls


async def test_two_calls_on_one_file_in_one_operation_restore_what_was_there_before_both(
    regret: UndoWorkspace, root: Path
) -> None:
    (root / "a").write_text("one\n")
    await regret.write("a", "two\n")
    await regret.write("a", "three\n")
    plan = await regret.undo.preview("o1")
    assert (plan.of, plan.title, undo_actions(plan)) == (
        "operation",
        "2 calls of operation o1",
        {"a": "restore"},
    )
    await regret.undo.undo("o1", plan.digest, ANN)
    assert (root / "a").read_text() == "one\n"


async def test_a_thread_is_undone_over_all_its_operations_and_no_other(
    regret: UndoWorkspace, root: Path
) -> None:
    for name in ("a", "b", "c"):
        (root / name).write_text("old\n")
    await regret.write("a", "new\n", operation="o1")
    await regret.write("b", "new\n", operation="o2")
    await regret.write("c", "new\n", operation="o3", thread="t2")
    done = await regret.take_back("t1")
    assert (done.of, undo_actions(done)) == ("thread", {"a": "restore", "b": "restore"})
    assert [(root / name).read_text() for name in ("a", "b", "c")] == ["old\n", "old\n", "new\n"]


async def test_a_file_another_call_changed_later_is_refused_by_its_name_and_the_others_are_restored(
    regret: UndoWorkspace, root: Path
) -> None:
    for name in ("a", "b"):
        (root / name).write_text("old\n")
    await regret.write("a", "mine\n")
    await regret.write("b", "mine\n")
    other = await regret.write("a", "theirs\n", operation="o2")
    plan = await regret.undo.preview("o1")
    assert undo_actions(plan) == {"b": "restore", "a": "refuse"}
    assert undo_message(plan, "a") == (
        f"It was changed since, by call {other} (Write a), and that would be lost. Undo that first. "
        "The diff is what was changed since."
    )
    diff = next(file.diff for file in plan.files if file.path.endswith("/a"))
    assert diff.splitlines()[-2:] == ["-mine", "+theirs"]
    done = await regret.undo.undo("o1", plan.digest, ANN)
    assert undo_actions(done) == {"b": "restore", "a": "refuse"}
    assert [(root / name).read_text() for name in ("a", "b")] == ["theirs\n", "old\n"]
    assert [change.path for change in (await regret.restored())[0].files] == [str(root / "b")]

    await regret.take_back(other)
    await regret.take_back("o1")
    assert (root / "a").read_text() == "old\n"


async def test_a_change_of_another_call_between_ours_is_refused(regret: UndoWorkspace, root: Path) -> None:
    (root / "a").write_text("old\n")
    await regret.write("a", "one\n")
    other = await regret.write("a", "theirs\n", operation="o2")
    await regret.write("a", "three\n")
    plan = await regret.undo.preview("o1")
    assert undo_actions(plan) == {"a": "refuse"}
    assert f"by call {other}" in undo_message(plan, "a")


async def test_a_change_between_ours_that_was_taken_back_itself_is_not_in_the_way(
    regret: UndoWorkspace, root: Path
) -> None:
    (root / "a").write_text("old\n")
    await regret.write("a", "one\n")
    await regret.take_back(await regret.write("a", "theirs\n", operation="o2"))
    await regret.write("a", "three\n")
    await regret.take_back("o1")
    assert (root / "a").read_text() == "old\n"


async def test_a_file_changed_by_hand_is_refused_with_the_difference(
    regret: UndoWorkspace, root: Path
) -> None:
    (root / "a").write_text("old\n")
    call = await regret.write("a", "new\n")
    (root / "a").write_text("by hand\n")
    plan = await regret.undo.preview(call)
    assert undo_actions(plan) == {"a": "refuse"}
    assert undo_message(plan, "a") == (
        "It was changed since, by hand or by a command, and that would be lost. "
        "Undoing would also discard those later edits."
    )
    assert plan.files[0].diff.splitlines()[-2:] == ["-by hand", "+old"]
    done = await regret.undo.undo(call, plan.digest, ANN)
    assert ((root / "a").read_text(), done.undo) == ("by hand\n", None)
    assert await regret.restored() == []


async def test_a_change_by_hand_between_two_of_ours_is_refused(regret: UndoWorkspace, root: Path) -> None:
    (root / "a").write_text("old\n")
    await regret.write("a", "one\n")
    (root / "a").write_text("by hand\n")
    await regret.write("a", "two\n")
    plan = await regret.undo.preview("o1")
    assert undo_actions(plan) == {"a": "refuse"}
    assert "by hand" in undo_message(plan, "a")


async def test_a_file_deleted_by_hand_is_refused(regret: UndoWorkspace, root: Path) -> None:
    (root / "a").write_text("old\n")
    call = await regret.write("a", "new\n")
    (root / "a").unlink()
    plan = await regret.undo.preview(call)
    assert undo_actions(plan) == {"a": "refuse"}
    assert undo_message(plan, "a").startswith("It was deleted since, by hand or by a command")


async def test_a_file_that_holds_the_old_content_already_needs_nothing(
    regret: UndoWorkspace, root: Path
) -> None:
    (root / "a").write_text("old\n")
    call = await regret.write("a", "new\n")
    (root / "a").write_text("old\n")
    done = await regret.take_back(call)
    assert (undo_actions(done), undo_message(done, "a")) == (
        {"a": "nothing"},
        "It is as it was before already.",
    )
    assert (done.undo, await regret.restored()) == (None, [])


async def test_a_call_that_failed_before_it_wrote_is_not_in_the_way(
    regret: UndoWorkspace, root: Path
) -> None:
    (root / "a").write_text("old\n")
    path, file = str(root / "a"), root / "a"
    failed = Call.open(regret.journal, "write_file", "Write a", {}, regret.caller("o1", "t1"))
    regret.journal.append(
        CallStarted(
            call=failed.id,
            claims=(),
            allowed_by="rule r1",
            files=(FileChange(path=path, before=sha("older\n"), after=sha("never\n"), mode=0o644),),
        )
    )
    failed.settle(Outcome(ending="failed", by=actor_from_text("write_file")), stopped=True)
    await regret.write("a", "new\n")
    assert undo_actions(await regret.take_back("o1")) == {"a": "restore"}
    assert file.read_text() == "old\n"


async def test_a_call_that_is_still_writing_is_not_undone(regret: UndoWorkspace, root: Path) -> None:
    (root / "a").write_text("old\n")
    call = Call.open(regret.journal, "write_file", "Write a", {}, regret.caller("o1", "t1"))
    change = FileChange(path=str(root / "a"), before=sha("old\n"), after=sha("new\n"), mode=0o644)
    regret.journal.append(CallStarted(call=call.id, claims=(), allowed_by="rule r1", files=(change,)))
    plan = await regret.undo.preview(call.id)
    assert (undo_actions(plan), undo_message(plan, "a")) == (
        {"a": "refuse"},
        f"call {call.id} (Write a) is still at it. Undo when that has ended.",
    )


# Undoing an undo


async def test_an_undo_can_be_undone_and_that_too(regret: UndoWorkspace, root: Path) -> None:
    (root / "a").write_text("old\n")
    await regret.write("a", "new\n")
    await regret.write("b", "created\n")
    last = "o1"
    for content in ("old\n", "new\n", "old\n"):
        done = await regret.take_back(last)
        assert (root / "a").read_text() == content
        assert (root / "b").exists() == (content == "new\n")
        assert done.undo is not None
        last = done.undo
    plan = await regret.undo.preview(last)
    assert (plan.of, undo_actions(plan)) == ("undo", {"a": "restore", "b": "recreate"})


async def test_a_call_that_was_undone_and_redone_can_be_undone_again(
    regret: UndoWorkspace, root: Path
) -> None:
    (root / "a").write_text("old\n")
    call = await regret.write("a", "new\n")
    first = await regret.take_back(call)
    assert undo_actions(await regret.undo.preview(call)) == {"a": "nothing"}
    await regret.take_back(first.undo or "")
    await regret.take_back(call)
    assert (root / "a").read_text() == "old\n"


async def test_what_an_operation_did_after_its_call_was_undone_is_undone_with_it(
    regret: UndoWorkspace, root: Path
) -> None:
    (root / "a").write_text("old\n")
    await regret.take_back(await regret.write("a", "one\n"))
    await regret.write("a", "two\n")
    await regret.take_back("o1")
    assert (root / "a").read_text() == "old\n"


# What was shown is what is done


async def test_an_undo_that_would_do_something_else_is_refused(regret: UndoWorkspace, root: Path) -> None:
    (root / "a").write_text("old\n")
    call = await regret.write("a", "new\n")
    shown = await regret.undo.preview(call)
    (root / "a").write_text("by hand\n")
    with pytest.raises(Conflict, match="no longer what you were shown"):
        await regret.undo.undo(call, shown.digest, ANN)
    assert (root / "a").read_text() == "by hand\n"
    assert await regret.restored() == []


async def test_a_mode_changed_since_it_was_shown_makes_it_another_undo(
    regret: UndoWorkspace, root: Path
) -> None:
    (root / "a").write_text("old\n")
    call = await regret.write("a", "new\n")
    shown = await regret.undo.preview(call)
    (root / "a").chmod(0o755)
    with pytest.raises(Conflict):
        await regret.undo.undo(call, shown.digest, ANN)
    assert "from 755" in undo_message(await regret.undo.preview(call), "a")


async def test_two_who_undo_the_same_at_once_undo_it_once(regret: UndoWorkspace, root: Path) -> None:
    (root / "a").write_text("old\n")
    call = await regret.write("a", "new\n")
    digest = (await regret.undo.preview(call)).digest
    won: list[str] = []

    async def try_it(by: str) -> None:
        try:
            await regret.undo.undo(call, digest, actor_from_text(by))
            won.append(by)
        except Conflict:
            pass

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(try_it, f"person {number}")
    assert len(won) == 1
    assert [event.by for event in await regret.restored()] == won


async def test_an_unknown_id_says_what_to_run(regret: UndoWorkspace) -> None:
    with pytest.raises(UnknownUndo, match="`handrail calls` lists the calls there are"):
        await regret.undo.preview("nobody")


# What no undo covers


async def test_commands_are_named_as_not_covered(regret: UndoWorkspace, root: Path) -> None:
    (root / "a").write_text("old\n")
    await regret.write("a", "new\n")
    await regret.command("make install")
    await regret.command("never ran", starts=False)
    await regret.command("elsewhere", operation="o2")
    plan = await regret.undo.preview("o1")
    assert plan.not_covered == ("Whatever this changed: make install",)
    assert undo_actions(plan) == {"a": "restore"}


async def test_a_write_of_the_time_before_contents_were_kept_says_so(
    regret: UndoWorkspace, root: Path
) -> None:
    caller = regret.caller("o1", "t1")
    regret.journal.append(CallOpened(call="c0", tool="write_file", title="Write a", input={}, caller=caller))
    regret.journal.append(CallStarted(call="c0", claims=(), allowed_by="approval a1"))
    receipt = Receipt(ended_by="write_file", stopped=True, files_changed=(str(root / "a"),))
    regret.journal.append(
        CallSettled(call="c0", ending="done", by="write_file", message="", result=None, receipt=receipt)
    )
    plan = await regret.undo.preview("c0")
    assert plan.files == ()
    assert plan.not_covered == (f"{root / 'a'}: what it held before call c0 was not kept.",)


# What is no longer kept


async def test_a_content_that_was_let_go_is_said_plainly_and_the_others_are_restored(
    regret: UndoWorkspace, root: Path
) -> None:
    for name in ("a", "b"):
        (root / name).write_text(f"old {name}\n")
        await regret.write(name, "new\n")
    gone = sha("old a\n")
    prune = partial(regret.blobs.prune, 0, 0, keep=lambda name: name != gone)
    await anyio.to_thread.run_sync(prune)
    await regret.journal.written()
    done = await regret.take_back("o1")
    assert undo_actions(done) == {"b": "restore", "a": "refuse"}
    assert (
        undo_message(done, "a") == f"It cannot come back: its old content ({gone[:12]}…) is no longer kept."
    )
    assert [(root / name).read_text() for name in ("a", "b")] == ["new\n", "old b\n"]


@pytest.mark.parametrize("old", ["old\n", "x" * SMALL + "\n"])
async def test_a_damaged_content_is_never_written(
    regret: UndoWorkspace, home: Path, root: Path, old: str
) -> None:
    (root / "a").write_text(old)
    call = await regret.write("a", "new\n")
    name = sha(old)
    if len(old) > SMALL:
        (home / "blobs" / name[:2] / name[2:]).write_text("bad\n")
    else:
        with closing(sqlite3.connect(home / "handrail.db")) as database, database:
            database.execute("UPDATE old_contents SET content = ? WHERE sha = ?", (b"bad\n", name))
    done = await regret.take_back(call)
    assert undo_actions(done) == {"a": "refuse"}
    assert "is damaged on disk, so it is not used" in undo_message(done, "a")
    assert (root / "a").read_text() == "new\n"


# Links, and what else may stand in the way


async def test_a_link_put_in_a_files_place_is_not_followed(
    regret: UndoWorkspace, root: Path, tmp_path: Path
) -> None:
    (root / "a").write_text("old\n")
    call = await regret.write("a", "new\n")
    outside = tmp_path / "outside"
    outside.write_text("new\n")
    (root / "a").unlink()
    (root / "a").symlink_to(outside)
    done = await regret.take_back(call)
    assert undo_actions(done) == {"a": "refuse"}
    assert "A symbolic link now leads from" in undo_message(done, "a")
    assert outside.read_text() == "new\n"


async def test_a_link_put_in_a_folders_place_is_not_followed(
    regret: UndoWorkspace, root: Path, tmp_path: Path
) -> None:
    call = await regret.write("sub/a", "x\n")
    elsewhere = tmp_path / "elsewhere"
    (root / "sub").rename(elsewhere)
    (root / "sub").symlink_to(elsewhere)
    assert undo_actions(await regret.take_back(call)) == {"a": "refuse"}
    assert (elsewhere / "a").read_text() == "x\n"


async def test_a_link_swapped_in_after_it_was_written_down_is_not_followed(
    regret: UndoWorkspace, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "a").write_text("old\n")
    call = await regret.write("sub/a", "new\n")
    elsewhere = tmp_path / "elsewhere"
    put_back, swapped = undo_call.restore_file, list[bool]()

    def swap_then_put_back(target: Target, content: bytes | None, mode: int | None) -> None:
        (root / "sub").rename(elsewhere)
        (root / "sub").symlink_to(elsewhere)
        swapped.append(True)
        put_back(target, content, mode)

    monkeypatch.setattr(undo_call, "restore_file", swap_then_put_back)
    done = await regret.take_back(call)
    assert swapped == [True]
    assert undo_actions(done) == {"a": "refuse"}
    assert (elsewhere / "a").read_text() == "new\n"


async def test_an_edit_in_the_last_moment_is_not_overwritten(
    regret: UndoWorkspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("old\n")
    call = await regret.write("a", "new\n")
    put_back = undo_call.restore_file

    def edit_then_put_back(target: Target, content: bytes | None, mode: int | None) -> None:
        (root / "a").write_text("by hand\n")
        put_back(target, content, mode)

    monkeypatch.setattr(undo_call, "restore_file", edit_then_put_back)
    done = await regret.take_back(call)
    assert undo_actions(done) == {"a": "refuse"}
    assert undo_message(done, "a").startswith("It was left alone.")
    assert (root / "a").read_text() == "by hand\n"


@pytest.mark.parametrize("after_keeping", [False, True])
async def test_an_edit_while_contents_are_kept_is_seen(
    regret: UndoWorkspace, root: Path, monkeypatch: pytest.MonkeyPatch, after_keeping: bool
) -> None:
    for name in ("a", "b"):
        (root / name).write_text("old\n")
        await regret.write(name, "new\n")
    keep = undo_call.UndoRun.keep

    def keep_and_edit(run: undo_call.UndoRun) -> tuple[FileChange, ...]:
        kept = keep(run) if after_keeping else ()
        (root / "a").write_text("by hand\n")
        return kept or keep(run)

    monkeypatch.setattr(undo_call.UndoRun, "keep", keep_and_edit)
    done = await regret.take_back("o1")
    assert undo_actions(done) == {"b": "restore", "a": "refuse"}
    assert (
        undo_message(done, "a")
        == "It was left alone. It changed at the very moment it was undone. Look again."
    )
    assert [(root / name).read_text() for name in ("a", "b")] == ["by hand\n", "old\n"]
    (event,) = await regret.restored()
    assert len(event.files) == 1 + after_keeping


async def test_a_folder_in_a_files_place_is_refused(regret: UndoWorkspace, root: Path) -> None:
    call = await regret.write("a", "x\n")
    (root / "a").unlink()
    (root / "a").mkdir()
    done = await regret.take_back(call)
    assert undo_actions(done) == {"a": "refuse"}
    assert "is a directory" in undo_message(done, "a")


async def test_the_rest_is_undone_where_a_part_of_the_workspace_is_gone(
    regret: UndoWorkspace, root: Path
) -> None:
    (root / "b").write_text("old\n")
    await regret.write("sub/a", "x\n")
    await regret.write("b", "new\n")
    (root / "sub" / "a").unlink()
    (root / "sub").rmdir()
    assert undo_actions(await regret.take_back("o1")) == {"b": "restore", "a": "nothing"}
    assert (root / "b").read_text() == "old\n"


async def test_a_protected_place_is_named_as_one(regret: UndoWorkspace, home: Path) -> None:
    config = home / "config.toml"
    config.write_text("old\n")
    call = await regret.write(str(config), "new\n")
    plan = await regret.undo.preview(call)
    assert undo_message(plan, "config.toml").endswith("It is a protected place.")
    await regret.undo.undo(call, plan.digest, ANN)
    assert config.read_text() == "old\n"


# Crashes and a full disk


async def test_an_undo_that_was_written_down_but_not_done_is_shown_as_it_is_and_can_be_done(
    regret: UndoWorkspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon dies between the record and the files: nothing pretends that they were written."""
    (root / "a").write_text("old\n")
    call = await regret.write("a", "new\n")

    def die(hands: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(undo_call.UndoRun, "carry_out", die)
        with pytest.raises(KeyboardInterrupt):
            await regret.take_back(call)
    (event,) = await regret.restored()
    assert (root / "a").read_text() == "new\n"

    again = Undo(regret.records, regret.journal, regret.blobs)
    assert undo_actions(await again.preview(event.undo)) == {"a": "nothing"}
    plan = await again.preview(call)
    assert undo_actions(plan) == {"a": "restore"}
    await again.undo(call, plan.digest, ANN)
    assert (root / "a").read_text() == "old\n"


async def test_an_undo_that_was_done_in_part_is_gone_on_with(
    regret: UndoWorkspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (root / name).write_text("old\n")
        await regret.write(name, "new\n")
    put_back = undo_call.restore_file

    def die_at_the_second(target: Target, content: bytes | None, mode: int | None) -> None:
        if target.name == "a":
            raise KeyboardInterrupt
        put_back(target, content, mode)

    with monkeypatch.context() as patched:
        patched.setattr(undo_call, "restore_file", die_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            await regret.take_back("o1")
    assert [(root / name).read_text() for name in ("a", "b")] == ["new\n", "old\n"]
    assert undo_actions(await regret.take_back("o1")) == {"b": "nothing", "a": "restore"}
    assert (root / "a").read_text() == "old\n"


async def test_no_file_is_touched_when_the_record_cannot_be_written(
    regret: UndoWorkspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("old\n")
    call = await regret.write("a", "new\n")
    plan = await regret.undo.preview(call)

    async def unwritable(seq: int) -> None:
        raise Unwritable("disk full")

    monkeypatch.setattr(regret.journal, "committed", unwritable)
    with pytest.raises(Unwritable):
        await regret.undo.undo(call, plan.digest, ANN)
    assert (root / "a").read_text() == "new\n"


async def test_a_file_whose_content_cannot_be_kept_is_left_alone(
    regret: UndoWorkspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("old\n")
    call = await regret.write("a", "new\n")

    def full(content: bytes) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(regret.blobs, "put", full)
    done = await regret.take_back(call)
    assert (undo_actions(done), done.undo) == ({"a": "refuse"}, None)
    assert undo_message(done, "a") == (
        "It was left alone. What it holds now could not be kept (No space left on device)."
    )
    assert (root / "a").read_text() == "new\n"
    assert await regret.restored() == []


async def test_an_undo_nobody_waits_for_any_more_is_done_all_the_same(
    regret: UndoWorkspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("old\n")
    call = await regret.write("a", "new\n")
    digest = (await regret.undo.preview(call)).digest
    committed, last = regret.journal.committed, regret.journal.head
    with anyio.CancelScope() as scope:

        async def give_up(seq: int) -> None:
            if seq > last:
                scope.cancel()
            await committed(seq)

        monkeypatch.setattr(regret.journal, "committed", give_up)
        await regret.undo.undo(call, digest, ANN)
    assert scope.cancel_called
    assert len(await regret.restored()) == 1
    assert (root / "a").read_text() == "old\n"


async def test_the_diffs_of_a_large_undo_are_bounded(
    regret: UndoWorkspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.tools.undo.undo_call.DIFFS_MAX", 400)
    for name in ("a", "b"):
        await regret.write(name, "line\n" * 20)
    plan = await regret.undo.preview("o1")
    shown = {Path(file.path).name: bool(file.diff) for file in plan.files}
    assert shown == {"b": True, "a": False}
    assert undo_message(plan, "a").endswith("Its diff is too long to be shown with the others.")
    assert [file.removed for file in plan.files] == [20, 20]


async def test_a_hundred_files_are_undone_in_one_step(regret: UndoWorkspace, root: Path) -> None:
    for number in range(100):
        await regret.write(f"f{number}", "x\n")
    with anyio.fail_after(30):
        done = await regret.take_back("t1")
    assert set(undo_actions(done).values()) == {"remove"}
    assert below(root) == []
