"""JSON schemas said shortly: a client checks every result against one, and all of them are in every list of tools.

Owns the rewriting of what pydantic makes: the same values are valid before and after. Does not know any tool.
"""

from typing import cast

from pydantic import JsonValue

from handrail.store.value import Json

_LISTS = {"enum", "const"}
"""What names the valid values themselves, so that null would have to be named there, too."""


def short(schema: Json) -> Json:
    """The schema without titles and defaults, references written out (none to itself), "or null" as a type."""
    definitions = cast("Json", schema.get("$defs", {}))
    return cast(
        "Json", _short({name: value for name, value in schema.items() if name != "$defs"}, definitions)
    )


def _short(schema: JsonValue, definitions: Json) -> JsonValue:
    if isinstance(schema, list):
        return [_short(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(reference := schema.get("$ref"), str):
        return _short(definitions[reference.removeprefix("#/$defs/")], definitions)
    kept = {name: value for name, value in schema.items() if not _is_noise(name, value)}
    return _or_null({name: _short(value, definitions) for name, value in kept.items()})


def _is_noise(name: str, value: JsonValue) -> bool:
    """A property may be called `title` or `default`, but then it is a schema itself."""
    return (name == "title" and isinstance(value, str)) or (name == "default" and not isinstance(value, dict))


def _or_null(schema: Json) -> Json:
    match schema:
        case {"anyOf": [{"type": str(kind), **rest}, {"type": "null"}], **others} if not _LISTS & rest.keys():
            return {**rest, **others, "type": [kind, "null"]}
        case _:
            return schema
