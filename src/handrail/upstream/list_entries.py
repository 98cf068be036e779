"""Entries of the lists of MCP servers, made fit for one list of all servers.

A client with an SDK refuses a whole list for one entry that MCP does not allow. It would lose the tools of all other servers and
Handrail's own.
"""

import json
import re
from typing import Any, cast

from pydantic import JsonValue, ValidationError

from handrail.store.values import Json

FIELDS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""The field of each list that has its entries."""
FAULT_MAX = 200
"""Characters of a sentence about a fault: a server chooses the names in it."""
_VERSION = "2025-11-25"
"""The generation that allows less."""
_OPAQUE = ("_meta", "inputSchema", "outputSchema")
"""Fields of entries in which null has a meaning of its own."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)")


def find_fault(method: str, entry: Json) -> str:
    """What MCP does not allow about an entry of a list; empty if it is allowed."""
    from mcp_types.methods import SERVER_RESULTS  # noqa: PLC0415 - only where there are servers

    model = cast("Any", SERVER_RESULTS[method, _VERSION])
    try:
        model.model_validate({FIELDS[method]: [entry]}, strict=True, by_name=False)
        json.dumps(entry, ensure_ascii=False).encode()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"][2:])
        return f"{place}: {first['msg'].lower()}"[:FAULT_MAX]
    except UnicodeEncodeError:
        return "it has half of a character"
    return ""


def normalize_entry(entry: Json) -> Json:
    """The entry without what some clients refuse although it means nothing: null for what is absent, times that are none."""
    found = {name: _without_nulls(name, value) for name, value in entry.items() if value is not None}
    schema, annotations = found.get("inputSchema"), found.get("annotations")
    if isinstance(schema, dict):
        found["inputSchema"] = _normalize_schema(schema)
    if isinstance(annotations, dict) and not _TIME.fullmatch(str(annotations.get("lastModified"))):
        annotations.pop("lastModified", None)
    return found


def _without_nulls(name: str, value: JsonValue) -> JsonValue:
    if name in _OPAQUE:
        return value
    match value:
        case dict():
            return {at: _without_nulls(at, each) for at, each in value.items() if each is not None}
        case list():
            return [_without_nulls("", each) for each in value]
        case _:
            return value


def _normalize_schema(schema: Json) -> Json:
    """The schema of an object, whose properties are described by objects."""
    rest: Json = {name: value for name, value in schema.items() if value is not None}
    properties = rest.get("properties")
    if isinstance(properties, dict):
        rest["properties"] = {name: _schema_object(each) for name, each in properties.items()}
    return {"type": "object", **rest}


def _schema_object(schema: JsonValue) -> JsonValue:
    """What the schemas true and false stand for; any other as it is."""
    if schema is True:
        return {}
    return {"not": {}} if schema is False else schema
