"""rename_symbol, through the real gate, with a scripted window that plans the edits."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.actors import PAGE
from tests.support.editor_window import Answer, open_window
from tests.support.tool_runner import ToolRunner, refusal_of, result_of

from handrail.gate import person_actions
from handrail.gate.approval import Answer as PersonAnswer
from handrail.server.editor_windows import EditorWindows
from handrail.store.values import DiffPreview
from handrail.tools.editor.rename_symbol import FILES_MAX, TextEdit, apply_edits

pytestmark = pytest.mark.anyio

RENAME = {"path": "a.ts", "symbol": "old", "new_name": "new"}


def edit(line: int, column: int, old: str = "old", new: str = "new") -> dict[str, Any]:
    return {
        "line": line, "column": column, "end_line": line, "end_column": column + len(old), "old": old, "new": new,
    }  # fmt: skip


def answer(*files: tuple[Path, list[dict[str, Any]]], unsaved: bool = False) -> Answer:
    return lambda _what, _input: {
        "files": [{"path": str(path), "edits": edits, "unsaved": unsaved} for path, edits in files]
    }


@pytest.fixture
def files(root: Path) -> tuple[Path, Path]:
    one, two = root / "a.ts", root / "b.ts"
    one.write_text("const old = 1;\nold;\n")
    two.write_bytes('\ufeff"\U0001f600"; old();\r\n'.encode())
    return one, two


async def test_a_rename_in_two_files_waits_with_both_diffs_and_is_written_when_allowed(
    desk: ToolRunner, windows: EditorWindows, root: Path, files: tuple[Path, Path], home: Path
) -> None:
    one, two = files
    old = {one.read_bytes(), two.read_bytes()}
    plan = answer((two, [edit(0, 6)]), (one, [edit(1, 0), edit(0, 6)]))
    with open_window(windows, root, answer=plan):
        call = await desk.waiting("rename_symbol", **RENAME)
        assert call.approval is not None
        preview = call.approval.asked.preview
        assert isinstance(preview, DiffPreview)
        assert (preview.added, preview.removed, preview.notes[0]) == (3, 3, "Changes 2 files.")
        assert "+++ b/a.ts" in preview.diff
        assert "+++ b/b.ts" in preview.diff
        assert call.approval.draft is not None
        assert call.approval.draft.planned.proposal is None
        assert one.read_text() == "const old = 1;\nold;\n"
        result = result_of(await desk.allow(call))
    assert one.read_text() == "const new = 1;\nnew;\n"
    assert two.read_bytes() == '\ufeff"\U0001f600"; new();\r\n'.encode()
    assert result.text.splitlines()[0] == "Renamed old to new: 3 places in 2 files."
    assert call.receipt.files_changed == (str(one), str(two))
    with closing(sqlite3.connect(home / "handrail.db")) as database:
        assert {row[0] for row in database.execute("SELECT content FROM old_contents")} == old


async def test_a_rename_in_one_file_can_be_reviewed_by_hunk(
    desk: ToolRunner, windows: EditorWindows, root: Path, files: tuple[Path, Path]
) -> None:
    one, _ = files
    with open_window(windows, root, answer=answer((one, [edit(0, 6), edit(1, 0)]))):
        call = await desk.waiting("rename_symbol", **RENAME)
        assert call.approval is not None
        reviewed = "const new = 1;\nold;\n"
        edited = await person_actions.edit(desk.gate, call, content=reviewed)
        await person_actions.answer(
            desk.gate, call.approval, PersonAnswer(kind="allow", by=PAGE, content=reviewed), edited.digest
        )
        result = result_of(await desk.ended(call))
    assert one.read_text() == reviewed
    assert "review" in result.data


@pytest.mark.parametrize("change", ["const older = 1;\nold;\n", "x\n"])
async def test_a_file_that_is_not_as_the_editor_has_it_is_refused(
    desk: ToolRunner, windows: EditorWindows, root: Path, files: tuple[Path, Path], change: str
) -> None:
    one, _ = files
    one.write_text(change)
    with open_window(windows, root, answer=answer((one, [edit(0, 9), edit(1, 0)]))):
        outcome = await desk.outcome("rename_symbol", **RENAME)
    assert "a.ts on disk is not what the editor has" in outcome.message
    assert one.read_text() == change


async def test_unsaved_changes_too_many_files_and_nothing_to_rename_are_refused(
    desk: ToolRunner, windows: EditorWindows, root: Path, files: tuple[Path, Path]
) -> None:
    one, _ = files
    many = [(root / f"{number}.ts", [edit(0, 0)]) for number in range(FILES_MAX + 1)]
    for planned, sentence in (
        (answer((one, [edit(0, 6)]), unsaved=True), "unsaved changes in the editor"),
        (answer(*many), "201 places in 201 files"),
        (answer(), "finds nothing to rename"),
    ):
        with open_window(windows, root, answer=planned):
            outcome = await desk.outcome("rename_symbol", **RENAME)
        assert outcome.ending == "failed"
        assert sentence in outcome.message


async def test_a_file_changed_while_the_person_is_asked_is_not_written_and_neither_is_another(
    desk: ToolRunner, windows: EditorWindows, root: Path, files: tuple[Path, Path]
) -> None:
    one, two = files
    with open_window(windows, root, answer=answer((one, [edit(0, 6)]), (two, [edit(0, 6)]))):
        call = await desk.waiting("rename_symbol", **RENAME)
        two.write_text("something else\n")
        outcome = await desk.allow(call)
    assert outcome.ending == "failed"
    assert "b.ts changed on disk" in outcome.message
    assert one.read_text() == "const old = 1;\nold;\n"


def text_edit(line: int, column: int, old: str) -> TextEdit:
    return TextEdit(line, column, line, column + len(old.encode("utf-16-le")) // 2, old, "new")


def test_columns_count_utf16_units_and_lines_end_with_any_line_ending() -> None:
    text = "a\r\U0001f600old\r\nold"
    assert (
        apply_edits(text, [text_edit(2, 0, "old"), text_edit(1, 2, "old")], "a") == "a\r\U0001f600new\r\nnew"
    )


@pytest.mark.parametrize(
    "edits",
    [
        [text_edit(0, 1, "old")],  # within the character
        [text_edit(0, 2, "old"), text_edit(0, 2, "old")],  # twice
        [text_edit(3, 0, "old")],  # no such line
        [text_edit(0, 2, "odd")],  # another text
    ],
)
def test_edits_that_do_not_fit_are_refused(edits: list[TextEdit]) -> None:
    assert "is not what the editor has" in refusal_of(lambda: apply_edits("\U0001f600old\n", edits, "a"))
