"""What every file tool promises to a model: its schemas, and results that keep to them."""

from typing import Any

import pytest
from tests.tools.desk import Desk, done

pytestmark = pytest.mark.anyio

CALLS: dict[str, dict[str, Any]] = {
    "read_file": {"path": "a.txt"},
    "list_files": {},
    "search_files": {"pattern": "*"},
    "search_content": {"pattern": "one", "output_mode": "count"},
    "write_file": {"path": "b.txt", "content": "two"},
    "edit_file": {"path": "a.txt", "old_string": "one", "new_string": "two"},
    "apply_diff": {"path": "a.txt", "diff": "@@ -1 +1 @@\n-one\n+two\n"},
}
READING = ("read_file", "list_files", "search_files", "search_content")


@pytest.mark.parametrize("name", CALLS)
async def test_a_result_holds_nothing_but_what_the_output_schema_names(desk: Desk, name: str) -> None:
    (desk.root / "a.txt").write_text("one\n")
    tool = desk.gate.toolbox[name]
    outcome = await (desk.outcome if name in READING else desk.allowed)(name, **CALLS[name])
    data = done(outcome).data
    assert set(data) <= set(tool.output.model_fields)
    tool.output.model_validate(data, strict=True)
    assert not tool.output.model_json_schema().get("required")


@pytest.mark.parametrize("name", CALLS)
async def test_every_input_says_what_it_is_for_and_no_other_is_taken(desk: Desk, name: str) -> None:
    schema = desk.gate.toolbox[name].input.model_json_schema()
    assert schema["additionalProperties"] is False
    for field, described in schema["properties"].items():
        assert described.get("description"), field


async def test_hints_are_honest(desk: Desk) -> None:
    for name, tool in desk.gate.toolbox.items():
        reads = name in READING
        assert (tool.reads_only, tool.destructive, tool.accepts) == (reads, not reads, not reads)
