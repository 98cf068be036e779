from pathlib import Path
from typing import Any

import pytest

from handrail.own_agent.updates import build_diffs

HERE = Path("/project")


def test_a_new_file_is_all_new() -> None:
    written = {"path": "a.py", "content": "x\n"}
    assert build_diffs("write_file", written, HERE) == [
        {"type": "diff", "path": "/project/a.py", "newText": "x\n"}
    ]


@pytest.mark.parametrize(
    ("tool", "input"),
    [
        ("read_file", {"path": "a.py"}),
        ("write_file", {"path": "a.py"}),
        ("edit_file", {"path": 3, "old_string": "x", "new_string": "y"}),
        ("other__edit_file", {"path": "a.py", "old_string": "x", "new_string": "y"}),
    ],
)
def test_what_is_no_change_of_a_file_has_no_diff(tool: str, input: dict[str, Any]) -> None:
    assert build_diffs(tool, input, HERE) == []
