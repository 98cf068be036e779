"""Names, digests and differences of the tool definitions of MCP servers."""

from typing import Any

from handrail.upstream.tool_definition import ToolDefinition, diff_definitions, read_definitions


def tool(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **fields}


def test_names_that_models_do_not_take_and_collisions_are_refused_and_said() -> None:
    found = read_definitions(
        "fs",
        [tool("b"), tool("a"), tool("x" * 37), tool("x" * 36), tool("a b"), tool("two"), tool("two"), {}, 7],
    )

    assert list(found.tools) == ["a", "b", "x" * 36]
    assert max(len(each.name) for each in found.tools.values()) == 40
    assert len(found.refused) == 5
    assert any("longer than 40" in sentence for sentence in found.refused)
    assert any("'two' twice" in sentence for sentence in found.refused)


def test_a_digest_covers_what_a_model_is_told_and_nothing_else() -> None:
    first = ToolDefinition(server="fs", wire=tool("a", description="Reads.", _meta={"build": 1}))
    same = ToolDefinition(server="fs", wire=tool("a", description="Reads.", _meta={"build": 2}))
    other = ToolDefinition(server="fs", wire=tool("a", description="Reads!"))
    hinted = ToolDefinition(
        server="fs", wire=tool("a", description="Reads.", annotations={"readOnlyHint": True})
    )

    assert first.digest == same.digest
    assert len({first.digest, other.digest, hinted.digest}) == 3
    assert '+  "description": "Reads!",' in diff_definitions(first, other)
