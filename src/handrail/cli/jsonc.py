"""JSON as editors keep their settings: with comments and trailing commas. Where each thing stands in the text.

Owns reading. Changes nothing (see jsonc_edit), and does not know what any setting means.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

_GAP = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"', re.DOTALL)
_WORD = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
DEPTH_MAX: Final = 200
"""Of objects and lists in each other: nobody's settings are so deep, and the stack is not endless."""


class NotJson(Exception):
    """The text is not what it should be; says where and what was expected."""

    def __init__(self, text: str, at: int, expected: str) -> None:
        line = text.count("\n", 0, at) + 1
        column = at - (text.rfind("\n", 0, at) + 1) + 1
        super().__init__(f"line {line}, column {column}: {expected} was expected")


@dataclass(frozen=True, slots=True)
class Node:
    """A value, and the text it stands in: `text[start:end]`."""

    value: Any
    start: int
    end: int
    members: tuple["Member", ...] = ()
    """Of an object, in the order of the text; a key may be there twice, and then the last one counts."""
    has_trailing_comma: bool = False

    def member(self, key: str) -> "Member | None":
        return next((each for each in reversed(self.members) if each.key == key), None)


@dataclass(frozen=True, slots=True)
class Member:
    """A key of an object and its value."""

    key: str
    start: int
    node: Node


def parse(text: str) -> Node:
    """The one value in a text. Raises NotJson."""
    node = _value(text, gap(text, 0), 0)
    if gap(text, node.end) != len(text):
        raise NotJson(text, gap(text, node.end), "the end")
    return node


def gap(text: str, at: int) -> int:
    """Where the next thing begins, after space and comments."""
    found = _GAP.match(text, at)
    assert found is not None  # it may be empty
    return found.end()


def _value(text: str, at: int, depth: int) -> Node:
    if depth > DEPTH_MAX:
        raise NotJson(text, at, "less depth")
    match text[at : at + 1]:
        case "{":
            return _object(text, at, depth)
        case "[":
            return _list(text, at, depth)
        case '"':
            return _string(text, at)
        case _:
            return _word(text, at)


def _object(text: str, start: int, depth: int) -> Node:
    members: list[Member] = []
    at, comma = gap(text, start + 1), False
    while text[at : at + 1] != "}":
        if members and not comma:
            raise NotJson(text, at, "a comma or }")
        key = _string(text, at)
        colon = gap(text, key.end)
        if text[colon : colon + 1] != ":":
            raise NotJson(text, colon, "a colon")
        node = _value(text, gap(text, colon + 1), depth + 1)
        members.append(Member(key.value, key.start, node))
        at, comma = _after(text, node)
    value = {each.key: each.node.value for each in members}
    return Node(value, start, at + 1, tuple(members), comma)


def _list(text: str, start: int, depth: int) -> Node:
    items: list[Any] = []
    at, comma = gap(text, start + 1), False
    while text[at : at + 1] != "]":
        if items and not comma:
            raise NotJson(text, at, "a comma or ]")
        node = _value(text, at, depth + 1)
        items.append(node.value)
        at, comma = _after(text, node)
    return Node(items, start, at + 1)


def _after(text: str, node: Node) -> tuple[int, bool]:
    """Where the next member begins, and whether a comma stands before it."""
    at = gap(text, node.end)
    return (gap(text, at + 1), True) if text[at : at + 1] == "," else (at, False)


def _string(text: str, at: int) -> Node:
    found = _STRING.match(text, at)
    try:
        return Node(json.loads(found[0]), at, found.end()) if found else _fail(text, at, "a string")
    except ValueError:
        return _fail(text, at, "a string")


def _word(text: str, at: int) -> Node:
    found = _WORD.match(text, at)
    try:
        return Node(json.loads(found[0]), at, found.end()) if found else _fail(text, at, "a value")
    except ValueError:
        return _fail(text, at, "a number")


def _fail(text: str, at: int, expected: str) -> Node:
    raise NotJson(text, at, expected)
