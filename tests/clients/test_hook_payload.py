"""Fields of payloads are read with tolerance, and the required ones with a sentence."""

from typing import cast

import pytest
from pydantic import JsonValue

from handrail.clients import cline, codex, cursor, gemini, vscode_tools
from handrail.clients.hook_event import Json
from handrail.clients.hook_payload import (
    required_text,
    required_texts,
    result_text,
    text,
    texts,
    tool_input,
    whole_number,
)
from handrail.clients.hook_work import ToolTable, build_work


def test_the_first_field_that_has_the_right_type_counts() -> None:
    payload: Json = {"a": 1, "b": "", "c": "x", "n": True, "m": 7}

    assert text(payload, "a", "b", "c") == "x"
    assert text(payload, "missing") == ""
    assert whole_number(payload, "n", "m") == 7


@pytest.mark.parametrize(
    ("value", "items"), [("a", ("a",)), (["a", 1, "", "b"], ("a", "b")), (None, ()), (5, ()), ({"x": 1}, ())]
)
def test_a_field_may_be_one_text_or_a_list(value: JsonValue, items: tuple[str, ...]) -> None:
    assert texts({"a": value}, "a") == items


def test_a_required_field_is_there_and_is_text() -> None:
    assert required_text({"b": ""}, "a", "b") == ""
    with pytest.raises(ValueError, match=r"^The field a is missing\.$"):
        required_text({}, "a")
    with pytest.raises(ValueError, match=r"^The field a must be text, but is a list\.$"):
        required_text({"a": []}, "a")
    with pytest.raises(ValueError, match=r"^The field a must be text, but is null\.$"):
        required_texts({"a": ["x", None]}, "a")


def test_an_input_may_be_an_object_or_its_json() -> None:
    assert tool_input({"input": {"a": 1}}, "input") == {"a": 1}
    assert tool_input({"input": '{"a": 1}'}, "input") == {"a": 1}
    assert tool_input({"input": ""}, "input") == tool_input({}, "input") == {}
    wrong: list[JsonValue] = ["[]", "{", []]
    for value in wrong:
        with pytest.raises(ValueError, match=r"^The field input .*\.$"):
            tool_input({"input": value}, "input")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, ""),
        ("x", "x"),
        ({"stdout": "a", "stderr": "b"}, "a\nb"),
        ({"stdout": "", "stderr": ""}, ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ({"content": [{"type": "text", "text": "hi"}]}, "hi"),
        ({"llmContent": "a", "returnDisplay": "b"}, "a"),
        ({"other": 1}, '{"other": 1}'),
        (7, "7"),
    ],
)
def test_the_text_of_a_result_is_found_in_the_shapes_of_clients(value: JsonValue, words: str) -> None:
    assert result_text(value) == words


def test_a_result_that_is_nested_too_deep_has_no_text() -> None:
    value: list[object] = []
    for _ in range(20_000):
        value = [value]

    assert result_text(cast("JsonValue", value)) == ""


PAIRS = [{"filePath": "a", "oldString": "y", "newString": "z"}]


@pytest.mark.parametrize(
    ("table", "tool", "input"),
    [
        (vscode_tools.TOOLS, "create_file", {"path": "a", "filePath": "b", "content": "x"}),
        (vscode_tools.TOOLS, "create_file", {"path": "a", "file_text": "x", "content": "y"}),
        (
            vscode_tools.TOOLS,
            "multi_replace_string_in_file",
            {"replacements": PAIRS, "edits": [*PAIRS, *PAIRS]},
        ),
        (
            vscode_tools.TOOLS,
            "create_and_run_task",
            {"task": {"command": "git", "args": [{"value": "push"}]}},
        ),
        (cursor.CURSOR_TOOLS, "Shell", {"command": "make", "working_directory": "a", "cwd": "b"}),
        (cursor.CURSOR_TOOLS, "Write", {"path": "a", "file_path": "b", "content": "x"}),
        (
            cursor.CURSOR_TOOLS,
            "Write",
            {"path": "a", "content": "x", "edits": [{"old_string": "y", "new_string": "z"}]},
        ),
        (cursor.WINDSURF_TOOLS, "run_command", {"command_line": "ls", "command": "rm x"}),
        (codex.TOOLS, "exec_command", {"command": "ls", "cmd": "rm x"}),
        (gemini.TOOLS, "read_file", {"file_path": ["a", {"path": "b"}]}),
        (cline.TOOLS, "read_files", {"files": [1]}),
    ],
)
def test_names_of_a_field_that_differ_make_work_that_always_asks(
    table: ToolTable, tool: str, input: Json
) -> None:
    """A model could fill in one name for Handrail, and the other one for its client."""
    work = build_work(table, tool, input)

    assert work is not None
    assert work.sort == "other"
    assert work.warning


@pytest.mark.parametrize(
    ("table", "tool", "input"),
    [
        (vscode_tools.TOOLS, "read_file", {"path": "a", "filePath": "b"}),
        (cursor.CURSOR_TOOLS, "Read", {"file_path": "a", "path": "b"}),
        (gemini.TOOLS, "read_file", {"file_path": "a", "absolute_path": "b"}),
        (gemini.TOOLS, "read_many_files", {"include": ["a"], "paths": ["b"]}),
        (cline.TOOLS, "read_files", {"files": ["a"], "paths": [{"path": "b"}]}),
    ],
)
def test_a_path_to_read_is_judged_under_every_name(table: ToolTable, tool: str, input: Json) -> None:
    work = build_work(table, tool, input)

    assert work is not None
    assert list(work.paths) == ["a", "b"]


def test_fields_that_agree_are_no_doubt() -> None:
    work = build_work(vscode_tools.TOOLS, "create_file", {"path": "a", "filePath": "a", "content": "x"})

    assert work is not None
    assert work.sort == "edit"
