"""How calls are shown to people."""

from typing import Any

import pytest

from handrail.own_agent.tools.mcp_tool import LONGEST, foreign_display, own_display


@pytest.mark.parametrize(
    ("tool", "input", "title", "kind"),
    [
        ("execute_command", {"command": "pytest -q"}, "Run `pytest -q`", "execute"),
        ("execute_command", {"command": "a\n  b"}, "Run `a b`", "execute"),
        ("edit_file", {"path": "src/a.py"}, "Edit src/a.py", "edit"),
        ("write_file", {"path": "a{0}.py"}, "Write a{0}.py", "edit"),
        ("read_file", {"path": 7}, "Read a file", "read"),
        ("search_content", {"pattern": "def {}"}, "Search for `def {}`", "search"),
        ("send_to_terminal", {"terminalId": "t1", "text": "y"}, "Type `y` into terminal t1", "execute"),
        (
            "send_to_terminal",
            {"terminalId": "t1", "keys": ["ctrl-c"]},
            "Type ctrl-c into terminal t1",
            "execute",
        ),
        (
            "wait_for_terminal",
            {"terminalId": "t1", "until": "pattern", "value": "done"},
            "Wait for terminal t1: pattern done",
            "other",
        ),
        ("list_calls", {}, "List calls", "read"),
        ("some_new_tool", {}, "Some new tool", "other"),
    ],
)
def test_a_call_of_ours_is_said_in_words(tool: str, input: dict[str, Any], title: str, kind: str) -> None:
    said = own_display(tool, input, "/project")

    assert (said.title, said.kind) == (title, kind)


def test_files_are_named_by_their_whole_path() -> None:
    assert own_display("read_file", {"path": "src/a.py"}, "/project").paths == ("/project/src/a.py",)
    assert own_display("read_file", {"path": "/etc/hosts"}, "/project").paths == ("/etc/hosts",)
    assert own_display("list_files", {}, "/project").paths == ()


def test_a_title_is_one_line_of_bounded_length() -> None:
    assert len(own_display("execute_command", {"command": "x" * 5000}, "/").title) == LONGEST
    assert foreign_display("git hub", "Search\nissues").title == "Search issues (git hub)"
