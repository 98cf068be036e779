"""write_file, edit_file and apply_diff, through the real gate."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.tools.desk import Desk, done

from handrail.gate import verbs
from handrail.gate.call import Call
from handrail.gate.tool import Refusal
from handrail.store.value import DiffPreview
from handrail.tools.edits import EditFile, EditFileInput, WriteFile, WriteFileInput

pytestmark = pytest.mark.anyio


def shown(call: Call) -> DiffPreview:
    assert call.approval is not None
    preview = call.approval.asked.preview
    assert isinstance(preview, DiffPreview)
    return preview


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_a_write_waits_with_its_diff_and_is_done_when_allowed(desk: Desk) -> None:
    (desk.root / "a.txt").write_text("one\ntwo\n")
    call = await desk.waiting("write_file", path="a.txt", content="one\n2\n")
    assert shown(call).diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert (shown(call).added, shown(call).removed, shown(call).creates) == (1, 1, False)
    assert (desk.root / "a.txt").read_text() == "one\ntwo\n"

    result = done(await desk.allow(call))
    assert (desk.root / "a.txt").read_text() == "one\n2\n"
    assert result.text == "Wrote a.txt (+1 -1 lines, 6 bytes now)."
    assert result.data == {
        "path": "a.txt", "changed": True, "created": False, "added": 1, "removed": 1, "size": 6, "notes": [],
    }  # fmt: skip
    assert call.receipt.files_changed == (str(desk.root / "a.txt"),)
    assert names(desk.root) == ["a.txt"]


async def test_complete_on_a_waiting_write_accepts_the_diff(desk: Desk) -> None:
    call = await desk.waiting("write_file", path="a.txt", content="one\n")
    assert verbs.complete(desk.gate, call, "page", digest=shown_digest(call))
    assert (await desk.ended(call)).ending == "done"
    assert (desk.root / "a.txt").read_text() == "one\n"


async def test_cancel_on_a_waiting_write_leaves_the_file_alone(desk: Desk) -> None:
    call = await desk.waiting("write_file", path="new/a.txt", content="one\n")
    assert verbs.cancel(desk.gate, call, "page")
    assert (await desk.ended(call)).ending == "cancelled"
    assert names(desk.root) == []


def shown_digest(call: Call) -> str:
    assert call.approval is not None
    return call.approval.digest


async def test_a_new_file_gets_the_directories_it_needs_and_planning_makes_none(desk: Desk) -> None:
    call = await desk.waiting("write_file", path="x/y/a.txt", content="one")
    assert names(desk.root) == []
    assert shown(call).creates
    assert shown(call).notes == (f"Creates the directory {desk.root}/x/y.", "No newline ends the file.")
    result = done(await desk.allow(call))
    assert (desk.root / "x/y/a.txt").read_text() == "one"
    assert result.text.startswith("Created x/y/a.txt (+1 -0 lines, 3 bytes now).")
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((desk.root / "x/y/a.txt").stat().st_mode) == 0o666 & ~umask


async def test_writing_the_same_content_says_so_and_touches_nothing(desk: Desk) -> None:
    (desk.root / "a.txt").write_text("one\n")
    before = (desk.root / "a.txt").stat()
    call = await desk.waiting("write_file", path="a.txt", content="one\n")
    assert shown(call).notes == ("Nothing changes: the file has this content already.",)
    result = done(await desk.allow(call))
    assert result.text == "a.txt already has exactly this content; nothing was written."
    assert result.data["changed"] is False
    assert (desk.root / "a.txt").stat().st_ino == before.st_ino
    assert call.receipt.files_changed == ()


async def test_the_mode_is_kept_and_shown(desk: Desk) -> None:
    script = desk.root / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o750)
    call = await desk.waiting("edit_file", path="run.sh", old_string="/bin/sh", new_string="/bin/bash")
    assert shown(call).notes == ("The file is executable and stays so (mode 750).",)
    done(await desk.allow(call))
    assert stat.S_IMODE(script.stat().st_mode) == 0o750


async def test_a_link_is_followed_and_stays_a_link(desk: Desk) -> None:
    (desk.root / "real.txt").write_text("one\n")
    (desk.root / "link.txt").symlink_to("real.txt")
    call = await desk.waiting("write_file", path="link.txt", content="two\n")
    assert shown(call).notes == (f"Follows a symbolic link: what is written is {desk.root}/real.txt.",)
    done(await desk.allow(call))
    assert (desk.root / "link.txt").is_symlink()
    assert (desk.root / "real.txt").read_text() == "two\n"


async def test_crlf_is_kept_by_every_way_of_writing(desk: Desk) -> None:
    file = desk.root / "dos.txt"
    file.write_bytes(b"one\r\ntwo\r\n")
    call = await desk.waiting("edit_file", path="dos.txt", old_string="one\ntwo", new_string="one\n2\n3")
    assert shown(call).notes == ("Line endings are CRLF, as before.",)
    done(await desk.allow(call))
    assert file.read_bytes() == b"one\r\n2\r\n3\r\n"
    done(await desk.allowed("write_file", path="dos.txt", content="a\nb\n"))
    assert file.read_bytes() == b"a\r\nb\r\n"
    done(await desk.allowed("apply_diff", path="dos.txt", diff="@@ -1,2 +1,3 @@\n a\n+new\n b\n"))
    assert file.read_bytes() == b"a\r\nnew\r\nb\r\n"


async def test_a_byte_order_mark_and_bytes_that_are_not_utf8_are_kept(desk: Desk) -> None:
    (desk.root / "bom.txt").write_bytes(b"\xef\xbb\xbfone\n")
    done(await desk.allowed("write_file", path="bom.txt", content="two\n"))
    assert (desk.root / "bom.txt").read_bytes() == b"\xef\xbb\xbftwo\n"
    (desk.root / "latin.txt").write_bytes(b"caf\xe9\nold\n")
    call = await desk.waiting("edit_file", path="latin.txt", old_string="old", new_string="new")
    assert " caf\\xe9\n-old\n+new\n" in shown(call).diff
    assert "The file is not UTF-8" in shown(call).notes[0]
    done(await desk.allow(call))
    assert (desk.root / "latin.txt").read_bytes() == b"caf\xe9\nnew\n"


async def test_a_file_that_changed_while_the_person_looked_is_not_overwritten(desk: Desk) -> None:
    (desk.root / "a.txt").write_text("one\n")
    call = await desk.waiting("write_file", path="a.txt", content="two\n")
    (desk.root / "a.txt").write_text("someone else's\n")
    assert (await desk.allow(call)).ending == "failed"
    assert (desk.root / "a.txt").read_text() == "someone else's\n"


async def test_a_file_that_changed_at_the_last_moment_is_not_overwritten_and_the_difference_is_told(
    desk: Desk,
) -> None:
    (desk.root / "a.txt").write_text("one\ntwo\n")
    tool = EditFile()
    plan = await tool.plan(EditFileInput(path="a.txt", old_string="two", new_string="2"), desk.caller)
    (desk.root / "a.txt").write_text("one\nthree\n")
    with pytest.raises(Refusal) as caught:
        await tool.run(plan, desk.call("edit_file"))
    assert "no longer what it was" in caught.value.sentence
    assert caught.value.sentence.endswith("@@ -1,2 +1,2 @@\n one\n-two\n+three")
    assert (desk.root / "a.txt").read_text() == "one\nthree\n"
    assert names(desk.root) == ["a.txt"]


async def _planned(desk: Desk, path: str) -> Any:
    return await WriteFile().plan(WriteFileInput(path=path, content="new\n"), desk.caller)


async def test_a_file_that_appears_at_the_last_moment_is_not_overwritten(desk: Desk) -> None:
    plan = await _planned(desk, "a.txt")
    (desk.root / "a.txt").write_text("theirs\n")
    with pytest.raises(Refusal, match="no longer what it was"):
        await WriteFile().run(plan, desk.call("write_file"))
    assert (desk.root / "a.txt").read_text() == "theirs\n"
    assert names(desk.root) == ["a.txt"]


async def test_a_link_swapped_in_at_the_last_moment_leads_no_write_outside(
    desk: Desk, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (desk.root / "sub").mkdir()
    for path in ("sub/a.txt", "sub/new/a.txt"):
        plan = await _planned(desk, path)
        (desk.root / "sub").rename(desk.root / "was")
        (desk.root / "sub").symlink_to(outside)
        with pytest.raises(Refusal, match="no longer what it was"):
            await WriteFile().run(plan, desk.call("write_file"))
        assert names(outside) == []
        (desk.root / "sub").unlink()
        (desk.root / "was").rename(desk.root / "sub")


async def test_a_target_swapped_for_a_link_at_the_last_moment_is_refused(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("new\n")
    (desk.root / "a.txt").write_text("old\n")
    plan = await _planned(desk, "a.txt")
    (desk.root / "a.txt").unlink()
    (desk.root / "a.txt").symlink_to(tmp_path / "victim")
    with pytest.raises(Refusal, match="no longer what it was"):
        await WriteFile().run(plan, desk.call("write_file"))
    assert (desk.root / "a.txt").is_symlink()


async def test_a_link_put_where_a_new_directory_should_be_is_refused(desk: Desk, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    plan = await _planned(desk, "new/deep/a.txt")
    (desk.root / "new").symlink_to(outside)
    with pytest.raises(Refusal, match="no longer what it was"):
        await WriteFile().run(plan, desk.call("write_file"))
    assert names(outside) == []


async def test_directories_made_for_a_write_that_fails_are_taken_away_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    plan = await _planned(desk, "new/deep/a.txt")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Refusal, match="could not be written: No space left on device"):
        await WriteFile().run(plan, desk.call("write_file"))
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
    desk: Desk, old: str, new: str, every: bool, sentence: str
) -> None:
    (desk.root / "a.py").write_text("# one\ndef f(x):\n    return x\n# one\n")
    said = await desk.refusal("edit_file", path="a.py", old_string=old, new_string=new, replace_all=every)
    assert sentence in said


async def test_replace_all_replaces_every_occurrence(desk: Desk) -> None:
    (desk.root / "a.txt").write_text("x x\nx\n")
    result = done(
        await desk.allowed("edit_file", path="a.txt", old_string="x", new_string="yy", replace_all=True)
    )
    assert (desk.root / "a.txt").read_text() == "yy yy\nyy\n"
    assert result.text.startswith("Replaced 3 occurrences in a.txt")


async def test_what_is_no_text_file_is_refused_for_writing(desk: Desk) -> None:
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


async def test_an_edit_outside_tells_nothing_before_a_person_allowed_it(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("password = hunter2\n")
    call = await desk.waiting("edit_file", path="../secret", old_string="password = hunter1", new_string="x")
    assert shown(call).notes[0].startswith("This will fail: old_string was not found")
    assert (await desk.allow(call)).ending == "failed"
    call = await desk.waiting("edit_file", path="../secret", old_string="hunter2", new_string="hunter3")
    done(await desk.allow(call))
    assert (tmp_path / "secret").read_text() == "password = hunter3\n"


async def test_complete_on_a_write_that_is_under_way_says_that_nothing_is_pending(desk: Desk) -> None:
    call = desk.call("write_file")
    call.plan = await _planned(desk, "a.txt")
    salvage = WriteFile().salvage(call)
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


async def test_a_diff_with_wrong_line_numbers_goes_where_its_lines_are(desk: Desk) -> None:
    (desk.root / "a.py").write_text("# first\nimport os\nimport sys\n\ndef main():\n    pass\n")
    result = done(await desk.allowed("apply_diff", path="a.py", diff=UNIFIED))
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


async def test_search_and_replace_blocks_are_applied(desk: Desk) -> None:
    (desk.root / "a.py").write_text("import sys\ndef main():\n    pass")
    done(await desk.allowed("apply_diff", path="a.py", diff=f"```\n{BLOCKS}```"))
    assert (desk.root / "a.py").read_text() == "import json\ndef main():\n    return 1"


async def test_a_diff_can_create_a_file(desk: Desk) -> None:
    done(
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
        ("--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "apply_diff does not delete"),
        ("@@ -1 +1 @@\n-one\n+1\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-x\n+y\n", "begins another file"),
        ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "more than a change of text"),
    ],
)  # fmt: skip
async def test_a_diff_that_does_not_fit_changes_nothing_and_says_which_hunk(
    desk: Desk, diff: str, sentence: str
) -> None:
    (desk.root / "a.txt").write_text("one\nsame\nthree\nsame\n")
    assert sentence in await desk.refusal("apply_diff", path="a.txt", diff=diff)
    assert (desk.root / "a.txt").read_text() == "one\nsame\nthree\nsame\n"


async def test_a_diff_for_a_missing_file_is_refused(desk: Desk) -> None:
    assert "no b.txt to change" in await desk.refusal(
        "apply_diff", path="b.txt", diff="@@ -1 +1 @@\n-one\n+1\n"
    )


def test_their_lines_in_lists_are_verb_and_object() -> None:
    assert WriteFile().display(WriteFileInput(path="notes.md", content="")) == "Write notes.md"
