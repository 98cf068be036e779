"""Reading what another program wrote: what is not of the kind that was expected is as if it were not there.

Owns that leniency, and the bounds on what is kept of it. It does not know what any field means.
"""

import json
from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from handrail.store.values import Json

LONGEST_TEXT = 256 * 1024
"""Of what an agent hands over at once about its own work; a log of gigabytes belongs in a terminal."""


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def name(value: object) -> str:
    """An id: a string by the specification, a number with some."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else text(value)


def number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def record(value: object) -> Json:
    return cast("Json", value) if isinstance(value, Mapping) else {}


def records(value: object) -> list[Json]:
    """The objects of a list; whatever else is in it is left out."""
    found = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Json", each) for each in found if isinstance(each, Mapping)]


def cut(value: str, most: int = LONGEST_TEXT) -> str:
    """As much as is kept of it: the beginning and the end."""
    if len(value) <= most:
        return value
    half = most // 2
    return f"{value[:half]}\n… {len(value) - 2 * half:,} characters left out …\n{value[-half:]}"


def bounded(value: JsonValue) -> JsonValue:
    """Any value as it came, or its beginning and end as a string where it is too large to be kept."""
    if isinstance(value, str):
        return cut(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    written = json.dumps(value, ensure_ascii=False)
    return value if len(written) <= LONGEST_TEXT else cut(written)
