"""Entries of lists: one that MCP does not allow must not cost the others."""

from typing import Any

import pytest

from handrail.upstream.list_entries import find_fault, normalize_entry
from handrail.upstream.tool_definition import read_definitions

OBJECT: dict[str, Any] = {"type": "object"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"description": 5},
        {"title": ["x"]},
        {"inputSchema": None},
        {"inputSchema": {"type": "string"}},
        {"inputSchema": {**OBJECT, "properties": {"a": "x"}}},
        {"inputSchema": {**OBJECT, "required": "a"}},
        {"inputSchema": {**OBJECT, "properties": {"a": {"description": "\ud800"}}}},
        {"outputSchema": "x"},
        {"annotations": {"readOnlyHint": "true"}},
        {"execution": {"taskSupport": "maybe"}},
        {"icons": [1]},
        {"_meta": []},
    ],
    ids=str,
)
def test_a_tool_that_mcp_does_not_allow_is_refused_and_said(wrong: dict[str, Any]) -> None:
    found = read_definitions(
        "s", [{"name": "good", "inputSchema": OBJECT}, {"name": "bad", "inputSchema": OBJECT, **wrong}]
    )
    assert list(found.tools) == ["good"]
    assert "does not allow the definition of s__bad" in found.refused[0]
    assert len(found.refused[0]) < 300


def test_what_means_nothing_does_not_make_a_client_refuse_the_list() -> None:
    """Checked with the schemas of the TypeScript SDK, which takes neither null nor true."""
    loose: dict[str, Any] = {
        "name": "t",
        "title": None,
        "annotations": {"title": None, "readOnlyHint": True},
        "inputSchema": {"properties": {"a": True, "b": False, "c": {"default": None}}, "required": None},
        "_meta": {"x": None},
    }
    (tool,) = read_definitions("s", [loose]).tools.values()
    assert tool.wire == loose, "pinned and shown as the server sent it"
    assert tool.listed == {
        "name": "s__t",
        "annotations": {"readOnlyHint": True},
        "inputSchema": {"type": "object", "properties": {"a": {}, "b": {"not": {}}, "c": {"default": None}}},
        "_meta": {"x": None},
    }


OTHERS: list[tuple[str, dict[str, Any], str]] = [
    ("resources/list", {"uri": "a://b", "name": "b", "annotations": {"lastModified": "yesterday"}}, ""),
    ("resources/list", {"uri": "a://b"}, "name"),
    (
        "resources/list",
        {"uri": "a://b", "name": "b", "annotations": {"priority": 2}},
        "annotations.priority",
    ),
    ("resources/templates/list", {"uriTemplate": ["x"], "name": "b"}, "uriTemplate"),
    ("prompts/list", {"name": "p", "arguments": [{"name": "a", "description": None}]}, ""),
    ("prompts/list", {"name": "p", "arguments": [{}]}, "arguments.0.name"),
]
"""A method, an entry, and where its fault is."""


@pytest.mark.parametrize(("method", "entry", "fault"), OTHERS)
def test_other_entries_are_checked_too(method: str, entry: dict[str, Any], fault: str) -> None:
    wire = normalize_entry(entry)
    assert find_fault(method, wire).startswith(fault)
    assert bool(find_fault(method, wire)) == bool(fault)
    assert "null" not in str(wire)
    assert "yesterday" not in str(wire)
