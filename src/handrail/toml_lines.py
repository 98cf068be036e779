"""Settings of a TOML file by their dotted names, and the lines that they stand in."""

import re
from collections.abc import Mapping
from typing import Any, cast


def find_line(text: str, location: list[str]) -> int:
    """Find the line of a setting: its key within its table, else the header of the table, else line 1."""
    table: list[str] = []
    counts: dict[str, int] = {}
    header_line = 1
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*(\[+)\s*([^\]\s]+)\s*\]+", line):
            table = _table_location(header[2], header[1] == "[[", counts)
            header_line = number if table == location[: len(table)] else header_line
        elif (key := re.match(r"\s*([A-Za-z0-9_.\"-]+)\s*=", line)) is not None:
            path = [*table, *key[1].split(".")]
            if path == location[: len(path)]:
                return number
    return header_line


def _table_location(name: str, in_array: bool, counts: dict[str, int]) -> list[str]:
    """The location of a table; `counts` holds the last index of each array of tables."""
    if not in_array:
        return name.split(".")
    index = counts[name] = counts.get(name, -1) + 1
    return [*name.split("."), str(index)]


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one table of dotted names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            flat |= flatten(cast("dict[str, Any]", value), f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat
