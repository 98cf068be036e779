"""Generates `src/handrail/cli/wire.py`, the CLI's types of the HTTP API, from the server's OpenAPI document.

Reads the document on stdin and prints Python; `make types` also formats it. Each schema becomes a TypedDict. Each HTTP
method becomes a Protocol with one overload per route, so that the path decides the types of query, body and answer.
"""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

HEAD = '''\
# Generated from the server's OpenAPI document by scripts/cli_types.py. Do not edit; run `make types`.
"""Types of the daemon's HTTP API: one TypedDict per schema, and one Protocol per HTTP method with its routes.

Only the type checker needs this module. Import it below `if TYPE_CHECKING`, so that it costs no start-up time.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, Protocol, TypeAlias, TypedDict, overload
'''
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
METHODS = ("get", "post", "put", "patch", "delete")
ARGUMENTS = "abcdefgh"
"""Names of the positional parameters, one for each segment of a path."""


def generate(document: Schema) -> str:
    """The source of the module. Formatting is left to ruff."""
    sent = sent_schemas(document)
    schemas: dict[str, Schema] = document["components"]["schemas"]
    types = [type_definition(name, schema, name in sent) for name, schema in sorted(schemas.items())]
    methods = [method_protocol(method, document["paths"]) for method in METHODS]
    return "\n\n".join([HEAD, *types, *filter(None, methods)]) + "\n"


def sent_schemas(document: Schema) -> set[str]:
    """Schemas that a client sends, and those nested in them."""
    schemas: dict[str, Schema] = document["components"]["schemas"]
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    names: set[str] = set()
    todo = references([operation.get("requestBody") for operation in operations])
    while todo:
        name = todo.pop()
        names.add(name)
        todo |= references(schemas[name]) - names
    return names


def references(value: object) -> set[str]:
    return set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(value)))


def type_definition(name: str, schema: Schema, is_sent: bool) -> str:
    """A TypedDict, or an alias if the schema is no object.

    A client may omit optional fields. The daemon omits none: fields with a default are always in its answers.
    """
    if "properties" not in schema:
        return f'{name}: TypeAlias = "{type_of(schema)}"'
    required = set(schema.get("required", ())) if is_sent else set(schema["properties"])
    lines = [f"class {name}(TypedDict):"]
    for field, value in schema["properties"].items():
        known = type_of(value)
        lines.append(f"    {field}: {known if field in required else f'NotRequired[{known}]'}")
    return "\n".join(lines)


def type_of(schema: Schema) -> str:  # noqa: PLR0911 - one for each kind of schema
    """The Python type of a JSON value."""
    match schema:
        case {"$ref": str(reference)}:
            return reference.rpartition("/")[2]
        case {"const": value}:
            return f"Literal[{value!r}]"
        case {"enum": [*values]}:
            return f"Literal[{', '.join(sorted(map(repr, values)))}]"
        case {"anyOf": [*options]} | {"oneOf": [*options]}:
            return " | ".join(dict.fromkeys(map(type_of, options)))
        case {"prefixItems": [*items]}:
            return f"tuple[{', '.join(map(type_of, items))}]"
        case {"type": "array"}:
            return f"list[{type_of(schema.get('items', {}))}]"
        case {"type": "object"}:
            extra: Schema | bool = schema.get("additionalProperties", True)
            return f"dict[str, {'Any' if isinstance(extra, bool) else type_of(extra)}]"
        case {"type": str(name)}:
            return PLAIN[name]
        case _:
            return "Any"


def method_protocol(method: str, paths: dict[str, Schema]) -> str:
    """A callable Protocol with the routes of one HTTP method; empty if there are none."""
    operations = [(path, routes[method]) for path, routes in sorted(paths.items()) if method in routes]
    signatures = [signature(path, operation) for path, operation in operations]
    known = [each for each in signatures if each]
    lines = [f"class {method.title()}(Protocol):", f'    """{method.upper()} below `/api`."""']
    for each in known:
        lines += ["    @overload"] if len(known) > 1 else []
        lines.append(f"    def __call__{each}: ...")
    return "\n".join(lines) if known else ""


def signature(path: str, operation: Schema) -> str | None:
    """The parameters and the answer of a route; None if its answer is not JSON."""
    answer = answer_type(operation["responses"])
    if answer is None:
        return None
    segments = path.removeprefix("/api/").split("/")
    positional = [f"{name}: {segment_type(each)}" for name, each in zip(ARGUMENTS, segments, strict=False)]
    keywords = [*body_parameter(operation), *query_parameters(operation)]
    parameters = ["self", *positional, "/", *(["*", *keywords] if keywords else [])]
    return f"({', '.join(parameters)}) -> {answer}"


def segment_type(segment: str) -> str:
    return "str" if segment.startswith("{") else f"Literal[{segment!r}]"


def body_parameter(operation: Schema) -> Iterator[str]:
    if "requestBody" in operation:
        yield f"body: {type_of(operation['requestBody']['content']['application/json']['schema'])}"


def query_parameters(operation: Schema) -> Iterator[str]:
    """Keyword parameters. None for an optional one means that it is not sent."""
    for parameter in operation.get("parameters", ()):
        known = type_of(parameter["schema"])
        if parameter["in"] == "query":
            optional = " = None" if known.endswith("None") else " | None = None"
            yield f"{parameter['name']}: {known}{'' if parameter['required'] else optional}"


def answer_type(responses: dict[str, Schema]) -> str | None:
    """The type of a successful answer; None if it is not JSON, or not described."""
    if "204" in responses:
        return "None"
    response = next(response for status, response in responses.items() if status.startswith("2"))
    schema = response.get("content", {}).get("application/json", {}).get("schema")
    return type_of(schema) if schema else None


if __name__ == "__main__":
    sys.stdout.write(generate(json.load(sys.stdin)))
