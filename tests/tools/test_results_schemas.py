"""What every tool promises to a model: its schemas, and results that keep to them."""

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.support.tool_runner import ToolRunner, result_of, terminal_tools

from handrail.server.mcp.tool_results import output_schema
from handrail.store.values import Caller

pytestmark = pytest.mark.anyio

CALLS: dict[str, dict[str, Any]] = {
    "read_file": {"path": "a.txt"},
    "read_text_file": {"path": "a.txt", "line": 1},
    "list_files": {},
    "search_files": {"pattern": "*"},
    "search_content": {"pattern": "one", "output_mode": "count"},
    "write_file": {"path": "b.txt", "content": "two"},
    "edit_file": {"path": "a.txt", "old_string": "one", "new_string": "two"},
    "apply_diff": {"path": "a.txt", "diff": "@@ -1 +1 @@\n-one\n+two\n"},
}
READING = ("read_file", "read_text_file", "list_files", "search_files", "search_content")


@pytest.mark.parametrize("name", CALLS)
async def test_a_result_holds_nothing_but_what_the_output_schema_names(desk: ToolRunner, name: str) -> None:
    (desk.root / "a.txt").write_text("one\n")
    tool = desk.gate.toolbox[name]
    outcome = await (desk.outcome if name in READING else desk.allowed)(name, **CALLS[name])
    data = result_of(outcome).data
    assert set(data) <= set(tool.output.model_fields)
    tool.output.model_validate(data, strict=True)
    assert not tool.output.model_json_schema().get("required")


@pytest.mark.parametrize("name", CALLS)
async def test_every_input_says_what_it_is_for_and_no_other_is_taken(desk: ToolRunner, name: str) -> None:
    schema = desk.gate.toolbox[name].input.model_json_schema()
    assert schema["additionalProperties"] is False
    for field, described in schema["properties"].items():
        assert described.get("description"), field


async def test_hints_are_honest(desk: ToolRunner) -> None:
    for name, tool in desk.gate.toolbox.items():
        reads = name in READING
        assert (tool.reads_only, tool.destructive, tool.completes_by_accepting) == (
            reads,
            not reads,
            not reads,
        )


TERMINAL_CALLS: dict[str, dict[str, Any]] = {
    "list_tracked_terminals": {},
    "get_terminal_buffer": {"includeMetadata": True, "asString": False},
    "search_terminal_buffer": {"pattern": "hello", "context": 1},
    "send_to_terminal": {"text": "echo again"},
    "wait_for_terminal": {"until": "prompt"},
    "execute_command": {"command": "echo more"},
    "close_terminal": {},
}
LOOKING = ("list_tracked_terminals", "get_terminal_buffer", "search_terminal_buffer", "wait_for_terminal")


async def test_terminal_tools_keep_to_their_schemas_in_text_and_in_json(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        terminal = await at.open()
        await at.run(terminal, "echo hello")
        for name, asked in TERMINAL_CALLS.items():
            tool = at.gate.toolbox[name]
            known = "terminal_id" if name == "execute_command" else "terminalId"
            target = {} if name == "list_tracked_terminals" else {known: terminal.id}
            result = await at.result(name, **asked, **target, response_format="json")
            assert set(result.data) <= set(tool.output.model_fields), name
            tool.output.model_validate(result.data, strict=True)
            whole = {**result.data, "status": "done"}
            Draft202012Validator(output_schema(tool)).validate(whole)  # pyright: ignore[reportUnknownMemberType]
            assert result.text.startswith("{"), name


async def test_terminal_tools_describe_every_input_and_hint_honestly(home: Path, caller: Caller) -> None:
    async with terminal_tools(home, caller) as at:
        for name in (*TERMINAL_CALLS, "create_tracked_terminal"):
            tool = at.gate.toolbox[name]
            schema = tool.input.model_json_schema()
            assert schema["additionalProperties"] is False
            assert all(described.get("description") for described in schema["properties"].values()), name
            assert not tool.output.model_json_schema().get("required")
            assert (tool.reads_only, tool.destructive) == (name in LOOKING, name not in LOOKING)
