"""write_file, edit_file and apply_diff, through the real gate."""

import hashlib
import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.actors import PAGE
from tests.support.race import Pauses, Point
from tests.support.tool_runner import ToolRunner, result_of

from handrail.gate import person_actions
from handrail.gate.call import Call
from handrail.gate.tool import Refusal
from handrail.store.blobs import Blobs
from handrail.store.old_contents import SMALL
from handrail.store.values import DiffPreview, FileChange
from handrail.tools.files.atomic_write import replace_file
from handrail.tools.files.edit_tools import (
    ApplyDiff,
    ApplyDiffInput,
    EditFileInput,
    WriteFile,
    WriteFileInput,
)

pytestmark = pytest.mark.anyio


def shown(call: Call) -> DiffPreview:
    assert call.approval is not None
    preview = call.approval.asked.preview
    assert isinstance(preview, DiffPreview)
    return preview


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_a_write_waits_with_its_diff_and_is_done_when_allowed(desk: ToolRunner) -> None:
    (desk.root / "a.txt").write_text("one\ntwo\n")
    call = await desk.waiting("write_file", path="a.txt", content="one\n2\n")
    assert shown(call).diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert (shown(call).added, shown(call).removed, shown(call).creates) == (1, 1, False)
    assert (desk.root / "a.txt").read_text() == "one\ntwo\n"

    result = result_of(await desk.allow(call))
    assert (desk.root / "a.txt").read_text() == "one\n2\n"
    assert result.text == "Wrote a.txt (+1 -1 lines, 6 bytes now)."
    assert result.data == {
        "path": "a.txt", "changed": True, "created": False, "deleted": False, "added": 1, "removed": 1, "size": 6,
        "notes": [], "applied": shown(call).diff,
    }  # fmt: skip
    assert call.receipt.files_changed == (str(desk.root / "a.txt"),)
    assert names(desk.root) == ["a.txt"]


async def test_complete_on_a_waiting_write_accepts_the_diff(desk: ToolRunner) -> None:
    call = await desk.waiting("write_file", path="a.txt", content="one\n")
    assert person_actions.complete(desk.gate, call, PAGE, digest=shown_digest(call))
    assert (await desk.ended(call)).ending == "done"
    assert (desk.root / "a.txt").read_text() == "one\n"


async def test_cancel_on_a_waiting_write_leaves_the_file_alone(desk: ToolRunner) -> None:
    call = await desk.waiting("write_file", path="new/a.txt", content="one\n")
    assert person_actions.cancel(desk.gate, call, PAGE)
    assert (await desk.ended(call)).ending == "cancelled"
    assert names(desk.root) == []


def shown_digest(call: Call) -> str:
    assert call.approval is not None
    return call.approval.digest


async def test_a_new_file_gets_the_directories_it_needs_and_planning_makes_none(desk: ToolRunner) -> None:
    call = await desk.waiting("write_file", path="x/y/a.txt", content="one")
    assert names(desk.root) == []
    assert shown(call).creates
    assert shown(call).notes == (f"Creates the directory {desk.root}/x/y.", "No newline ends the file.")
    result = result_of(await desk.allow(call))
    assert (desk.root / "x/y/a.txt").read_text() == "one"
    assert result.text.startswith("Created x/y/a.txt (+1 -0 lines, 3 bytes now).")
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((desk.root / "x/y/a.txt").stat().st_mode) == 0o666 & ~umask


async def test_writing_the_same_content_says_so_and_touches_nothing(desk: ToolRunner) -> None:
    (desk.root / "a.txt").write_text("one\n")
    before = (desk.root / "a.txt").stat()
    call = await desk.waiting("write_file", path="a.txt", content="one\n")
    assert shown(call).notes == ("Nothing changes: the file has this content already.",)
    result = result_of(await desk.allow(call))
    assert result.text == "a.txt already has exactly this content; nothing was written."
    assert (result.data["changed"], result.data["applied"]) == (False, "")
    assert (desk.root / "a.txt").stat().st_ino == before.st_ino
    assert call.receipt.files_changed == ()


async def test_the_mode_is_kept_and_shown(desk: ToolRunner) -> None:
    script = desk.root / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o750)
    call = await desk.waiting("edit_file", path="run.sh", old_string="/bin/sh", new_string="/bin/bash")
    assert shown(call).notes == ("The file is executable and stays so (mode 750).",)
    result_of(await desk.allow(call))
    assert stat.S_IMODE(script.stat().st_mode) == 0o750


async def test_a_link_is_followed_and_stays_a_link(desk: ToolRunner) -> None:
    (desk.root / "real.txt").write_text("one\n")
    (desk.root / "link.txt").symlink_to("real.txt")
    call = await desk.waiting("write_file", path="link.txt", content="two\n")
    assert shown(call).notes == (f"Follows a symbolic link: what is written is {desk.root}/real.txt.",)
    result_of(await desk.allow(call))
    assert (desk.root / "link.txt").is_symlink()
    assert (desk.root / "real.txt").read_text() == "two\n"


async def test_crlf_is_kept_by_every_way_of_writing(desk: ToolRunner) -> None:
    file = desk.root / "dos.txt"
    file.write_bytes(b"one\r\ntwo\r\n")
    call = await desk.waiting("edit_file", path="dos.txt", old_string="one\ntwo", new_string="one\n2\n3")
    assert shown(call).notes == ("Line endings are CRLF, as before.",)
    result_of(await desk.allow(call))
    assert file.read_bytes() == b"one\r\n2\r\n3\r\n"
    result_of(await desk.allowed("write_file", path="dos.txt", content="a\nb\n"))
    assert file.read_bytes() == b"a\r\nb\r\n"
    result_of(await desk.allowed("apply_diff", path="dos.txt", diff="@@ -1,2 +1,3 @@\n a\n+new\n b\n"))
    assert file.read_bytes() == b"a\r\nnew\r\nb\r\n"


async def test_a_byte_order_mark_and_bytes_that_are_not_utf8_are_kept(desk: ToolRunner) -> None:
    (desk.root / "bom.txt").write_bytes(b"\xef\xbb\xbfone\n")
    result_of(await desk.allowed("write_file", path="bom.txt", content="two\n"))
    assert (desk.root / "bom.txt").read_bytes() == b"\xef\xbb\xbftwo\n"
    (desk.root / "latin.txt").write_bytes(b"caf\xe9\nold\n")
    call = await desk.waiting("edit_file", path="latin.txt", old_string="old", new_string="new")
    assert " caf\\xe9\n-old\n+new\n" in shown(call).diff
    assert "The file is not UTF-8" in shown(call).notes[0]
    result_of(await desk.allow(call))
    assert (desk.root / "latin.txt").read_bytes() == b"caf\xe9\nnew\n"


async def test_a_file_that_changed_while_the_person_looked_is_not_overwritten(desk: ToolRunner) -> None:
    (desk.root / "a.txt").write_text("one\n")
    call = await desk.waiting("write_file", path="a.txt", content="two\n")
    (desk.root / "a.txt").write_text("someone else's\n")
    assert (await desk.allow(call)).ending == "failed"
    assert (desk.root / "a.txt").read_text() == "someone else's\n"


async def test_a_file_that_changed_at_the_last_moment_is_not_overwritten_and_the_difference_is_told(
    desk: ToolRunner,
) -> None:
    (desk.root / "a.txt").write_text("one\ntwo\n")
    tool = desk.gate.toolbox["edit_file"]
    plan = await tool.plan(EditFileInput(path="a.txt", old_string="two", new_string="2"), desk.caller)
    (desk.root / "a.txt").write_text("one\nthree\n")
    with pytest.raises(Refusal) as caught:
        await tool.run(plan, desk.call("edit_file"))
    assert caught.value.sentence == (
        "a.txt changed on disk since this change was proposed: another agent or program wrote it. Nothing was written. "
        "Read it again, then propose your change again. It changed like this:\n"
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three"
    )
    assert (desk.root / "a.txt").read_text() == "one\nthree\n"
    assert names(desk.root) == ["a.txt"]


async def _planned(desk: ToolRunner, path: str) -> Any:
    return await desk.gate.toolbox["write_file"].plan(WriteFileInput(path=path, content="new\n"), desk.caller)


async def test_a_file_that_appears_at_the_last_moment_is_not_overwritten(desk: ToolRunner) -> None:
    plan = await _planned(desk, "a.txt")
    (desk.root / "a.txt").write_text("theirs\n")
    with pytest.raises(Refusal, match=r"a\.txt was created on disk since this change was proposed"):
        await desk.gate.toolbox["write_file"].run(plan, desk.call("write_file"))
    assert (desk.root / "a.txt").read_text() == "theirs\n"
    assert names(desk.root) == ["a.txt"]


async def test_a_link_swapped_in_at_the_last_moment_leads_no_write_outside(
    desk: ToolRunner, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (desk.root / "sub").mkdir()
    for path in ("sub/a.txt", "sub/new/a.txt"):
        plan = await _planned(desk, path)
        (desk.root / "sub").rename(desk.root / "was")
        (desk.root / "sub").symlink_to(outside)
        with pytest.raises(Refusal, match="no longer what it was"):
            await desk.gate.toolbox["write_file"].run(plan, desk.call("write_file"))
        assert names(outside) == []
        (desk.root / "sub").unlink()
        (desk.root / "was").rename(desk.root / "sub")


async def test_a_target_swapped_for_a_link_at_the_last_moment_is_refused(
    desk: ToolRunner, tmp_path: Path
) -> None:
    (tmp_path / "victim").write_text("new\n")
    (desk.root / "a.txt").write_text("old\n")
    plan = await _planned(desk, "a.txt")
    (desk.root / "a.txt").unlink()
    (desk.root / "a.txt").symlink_to(tmp_path / "victim")
    with pytest.raises(Refusal, match="no longer what it was"):
        await desk.gate.toolbox["write_file"].run(plan, desk.call("write_file"))
    assert (desk.root / "a.txt").is_symlink()


async def test_a_link_put_where_a_new_directory_should_be_is_refused(
    desk: ToolRunner, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    plan = await _planned(desk, "new/deep/a.txt")
    (desk.root / "new").symlink_to(outside)
    with pytest.raises(Refusal, match="no longer what it was"):
        await desk.gate.toolbox["write_file"].run(plan, desk.call("write_file"))
    assert names(outside) == []


async def test_directories_made_for_a_write_that_fails_are_taken_away_again(
    desk: ToolRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    plan = await _planned(desk, "new/deep/a.txt")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Refusal, match="could not be written: No space left on device"):
        await desk.gate.toolbox["write_file"].run(plan, desk.call("write_file"))
    assert names(desk.root) == []


@pytest.mark.parametrize(
    ("old", "new", "every", "sentence"),
    [
        ("", "x", False, "old_string is empty, which matches everywhere. Use write_file"),
        ("one", "one", False, "old_string and new_string are the same"),
        ("nowhere to be found", "x", False, "Nothing in it comes close; read the file again"),
        ("def f(x):\n\treturn x", "x", False, "These lines differ only in white space:\n     2→def f(x):\n     3→    return x"),
        ("    return y", "x", False, "The closest lines are:\n     3→    return x"),
        ("one", "x", False, "old_string occurs 2 times in a.py (lines 1, 4). Add lines around it"),
    ],
)  # fmt: skip
async def test_an_edit_that_cannot_be_made_says_why(
    desk: ToolRunner, old: str, new: str, every: bool, sentence: str
) -> None:
    (desk.root / "a.py").write_text("# one\ndef f(x):\n    return x\n# one\n")
    said = await desk.refusal("edit_file", path="a.py", old_string=old, new_string=new, replace_all=every)
    assert sentence in said


async def test_replace_all_replaces_every_occurrence(desk: ToolRunner) -> None:
    (desk.root / "a.txt").write_text("x x\nx\n")
    result = result_of(
        await desk.allowed("edit_file", path="a.txt", old_string="x", new_string="yy", replace_all=True)
    )
    assert (desk.root / "a.txt").read_text() == "yy yy\nyy\n"
    assert result.text.startswith("Replaced 3 occurrences in a.txt")


async def test_what_is_no_text_file_is_refused_for_writing(desk: ToolRunner) -> None:
    (desk.root / "dir").mkdir()
    (desk.root / "a.bin").write_bytes(b"\0\1")
    (desk.root / "file").touch()
    os.mkfifo(desk.root / "pipe")
    with (desk.root / "large").open("wb") as large:
        large.truncate(11 << 20)
    (desk.root / "locked").touch(mode=0o444)
    for path, sentence in {
        "dir": "dir is a directory, not a file.",
        "new/": "new/ names a directory.",
        "a.bin": "a.bin is a binary file",
        "file/a": "is a file, not a directory",
        "pipe": "pipe is a named pipe",
        "large": "large is too large to edit here (11,534,336 bytes",
        "locked": "locked is read-only.",
    }.items():
        assert sentence in await desk.refusal("write_file", path=path, content="x")
    assert "no missing to edit" in await desk.refusal(
        "edit_file", path="missing", old_string="a", new_string="b"
    )
    assert "NUL character" in await desk.refusal("write_file", path="a", content="a\0")
    assert "too large: 10,485,761 bytes" in await desk.refusal(
        "write_file", path="a", content="x" * 10_485_761
    )


async def test_an_edit_outside_tells_nothing_before_a_person_allowed_it(
    desk: ToolRunner, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("password = hunter2\n")
    call = await desk.waiting("edit_file", path="../secret", old_string="password = hunter1", new_string="x")
    assert shown(call).notes[0].startswith("This will fail: old_string was not found")
    assert (await desk.allow(call)).ending == "failed"
    call = await desk.waiting("edit_file", path="../secret", old_string="hunter2", new_string="hunter3")
    result_of(await desk.allow(call))
    assert (tmp_path / "secret").read_text() == "password = hunter3\n"


async def test_complete_on_a_write_that_is_under_way_says_that_nothing_is_pending(desk: ToolRunner) -> None:
    call = desk.call("write_file")
    call.plan = await _planned(desk, "a.txt")
    salvage = desk.gate.toolbox["write_file"].salvage(call)
    assert salvage is not None
    assert salvage.result.data == {"path": "a.txt"}
    assert salvage.message.startswith("No pending diff to accept")


UNIFIED = """--- a/a.py
+++ b/a.py
@@ -1,3 +1,3 @@
 import os
-import sys
+import json

@@ -40,2 +40,3 @@ def main():
 def main():
+    "Begin."
     pass
"""


async def test_a_diff_with_wrong_line_numbers_goes_where_its_lines_are(desk: ToolRunner) -> None:
    (desk.root / "a.py").write_text("# first\nimport os\nimport sys\n\ndef main():\n    pass\n")
    result = result_of(await desk.allowed("apply_diff", path="a.py", diff=UNIFIED))
    assert (desk.root / "a.py").read_text() == (
        '# first\nimport os\nimport json\n\ndef main():\n    "Begin."\n    pass\n'
    )
    assert result.text.startswith("Applied 2 hunks to a.py")


BLOCKS = """<<<<<<< SEARCH
import sys
=======
import json
>>>>>>> REPLACE

<<<<<<< SEARCH
    pass
=======
    return 1
>>>>>>> REPLACE
"""


async def test_search_and_replace_blocks_are_applied(desk: ToolRunner) -> None:
    (desk.root / "a.py").write_text("import sys\ndef main():\n    pass")
    result_of(await desk.allowed("apply_diff", path="a.py", diff=f"```\n{BLOCKS}```"))
    assert (desk.root / "a.py").read_text() == "import json\ndef main():\n    return 1"


async def test_a_diff_can_create_a_file(desk: ToolRunner) -> None:
    result_of(
        await desk.allowed(
            "apply_diff", path="n.txt", diff="--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n"
        )
    )
    assert (desk.root / "n.txt").read_text() == "a\nb\n"


@pytest.mark.parametrize(
    ("diff", "sentence"),
    [
        ("just words", "The diff has no hunk. Give a unified diff"),
        ("@@ -1 +1 @@\n-one\n+1\n@@ -9 +9 @@\n-nine\n+9\n", "Hunk 2 does not match a.txt, so nothing was changed."),
        ("@@ @@\n-same\n+x\n", "Hunk 1 matches a.txt in 2 places (lines 2, 4)"),
        ("<<<<<<< SEARCH\nsame\n=======\nx\n>>>>>>> REPLACE", "Block 1 matches a.txt in 2 places"),
        ("<<<<<<< SEARCH\none\n=======\nx\n", "Block 1 of the diff lacks its `>>>>>>> REPLACE`"),
        ("<<<<<<< SEARCH\none\n", "Block 1 of the diff lacks its `=======`"),
        ("<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE", "Block 1 only adds lines and does not say where"),
        ("@@ -1,2 +1 @@\n-one\n-same\n@@ -2,2 +1,1 @@\n-same\n-three\n", "Hunk 1 and Hunk 2 change the same lines"),
        ("@@ -1 +1 @@\none\n+1\n", "Line 2 of the diff begins with 'o'"),
        ("--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "does not remove all of its lines"),
        ("diff --git a/a.txt b/a.txt\ndeleted file mode 100644\n", "does not remove all of its lines"),
        ("--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+one\n", "creates a.txt, but there is one already"),
        ("@@ -1 +1 @@\n-one\n+1\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-x\n+y\n", "begins another file"),
        ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "more than a change of text"),
    ],
)  # fmt: skip
async def test_a_diff_that_does_not_fit_changes_nothing_and_says_which_hunk(
    desk: ToolRunner, diff: str, sentence: str
) -> None:
    (desk.root / "a.txt").write_text("one\nsame\nthree\nsame\n")
    assert sentence in await desk.refusal("apply_diff", path="a.txt", diff=diff)
    assert (desk.root / "a.txt").read_text() == "one\nsame\nthree\nsame\n"


async def test_a_diff_for_a_missing_file_is_refused(desk: ToolRunner) -> None:
    assert "no b.txt to change" in await desk.refusal(
        "apply_diff", path="b.txt", diff="@@ -1 +1 @@\n-one\n+1\n"
    )


GIT_DELETION = (
    "diff --git a/a.txt b/a.txt\ndeleted file mode 100644\n--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
)


async def test_a_diff_to_nowhere_deletes_the_file_and_claims_so(desk: ToolRunner) -> None:
    (desk.root / "a.txt").write_text("one\n")
    call = await desk.waiting("apply_diff", path="a.txt", diff=GIT_DELETION)
    assert call.approval is not None
    assert [claim.action for claim in call.approval.asked.claims] == ["delete"]
    assert (shown(call).deletes, shown(call).creates, shown(call).removed) == (True, False, 1)
    assert shown(call).notes == ("Deletes the file.",)
    assert shown(call).diff == "--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
    result = result_of(await desk.allow(call))
    assert names(desk.root) == []
    assert result.text == "Deleted a.txt (-1 lines).\nDeletes the file."
    assert (result.data["deleted"], result.data["size"], result.data["applied"]) == (
        True,
        0,
        shown(call).diff,
    )
    assert call.receipt.files_changed == (str(desk.root / "a.txt"),)


async def test_an_empty_file_is_deleted_only_by_a_diff_that_says_so(desk: ToolRunner) -> None:
    (desk.root / "a.txt").touch()
    result_of(await desk.allowed("write_file", path="a.txt", content=""))
    assert names(desk.root) == ["a.txt"]
    gone = "diff --git a/a.txt b/a.txt\ndeleted file mode 100644\nindex e69de29..0000000\n"
    result_of(await desk.allowed("apply_diff", path="a.txt", diff=gone))
    assert names(desk.root) == []
    assert "There is no a.txt to delete." in await desk.refusal("apply_diff", path="a.txt", diff=gone)


async def test_a_deletion_through_a_link_deletes_the_file_and_says_that_the_link_stays(
    desk: ToolRunner,
) -> None:
    (desk.root / "real.txt").write_text("one\n")
    (desk.root / "a.txt").symlink_to("real.txt")
    call = await desk.waiting("apply_diff", path="a.txt", diff=GIT_DELETION)
    assert f"what is deleted is {desk.root}/real.txt" in shown(call).notes[1]
    result_of(await desk.allow(call))
    assert names(desk.root) == ["a.txt"]


async def test_a_diff_changes_the_mode_and_that_is_shown(desk: ToolRunner) -> None:
    script = desk.root / "run.sh"
    script.write_text("true\n")
    script.chmod(0o640)
    head = "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
    call = await desk.waiting("apply_diff", path="run.sh", diff=head)
    assert shown(call).notes == ("Makes the file executable (mode 640 → 750).",)
    result = result_of(await desk.allow(call))
    assert result.text.startswith("Changed the mode of run.sh (+0 -0 lines")
    assert stat.S_IMODE(script.stat().st_mode) == 0o750

    back = "diff --git a/run.sh b/run.sh\nold mode 100755\nnew mode 100644\n--- a/run.sh\n+++ b/run.sh\n"
    call = await desk.waiting("apply_diff", path="run.sh", diff=f"{back}@@ -1 +1 @@\n-true\n+false\n")
    assert shown(call).notes == ("The file is executable no longer (mode 750 → 640).",)
    result_of(await desk.allow(call))
    assert (stat.S_IMODE(script.stat().st_mode), script.read_text()) == (0o640, "false\n")


async def test_a_mode_that_the_file_has_already_is_no_change(desk: ToolRunner) -> None:
    (desk.root / "run.sh").touch(mode=0o755)
    head = "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
    result = result_of(await desk.allowed("apply_diff", path="run.sh", diff=head))
    assert result.data["changed"] is False


async def test_a_diff_creates_an_executable_file(desk: ToolRunner) -> None:
    diff = "diff --git a/n.sh b/n.sh\nnew file mode 100755\n--- /dev/null\n+++ b/n.sh\n@@ -0,0 +1 @@\n+true\n"
    call = await desk.waiting("apply_diff", path="n.sh", diff=diff)
    assert shown(call).notes == ("The new file is executable.",)
    assert result_of(await desk.allow(call)).text.startswith("Created n.sh")
    assert (desk.root / "n.sh").stat().st_mode & 0o100


async def test_a_plan_names_the_file_before_and_after_and_the_folders_it_makes(desk: ToolRunner) -> None:
    plan = await _planned(desk, "x/y/a.txt")
    made = (str(desk.root / "x"), str(desk.root / "x/y"))
    new = hashlib.sha256(b"new\n").hexdigest()
    assert plan.files == (FileChange(path=f"{desk.root}/x/y/a.txt", before=None, after=new, made=made),)
    (desk.root / "a.txt").write_text("old\n")
    (desk.root / "a.txt").chmod(0o604)
    old = hashlib.sha256(b"old\n").hexdigest()
    assert (await _planned(desk, "a.txt")).files == (
        FileChange(path=f"{desk.root}/a.txt", before=old, after=new, mode=0o604),
    )
    (desk.root / "a.txt").write_text("new\n")
    assert (await _planned(desk, "a.txt")).files == ()


async def test_what_a_file_held_is_kept_before_it_is_replaced_or_deleted(
    desk: ToolRunner, tmp_path: Path
) -> None:
    file, blobs, held = desk.root / "a.txt", Blobs(tmp_path / "blobs"), list[str]()
    file.write_text("old\n")
    with Pauses() as pauses:
        plan = await _planned(desk, "a.txt")
        pauses.arm(Point(Blobs.put, "leaves"), lambda: held.append(file.read_text()))
        await WriteFile((), blobs).run(plan, desk.call("write_file"))
        gone = ApplyDiffInput(path="a.txt", diff="--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-new\n")
        tool = ApplyDiff((), blobs)
        deletion = await tool.plan(gone, desk.caller)
        pauses.arm(Point(Blobs.put, "leaves"), lambda: held.append(file.read_text()))
        await tool.run(deletion, desk.call("apply_diff"))
        assert pauses.failed is None
    assert held == ["old\n", "new\n"]
    assert not file.exists()
    kept = [change.before for change in (*plan.files, *deletion.files)]
    assert [blobs.get(sha or "") for sha in kept] == [b"old\n", b"new\n"]


async def test_nothing_is_written_when_what_the_file_held_cannot_be_kept(
    desk: ToolRunner, tmp_path: Path
) -> None:
    file = desk.root / "a.txt"
    file.write_text("old\n")
    (tmp_path / "blobs").touch()
    tool = WriteFile((), Blobs(tmp_path / "blobs" / "below a file"))
    with pytest.raises(Refusal, match=r"What a\.txt holds could not be kept for undo \(Not a directory\)"):
        await tool.run(await _planned(desk, "a.txt"), desk.call("write_file"))
    assert file.read_text() == "old\n"


@pytest.mark.parametrize("old", ["old\n", "x" * SMALL + "\n"])
async def test_an_old_content_is_synced_before_the_file_is_replaced(
    desk: ToolRunner, home: Path, old: str
) -> None:
    """A small one in the database, by the commit that records the start; a large one as a file."""
    file, sha = desk.root / "a.txt", hashlib.sha256(old.encode()).hexdigest()
    file.write_text(old)
    seen: list[tuple[bool, bool, bool, bool]] = []

    def look() -> None:
        with closing(sqlite3.connect(home / "handrail.db")) as database:
            rows = database.execute("SELECT content FROM old_contents WHERE sha = ?", (sha,)).fetchall()
            ((started,),) = database.execute("SELECT seq FROM events WHERE kind = 'CallStarted'").fetchall()
        is_synced = desk.gate.journal.synced >= started
        is_file = (home / "blobs" / sha[:2] / sha[2:]).exists()
        seen.append((file.read_text() == old, is_synced, rows == [(old.encode(),)], is_file))

    with Pauses() as pauses:
        pauses.arm(Point(replace_file, "enters"), look)
        assert (await desk.allowed("write_file", path="a.txt", content="new\n")).ending == "done"
        assert pauses.failed is None
    is_small = len(old) <= SMALL
    assert seen == [(True, True, is_small, not is_small)]


async def test_nothing_is_written_when_the_database_cannot_keep_what_the_file_held(
    desk: ToolRunner, home: Path
) -> None:
    file = desk.root / "a.txt"
    file.write_text("old\n")
    call = await desk.waiting("write_file", path="a.txt", content="new\n")
    with closing(sqlite3.connect(home / "handrail.db")) as database, database:
        database.execute(
            "CREATE TRIGGER full BEFORE INSERT ON old_contents BEGIN SELECT RAISE(ABORT, 'disk full'); END"
        )
    outcome = await desk.allow(call)
    assert outcome.ending == "failed"
    assert "disk full" in outcome.message
    assert "nothing was run" in outcome.message
    assert file.read_text() == "old\n"


async def test_what_a_model_proposed_itself_is_not_told_back_at_length(desk: ToolRunner) -> None:
    content = "".join(f"line {number}\n" for number in range(5000))
    result = result_of(await desk.allowed("write_file", path="a.txt", content=content))
    applied = str(result.data["applied"])
    assert len(applied) < 11_000
    assert applied.endswith("more lines; read the file for the rest.")


async def test_half_a_character_is_refused(desk: ToolRunner) -> None:
    assert "half a character" in await desk.refusal("edit_file", **_half(desk))


def _half(desk: ToolRunner) -> dict[str, str]:
    (desk.root / "a.txt").write_text("one\n")
    return {"path": "a.txt", "old_string": "one", "new_string": "\ud800"}


async def test_their_lines_in_lists_are_verb_and_object(desk: ToolRunner) -> None:
    assert (
        desk.gate.toolbox["write_file"].display(WriteFileInput(path="notes.md", content=""))
        == "Write notes.md"
    )


async def test_a_title_has_a_path_relative_to_the_workspace(desk: ToolRunner) -> None:
    """Agents name files by their absolute paths: a list would cut the file's own name off."""
    inside = await desk.waiting("write_file", path=str(desk.root / "src" / "a.txt"), content="")
    assert inside.title == "Write src/a.txt"
    outside = await desk.waiting("write_file", path="/handrail-outside.txt", content="")
    assert outside.title == "Write /handrail-outside.txt"
