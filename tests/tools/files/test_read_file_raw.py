"""The text of a file as it is: every character, all lines or some, and nothing cut without a word."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.tool_runner import ToolRunner, result_of

from handrail.store.values import Result
from handrail.tools.files.read_file import MOST

pytestmark = pytest.mark.anyio


def content(result: Result) -> str:
    found = result.data["content"]
    assert isinstance(found, str)
    return found


async def test_the_text_is_as_it_is_without_numbers_and_with_its_line_ends(desk: ToolRunner) -> None:
    text = "\ufeffone\r\ntwo\n\n" + "x" * 5000 + "\nlast, ohne Ende: äöü 🎉"
    (desk.root / "a.txt").write_text(text, newline="")
    result = await desk.result("read_text_file", path=str(desk.root / "a.txt"))
    assert content(result) == text
    assert result.text == "5 lines of a.txt."


@pytest.mark.parametrize(
    ("line", "limit", "found"),
    [
        (1, None, "1\n2\n3\n4"),
        (2, None, "2\n3\n4"),
        (2, 2, "2\n3\n"),
        (4, 10, "4"),
        (5, None, ""),
        (99, 5, ""),
        (1, 0, ""),
    ],
)
async def test_some_lines_are_those_and_no_more(
    desk: ToolRunner, line: int, limit: int | None, found: str
) -> None:
    (desk.root / "a").write_text("1\n2\n3\n4")
    assert content(await desk.result("read_text_file", path="a", line=line, limit=limit)) == found


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    lines=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\n"), max_size=9), max_size=30),
    line=st.integers(1, 35),
    limit=st.none() | st.integers(0, 35),
)
async def test_any_lines_of_any_text_are_found(
    desk: ToolRunner, lines: list[str], line: int, limit: int | None
) -> None:
    text = "\n".join(lines)
    (desk.root / "any").write_text(text, newline="")
    all_lines = text.split("\n")
    ended = [each + "\n" for each in all_lines[:-1]] + all_lines[-1:]
    wanted = "".join(ended[line - 1 : None if limit is None else line - 1 + limit])
    assert content(await desk.result("read_text_file", path="any", line=line, limit=limit)) == wanted


async def test_lines_are_found_across_the_pieces_in_which_a_large_file_is_read(desk: ToolRunner) -> None:
    lines = [f"line {number} " + "ä" * (number % 700) + "\n" for number in range(1, 3001)]
    (desk.root / "large").write_text("".join(lines))
    result = await desk.result("read_text_file", path="large", line=1500, limit=700)
    assert content(result) == "".join(lines[1499:2199])


async def test_a_missing_file_is_said_to_be_missing(desk: ToolRunner) -> None:
    outcome = await desk.outcome("read_text_file", path="no.txt")
    assert outcome.ending == "failed"
    assert outcome.result is not None
    assert outcome.result.data == {"missing": True}
    assert "There is no no.txt" in outcome.message


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Path.mkdir, "is a directory"),
        (partial(Path.write_bytes, data=b"a\0b"), "is a binary file"),
        (partial(Path.write_bytes, data=b"x" * (MOST + 1)), "more than 10,485,760 bytes"),
    ],
)
async def test_what_cannot_be_given_is_refused_with_the_reason(
    desk: ToolRunner, make: Callable[[Path], object], said: str
) -> None:
    make(desk.root / "odd")
    assert said in await desk.refusal("read_text_file", path="odd")


async def test_some_lines_of_a_huge_file_can_be_had(desk: ToolRunner) -> None:
    (desk.root / "huge").write_bytes(b"x\n" * MOST)
    assert content(await desk.result("read_text_file", path="huge", line=3, limit=2)) == "x\nx\n"


async def test_outside_the_workspace_a_person_is_asked_whether_or_not_there_is_a_file(
    desk: ToolRunner, tmp_path: Path
) -> None:
    (tmp_path / "outside").write_text("secret")
    call = await desk.waiting("read_text_file", path=str(tmp_path / "outside"))
    assert content(result_of(await desk.allow(call))) == "secret"
    await desk.waiting("read_text_file", path=str(tmp_path / "nothing"))
