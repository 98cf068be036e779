"""Schemas said shortly: what was valid stays valid, and nothing else becomes so."""

from typing import Any, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from handrail.server.mcp.tool_results import compact_schema
from handrail.store.values import Json


class Leaf(BaseModel):
    title: str
    default: int | None = None


class Tree(BaseModel):
    name: str | None = Field(None, description="What people call it.")
    kind: Literal["oak", "elm"] | None = None
    alive: Literal["yes"] | None = None
    leaf: Leaf | None = None
    leaves: list[Leaf] = Field(default_factory=list[Leaf])
    height: int | str = 0


LONG = Tree.model_json_schema()
SHORT = compact_schema(LONG)

LEAF = {"title": "green", "default": 3}
SAMPLES: list[Any] = [
    {},
    {"name": "old one", "kind": "oak", "leaf": LEAF, "leaves": [LEAF, {"title": "brown"}], "height": "tall"},
    {"name": None, "kind": None, "alive": None, "leaf": None, "leaves": [], "height": 3},
    {"name": 3},
    {"kind": "ash"},
    {"alive": "no"},
    {"leaf": {}},
    {"leaf": {"title": None}},
    {"leaf": {"title": "green", "default": "three"}},
    {"leaves": [None]},
    {"leaves": None},
    {"height": None},
    {"height": 1.5},
    [],
    None,
]


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_the_same_values_are_valid_before_and_after(sample: Any) -> None:
    before, after = (Draft202012Validator(schema).is_valid(sample) for schema in (LONG, SHORT))  # pyright: ignore[reportUnknownMemberType]
    assert before == after


def test_the_samples_tell_valid_from_invalid() -> None:
    valid = [sample for sample in SAMPLES if Draft202012Validator(LONG).is_valid(sample)]  # pyright: ignore[reportUnknownMemberType]
    assert valid == SAMPLES[:3]


def test_nothing_is_left_that_says_nothing() -> None:
    assert compact_schema(
        {"title": "T", "type": "object", "properties": {"title": {"title": "Title", "type": "string"}}}
    ) == {
        "type": "object",
        "properties": {"title": {"type": "string"}},
    }
    nullable: Json = {
        "anyOf": [{"type": "integer"}, {"type": "null"}],
        "default": None,
        "description": "Why.",
    }
    assert compact_schema(nullable) == {"type": ["integer", "null"], "description": "Why."}
    assert "$" not in str(SHORT)
