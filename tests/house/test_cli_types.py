"""scripts/cli_types.py turns an OpenAPI document into the types of the CLI."""

import ast
from typing import Any, get_type_hints, is_typeddict

import pytest
from scripts.cli_types import generate, type_of

from handrail.cli import wire

REF = "#/components/schemas/"


def document(paths: dict[str, Any], **schemas: Any) -> dict[str, Any]:
    return {"paths": paths, "components": {"schemas": schemas}}


def json_content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def answers(schema: dict[str, Any]) -> dict[str, Any]:
    return {"responses": {"200": json_content(schema), "404": json_content({"type": "string"})}}


def parts(source: str) -> set[str]:
    """The classes, fields and methods of a module, each on one line."""
    return {line.strip() for line in ast.unparse(ast.parse(source)).splitlines()}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer"}, "int"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "str | None"),
        ({"enum": ["low", "high"], "type": "string"}, "Literal['high', 'low']"),
        ({"const": "diff", "type": "string"}, "Literal['diff']"),
        ({"prefixItems": [{"type": "integer"}, {"type": "string"}], "type": "array"}, "tuple[int, str]"),
        ({"oneOf": [{"$ref": f"{REF}Cat"}, {"$ref": f"{REF}Dog"}]}, "Cat | Dog"),
        ({"items": {"$ref": f"{REF}Cat"}, "type": "array"}, "list[Cat]"),
        ({"additionalProperties": {"type": "number"}, "type": "object"}, "dict[str, float]"),
        ({"additionalProperties": True, "type": "object"}, "dict[str, Any]"),
        ({"type": "object"}, "dict[str, Any]"),
        ({}, "Any"),
    ],
)
def test_a_schema_becomes_a_type(schema: dict[str, Any], expected: str) -> None:
    assert type_of(schema) == expected


def test_a_field_is_optional_only_where_a_client_may_omit_it() -> None:
    nested = {"properties": {"size": {"type": "integer", "default": 1}}}
    body = {"properties": {"nested": {"$ref": f"{REF}Nested"}, "id": {"type": "string"}}, "required": ["id"]}
    view = {"properties": {"title": {"type": "string", "default": ""}}}
    operation = {"requestBody": json_content({"$ref": f"{REF}Body"}), **answers({"$ref": f"{REF}View"})}
    source = parts(
        generate(document({"/api/cats": {"post": operation}}, Body=body, Nested=nested, View=view))
    )
    assert {"nested: NotRequired[Nested]", "id: str", "size: NotRequired[int]", "title: str"} <= source


def test_a_schema_may_refer_to_itself() -> None:
    tree = {"properties": {"children": {"type": "array", "items": {"$ref": f"{REF}Tree"}}}}
    assert {"class Tree(TypedDict):", "children: list[Tree]"} <= parts(generate(document({}, Tree=tree)))


def test_a_route_becomes_an_overload_with_its_query_body_and_answer() -> None:
    query = {"in": "query", "name": "limit", "required": False, "schema": {"type": "integer"}}
    needed = {"in": "query", "name": "q", "required": True, "schema": {"type": "string"}}
    path = {"in": "path", "name": "id", "required": True, "schema": {"type": "string"}}
    source = parts(
        generate(
            document(
                {
                    "/api/cats": {"get": {**answers({"type": "integer"}), "parameters": [query, needed]}},
                    "/api/cats/{id}": {
                        "get": {**answers({"type": "string"}), "parameters": [path]},
                        "delete": {"responses": {"204": {}}, "parameters": [path]},
                    },
                    "/api/cats/{id}/photo": {"get": {"responses": {"200": {}}}},
                }
            )
        )
    )
    assert {line for line in source if line.startswith("def ")} == {
        "def __call__(self, a: Literal['cats'], /, *, limit: int | None=None, q: str) -> int:",
        "def __call__(self, a: Literal['cats'], b: str, /) -> str:",
        "def __call__(self, a: Literal['cats'], b: str, /) -> None:",
    }


def test_every_name_in_the_committed_module_is_defined() -> None:
    types = [value for value in vars(wire).values() if is_typeddict(value)]
    assert wire.ApprovalView in types
    for each in types:
        get_type_hints(each)
