"""Which editor window is asked about a path, and what becomes of a question that it does not answer."""

from pathlib import Path

import anyio
import pytest
from pydantic import JsonValue
from tests.support.editor_window import open_window

from handrail.gate.tool import Refusal
from handrail.server.editor_windows import BUSY, GONE, OPEN_MAX, EditorWindows

pytestmark = pytest.mark.anyio

BOUND = 20.0


@pytest.fixture
def windows() -> EditorWindows:
    return EditorWindows()


async def ask(windows: EditorWindows, path: Path) -> JsonValue:
    with anyio.fail_after(BOUND):
        return await windows.ask(str(path), "outline", {})


async def refusal(windows: EditorWindows, path: Path) -> str:
    with pytest.raises(Refusal) as caught:
        await ask(windows, path)
    return caught.value.sentence


async def test_the_window_with_the_innermost_folder_is_asked(windows: EditorWindows, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    with (
        open_window(windows, tmp_path, answer=lambda _what, _input: "outer"),
        open_window(windows, inner, answer=lambda _what, _input: "inner"),
    ):
        assert await ask(windows, inner / "a.ts") == "inner"
        assert await ask(windows, tmp_path / "a.ts") == "outer"
        assert windows.serves(str(inner))
        assert "No editor has /elsewhere open" in await refusal(windows, Path("/elsewhere"))
    assert not windows.serves(str(inner))
    assert "`handrail connect vscode`" in await refusal(windows, inner)


async def test_a_window_with_a_part_of_the_folder_serves_the_folder(
    windows: EditorWindows, tmp_path: Path
) -> None:
    with open_window(windows, tmp_path / "part", answer=lambda _what, _input: "part"):
        assert windows.serves(str(tmp_path))
        assert await ask(windows, tmp_path) == "part"


async def test_an_unpaired_window_is_not_asked(windows: EditorWindows, tmp_path: Path) -> None:
    with open_window(windows, tmp_path, answer=lambda _what, _input: "yes", paired=False) as scripted:
        assert not windows.serves(str(tmp_path))
        assert "not paired" in await refusal(windows, tmp_path)
        assert scripted.asked == []


async def test_a_window_that_opened_its_folder_through_a_link_is_asked_by_its_own_names(
    windows: EditorWindows, tmp_path: Path
) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    with open_window(windows, link, answer=lambda _what, asked: asked["path"]):
        assert await ask(windows, real / "src" / "a.ts") == f"{link}/src/a.ts"


async def test_a_window_that_closes_fails_its_open_questions(windows: EditorWindows, tmp_path: Path) -> None:
    failed: list[str] = []

    async def work() -> None:
        failed.append(await refusal(windows, tmp_path))

    async with anyio.create_task_group() as group:
        with open_window(windows, tmp_path) as scripted:
            group.start_soon(work)
            with anyio.fail_after(BOUND):
                await scripted.was_asked.wait()
    assert failed == [GONE]


async def test_a_cancelled_question_is_withdrawn_and_its_late_answer_ignored(
    windows: EditorWindows, tmp_path: Path
) -> None:
    with open_window(windows, tmp_path) as scripted:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, windows, tmp_path)
            await scripted.was_asked.wait()
            group.cancel_scope.cancel()
        assert [set(message) for message in scripted.asked] == [{"ask", "what", "input"}, {"cancel"}]
        scripted.hear({"answer": scripted.asked[0]["ask"], "result": "late"})


async def test_a_window_is_not_asked_more_than_it_can_answer(windows: EditorWindows, tmp_path: Path) -> None:
    with open_window(windows, tmp_path) as scripted:
        async with anyio.create_task_group() as group:
            for _ in range(OPEN_MAX):
                group.start_soon(ask, windows, tmp_path)
            while len(scripted.asked) < OPEN_MAX:
                await anyio.lowlevel.checkpoint()
            assert await refusal(windows, tmp_path) == BUSY
            group.cancel_scope.cancel()


async def test_lines_that_are_no_messages_are_ignored(windows: EditorWindows, tmp_path: Path) -> None:
    with open_window(windows, tmp_path, answer=lambda _what, _input: "still here") as scripted:
        assert scripted.window is not None
        for line in (b"", b"{", b"[]", b'{"folders": "x"}', b'{"answer": 99}', None):
            scripted.window.hear(line)
        assert await ask(windows, tmp_path) == "still here"


async def test_an_error_of_the_editor_is_the_refusal(windows: EditorWindows, tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise ValueError("The language server refuses to rename this.")

    with open_window(windows, tmp_path, answer=fail):
        assert await refusal(windows, tmp_path) == "The language server refuses to rename this."
