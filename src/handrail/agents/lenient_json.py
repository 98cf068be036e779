"""Lenient JSON accessors: a value of the wrong type counts as missing.

Also bounds the size of the values that are stored. The accessors do not know what any field means.
"""

import json
from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from handrail.store.values import Json

LONGEST_TEXT = 256 * 1024
"""Characters stored of one value; bounds what an agent can add to the database with one message."""


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def name(value: object) -> str:
    """An id: a string by the specification, a number from some agents."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else text(value)


def number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def record(value: object) -> Json:
    return cast("Json", value) if isinstance(value, Mapping) else {}


def records(value: object) -> list[Json]:
    """The objects in a list; other values are left out."""
    entries = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Json", each) for each in entries if isinstance(each, Mapping)]


def cut(value: str, most: int = LONGEST_TEXT) -> str:
    """Cut a long text in the middle: its beginning and its end remain."""
    if len(value) <= most:
        return value
    half = most // 2
    return f"{value[:half]}\n… {len(value) - 2 * half:,} characters left out …\n{value[-half:]}"


def bounded(value: JsonValue) -> JsonValue:
    """The value unchanged, or the beginning and end of its JSON text if it is too large to store."""
    if isinstance(value, str):
        return cut(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    encoded = json.dumps(value, ensure_ascii=False)
    return value if len(encoded) <= LONGEST_TEXT else cut(encoded)
