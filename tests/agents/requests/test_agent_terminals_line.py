"""What an agent wants to run is run in exactly those words; a command that names no program is a line for a shell."""

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from handrail.agents.requests.agent_terminals import build_shell_line, parse_variables


@given(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8")), min_size=1, max_size=5))
def test_words_come_out_as_they_went_in(args: list[str]) -> None:
    line = build_shell_line({"command": "printf", "args": [*args]}, "/")
    assert shlex.split(line) == ["printf", *args]


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("ls", "ls"),
        ("npm run build && echo done", "npm run build && echo done"),
        ("ls|wc", "ls|wc"),
        ("no-such-program", "no-such-program"),
        ("", ""),
    ],
)
@pytest.mark.parametrize("args", [None, [], "ls"])
def test_without_words_a_line_stays_a_line(command: str, line: str, args: JsonValue) -> None:
    assert build_shell_line({"command": command, "args": args}, "/") == line


def test_a_program_with_a_blank_in_its_name_is_that_program(tmp_path: Path) -> None:
    program = tmp_path / "my tool"
    program.write_text("#!/bin/sh\n")
    assert build_shell_line({"command": str(program)}, "/") == str(program), (
        "not to be run: a line like any other"
    )
    program.chmod(0o755)
    assert build_shell_line({"command": str(program)}, "/") == f"'{program}'"
    assert build_shell_line({"command": "./my tool"}, str(tmp_path)) == "'./my tool'"


def test_variables_are_those_that_have_a_name_and_a_value() -> None:
    env: list[JsonValue] = [{"name": "A", "value": "1"}, {"name": "B", "value": "x y"}, "odd", None]
    assert parse_variables({"env": env}) == {"A": "1", "B": "x y"}
    assert parse_variables({}) == {}
