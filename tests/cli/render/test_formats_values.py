"""Values of options: times, JSON, files."""

from pathlib import Path

import pytest
import typer

from handrail.cli.failure import Failure
from handrail.cli.render.formats import (
    CONTENT_MAX,
    MOST_SECONDS,
    parse_duration,
    parse_json_object,
    read_content,
)


@pytest.mark.parametrize(
    ("text", "length"),
    [("90s", 90), ("30m", 1800), ("12h", 43_200), (" 7d ", 604_800), ("2w", 1_209_600), (None, None)],
)
def test_a_length_of_time_is_a_number_and_a_unit(text: str | None, length: int | None) -> None:
    assert parse_duration(text) == length


@pytest.mark.parametrize(
    "text", ["", "7", "d", "0d", "-1d", "1.5h", "7 days", "522w", "\uff19d", "9" * 30 + "s"]
)
def test_what_is_no_length_of_time_is_told_with_ones_that_are(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="90s, 30m, 12h, 7d or 2w"):
        parse_duration(text)
    assert parse_duration(f"{MOST_SECONDS}s") == MOST_SECONDS


def test_an_input_is_a_json_object_and_nothing_else() -> None:
    assert parse_json_object('{"a": [1]}') == {"a": [1]}
    assert parse_json_object(None) is None
    for wrong in ("", "{", "[1]", "3", "[" * 100_000):
        with pytest.raises(typer.BadParameter):
            parse_json_object(wrong)


def test_content_is_the_text_of_a_file_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes("é\r\nno end".encode())
    assert read_content(file) == "é\r\nno end"
    assert read_content(None) is None
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(Failure, match="cannot be read as text"):
        read_content(file)
    with pytest.raises(Failure, match="cannot be read as text"):
        read_content(tmp_path / "missing")
    file.write_bytes(b"x" * (CONTENT_MAX + 1))
    with pytest.raises(Failure, match="larger than"):
        read_content(file)
