"""get_diagnostics, get_symbols and find_references, through the real gate, with a scripted window."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.editor_window import open_window
from tests.support.tool_runner import ToolRunner, result_of

from handrail.server.editor_windows import EditorWindows
from handrail.tools.editor.code_questions import NOT_UNDERSTOOD, SHOWN_MAX

pytestmark = pytest.mark.anyio


def problem(path: Path, line: int = 1, severity: str = "error") -> dict[str, Any]:
    return {"path": str(path), "line": line, "column": 1, "severity": severity, "message": "Wrong."}


@pytest.fixture
def source(root: Path) -> Path:
    path = root / "a.ts"
    path.write_text("export const a = 1;\n")
    return path


async def test_without_an_editor_the_answer_says_how_to_get_one(desk: ToolRunner, source: Path) -> None:
    outcome = await desk.outcome("get_diagnostics", path="a.ts")
    assert outcome.ending == "failed"
    assert "`handrail connect vscode` installs it" in outcome.message


async def test_tools_that_need_an_editor_are_listed_while_one_has_the_folder_open(
    desk: ToolRunner, windows: EditorWindows, root: Path
) -> None:
    def listed() -> list[str]:
        return [name for name, tool in desk.gate.toolbox.items() if tool.is_listed(desk.caller)]

    assert listed() == ["get_diagnostics"]
    with open_window(windows, root):
        assert listed() == ["get_diagnostics", "get_symbols", "find_references", "rename_symbol"]
    with open_window(windows, root.parent / "other"):
        assert listed() == ["get_diagnostics"]


async def test_diagnostics_are_given_by_severity_and_their_rest_is_counted(
    desk: ToolRunner, windows: EditorWindows, root: Path, source: Path
) -> None:
    found = [problem(source, line, "warning") for line in range(1, SHOWN_MAX + 1)] + [problem(source, 7)]
    with open_window(windows, root, answer=lambda _what, _input: {"items": found, "total": 5000}) as scripted:
        result = result_of(await desk.outcome("get_diagnostics", severity="hint"))
    assert scripted.asked[0]["input"] == {"folder": True, "severity": 3, "path": str(root)}
    lines = result.text.splitlines()
    assert lines[0] == "a.ts:7:1: error: Wrong."
    assert lines[SHOWN_MAX:] == ["[200 of 5,000 diagnostics; 4,800 more. Narrow it with path or severity.]"]
    assert (result.data["errors"], result.data["total"], result.data["truncated"]) == (1, 5000, True)


async def test_what_the_editor_says_about_other_folders_and_protected_files_is_left_out(
    desk: ToolRunner, windows: EditorWindows, root: Path, source: Path
) -> None:
    secret, outside = root / ".env", root.parent / "outside.ts"
    found = [problem(source), problem(secret), problem(outside)]
    with open_window(windows, root, answer=lambda _what, _input: {"items": found, "total": 3}):
        result = result_of(await desk.outcome("get_diagnostics"))
    assert result.data["errors"] == 1
    assert result.text.splitlines()[0] == "a.ts:1:1: error: Wrong."
    assert "[2 diagnostics in files outside of the workspace or in protected places left out.]" in result.text


async def test_a_question_about_a_protected_file_asks_the_person(
    desk: ToolRunner, windows: EditorWindows, root: Path
) -> None:
    secret = root / ".env"
    secret.write_text("KEY=1\n")
    with open_window(windows, root, answer=lambda _what, _input: {"items": [problem(secret)], "total": 1}):
        result = result_of(await desk.allowed("get_diagnostics", path=".env"))
    assert result.text == ".env:1:1: error: Wrong."


async def test_an_outline_shows_what_is_in_what(
    desk: ToolRunner, windows: EditorWindows, root: Path, source: Path
) -> None:
    def symbol(name: str, kind: str, line: int, end: int, depth: int = 0) -> dict[str, Any]:
        return {
            "path": str(source),
            "name": name,
            "kind": kind,
            "line": line,
            "end_line": end,
            "depth": depth,
        }

    items = [symbol("Shape", "class", 1, 9), symbol("area", "method", 3, 3, 1)]
    with open_window(windows, root, answer=lambda _what, _input: {"items": items, "total": 2}):
        result = result_of(await desk.outcome("get_symbols", path="a.ts"))
        folder = await desk.outcome("get_symbols")
    assert result.text == "class Shape  [1-9]\n  method area  [3]"
    assert "is no file. Give the path of a file, or a query." in folder.message


async def test_references_may_lie_anywhere_in_the_workspace(
    desk: ToolRunner, windows: EditorWindows, root: Path, source: Path
) -> None:
    def at(path: Path, line: int) -> dict[str, Any]:
        return {"path": str(path), "line": line, "column": 5, "text": "  a();"}

    items = [at(root / "src" / "b.ts", 2), at(source, 1), at(Path("/usr/lib/lib.d.ts"), 3)]
    with open_window(windows, root, answer=lambda _what, _input: {"items": items, "total": 3}) as scripted:
        result = result_of(await desk.outcome("find_references", path="a.ts", symbol="a", line=1))
    assert scripted.asked[0]["input"] == {"symbol": "a", "line": 1, "path": str(source)}
    assert result.text.splitlines() == [
        "a.ts:1:5: a();",
        "src/b.ts:2:5: a();",
        "[1 reference in files outside of the workspace or in protected places left out.]",
    ]


async def test_an_answer_of_another_shape_fails_the_call(
    desk: ToolRunner, windows: EditorWindows, root: Path, source: Path
) -> None:
    with open_window(windows, root, answer=lambda _what, _input: {"items": "none"}):
        assert (await desk.outcome("get_symbols", path="a.ts")).message == NOT_UNDERSTOOD
