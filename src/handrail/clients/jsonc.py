"""JSON with comments and trailing commas (editor settings): parse it with positions, edit single members and items.

An edit leaves every other character of the text unchanged.
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from handrail.lazy_dataclass import dataclass

_GAP = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"', re.DOTALL)
_WORD = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
DEPTH_MAX: Final = 200
"""Maximum nesting depth; keeps the recursive parser from overflowing the stack."""


class NotJson(Exception):
    """Syntax error; the message has the line, the column and the expected token."""

    def __init__(self, text: str, at: int, expected: str) -> None:
        line = text.count("\n", 0, at) + 1
        column = at - (text.rfind("\n", 0, at) + 1) + 1
        super().__init__(f"line {line}, column {column}: {expected} was expected")


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its position: `text[start:end]`."""

    value: Any
    start: int
    end: int
    members: tuple["Member", ...] = ()
    """Members of an object, in text order. Of duplicate keys, the last one counts."""
    items: tuple["Node", ...] = ()
    """Items of a list."""
    has_trailing_comma: bool = False

    def member(self, key: str) -> "Member | None":
        return next((each for each in reversed(self.members) if each.key == key), None)


@dataclass(frozen=True, slots=True)
class Member:
    """A key of an object and its value."""

    key: str
    start: int
    node: Node


@lru_cache(16)
def parse(text: str) -> Node:
    """Parse a text that holds one value; its values must not be changed, because edits share them. Raises NotJson."""
    node = _parse_value(text, skip_gap(text, 0), 0)
    if skip_gap(text, node.end) != len(text):
        raise NotJson(text, skip_gap(text, node.end), "the end")
    return node


def skip_gap(text: str, at: int) -> int:
    """Offset of the next token, after whitespace and comments."""
    match = _GAP.match(text, at)
    assert match is not None  # the pattern also matches the empty string
    return match.end()


def _parse_value(text: str, at: int, depth: int) -> Node:
    if depth > DEPTH_MAX:
        raise NotJson(text, at, "less depth")
    match text[at : at + 1]:
        case "{":
            return _parse_object(text, at, depth)
        case "[":
            return _parse_list(text, at, depth)
        case '"':
            return _parse_string(text, at)
        case _:
            return _parse_word(text, at)


def _parse_object(text: str, start: int, depth: int) -> Node:
    members: list[Member] = []
    at, comma = skip_gap(text, start + 1), False
    while text[at : at + 1] != "}":
        if members and not comma:
            raise NotJson(text, at, "a comma or }")
        key = _parse_string(text, at)
        colon = skip_gap(text, key.end)
        if text[colon : colon + 1] != ":":
            raise NotJson(text, colon, "a colon")
        node = _parse_value(text, skip_gap(text, colon + 1), depth + 1)
        members.append(Member(key.value, key.start, node))
        at, comma = _next_member(text, node)
    value = {each.key: each.node.value for each in members}
    return Node(value, start, at + 1, tuple(members), has_trailing_comma=comma)


def _parse_list(text: str, start: int, depth: int) -> Node:
    items: list[Node] = []
    at, comma = skip_gap(text, start + 1), False
    while text[at : at + 1] != "]":
        if items and not comma:
            raise NotJson(text, at, "a comma or ]")
        items.append(_parse_value(text, at, depth + 1))
        at, comma = _next_member(text, items[-1])
    values = [each.value for each in items]
    return Node(values, start, at + 1, items=tuple(items), has_trailing_comma=comma)


def _next_member(text: str, node: Node) -> tuple[int, bool]:
    """Offset of the next member, and whether a comma precedes it."""
    at = skip_gap(text, node.end)
    return (skip_gap(text, at + 1), True) if text[at : at + 1] == "," else (at, False)


def _parse_string(text: str, at: int) -> Node:
    match = _STRING.match(text, at)
    try:
        return Node(json.loads(match[0]), at, match.end()) if match else _fail(text, at, "a string")
    except ValueError:
        return _fail(text, at, "a string")


def _parse_word(text: str, at: int) -> Node:
    match = _WORD.match(text, at)
    try:
        return Node(json.loads(match[0]), at, match.end()) if match else _fail(text, at, "a value")
    except ValueError:
        return _fail(text, at, "a number")


def _fail(text: str, at: int, expected: str) -> Node:
    raise NotJson(text, at, expected)


_REST_OF_LINE = re.compile(r"(?:[ \t]|/\*[^\r\n]*?\*/)*(?://[^\r\n]*)?(?=[\r\n])")
"""After a member: only whitespace and comments up to the end of the line."""
_EMPTY_REST = re.compile(r"[ \t]*(?:\r\n|\n|(?=[}\]]))")
USUAL_INDENT = "    "


def set_member(text: str, path: Sequence[str], value: Any) -> str:
    """Set the member at this path; create missing objects on the way. Raises NotJson, NotAnObject."""
    text = text if text.strip("\ufeff \t\r\n") else "{}\n"
    return _set_in_node(text, parse(text), path, value, 1)


def remove_member(text: str, path: Sequence[str]) -> str:
    """Remove the member at this path, if it exists."""
    node = parse(text)
    for key in path[:-1]:
        member = node.member(key)
        if member is None:
            return text
        node = member.node
    member = node.member(path[-1])
    return text if member is None else _cut_entry(text, node, node.members.index(member))


def append_item(text: str, path: Sequence[str], value: Any) -> str:
    """Append an item to the list at this path; create the list if it is missing. Raises NotJson, NotAnObject."""
    node = find_node(text, path)
    if node is None:
        return set_member(text, path, [value])
    if not isinstance(node.value, list):
        raise NotAnObject(text, node, "a list")
    return _append_entry(text, node, _format_value(text, value, len(path) + 1), len(path) + 1)


def remove_item(text: str, path: Sequence[str], value: Any) -> str:
    """Remove the last item that equals this value from the list at this path, if there is one."""
    node = find_node(text, path)
    at = [index for index, item in enumerate(node.items) if item.value == value] if node else []
    return text if node is None or not at else _cut_entry(text, node, at[-1])


def find_node(text: str, path: Sequence[str]) -> Node | None:
    """The value at this path; None if it does not exist. Raises NotJson."""
    node = parse(text) if text.strip("\ufeff \t\r\n") else Node({}, 0, 0)
    for key in path:
        member = node.member(key)
        if member is None:
            return None
        node = member.node
    return node


def _set_in_node(text: str, node: Node, path: Sequence[str], value: Any, depth: int) -> str:
    if not isinstance(node.value, dict):
        raise NotAnObject(text, node)
    key, rest = path[0], path[1:]
    member = node.member(key)
    if member is not None and rest and isinstance(member.node.value, dict):
        return _set_in_node(text, member.node, rest, value, depth + 1)
    for inner in reversed(rest):
        value = {inner: value}
    source = _format_value(text, value, depth)
    if member is not None:
        return text[: member.node.start] + source + text[member.node.end :]
    return _append_entry(text, node, f"{json.dumps(key)}: {source}", depth)


class NotAnObject(Exception):
    """A value on the path is not an object, or not a list."""

    def __init__(self, text: str, node: Node, expected: str = "an object") -> None:
        super().__init__(f"{expected} was expected where {text[node.start : node.end][:40]} stands")


def _entries(node: Node) -> tuple[tuple[int, int], ...]:
    """Start and end of every member of an object, or of every item of a list."""
    if isinstance(node.value, dict):
        return tuple((each.start, each.node.end) for each in node.members)
    return tuple((each.start, each.end) for each in node.items)


def _append_entry(text: str, node: Node, entry: str, depth: int) -> str:
    """Append a member to an object, or an item to a list."""
    newline, indent = _detect_style(text)
    entries = _entries(node)
    if "\n" not in text[node.start : node.end] and entries:
        last = entries[-1][1]
        return text[:last] + f", {entry}" + text[last:]
    begin = newline + indent * depth
    if not entries:
        return _insert_first_entry(text, node, begin + entry, newline + indent * (depth - 1))
    last = entries[-1][1]
    comma = skip_gap(text, last) + 1 if node.has_trailing_comma else last
    rest = _REST_OF_LINE.match(text, comma)
    place = rest.end() if rest else comma
    before = "" if node.has_trailing_comma else ","
    after = "," if node.has_trailing_comma else ""
    return text[:last] + before + text[last:place] + begin + entry + after + text[place:]


def _insert_first_entry(text: str, node: Node, entry: str, closing: str) -> str:
    """Insert the first entry into an object or a list, after any comments in it."""
    inside = text[node.start + 1 : node.end - 1]
    place = node.start + 1 + len(inside.rstrip(" \t\r\n"))
    after = text[place : node.end - 1]
    return text[:place] + entry + (after if "\n" in after else closing) + text[node.end - 1 :]


def _cut_entry(text: str, node: Node, index: int) -> str:
    """Remove a member or an item, and the comma that belongs to it."""
    entries = _entries(node)
    begin, finish = entries[index]
    end = skip_gap(text, finish)
    has_comma = text[end : end + 1] == ","
    cut_end = end + 1 if has_comma else finish
    start = _line_start(text, begin)
    rest = _EMPTY_REST.match(text, cut_end)
    if start is not None and rest is not None:  # the entry shares its lines with nothing else
        text, cut = text[:start] + text[rest.end() :], start
    else:
        text, cut = text[:begin] + text[cut_end:].lstrip(" \t"), begin
    if index > 0 and not has_comma:
        return _cut_comma(text, entries[index - 1][1], cut)
    return text


def _cut_comma(text: str, after: int, before: int) -> str:
    """Remove the comma between the previous entry and the removed one."""
    place = skip_gap(text, after)
    return text[:place] + text[place + 1 :] if place < before and text[place] == "," else text


def _line_start(text: str, at: int) -> int | None:
    """Start of the line, if only whitespace precedes this offset; else None."""
    start = text.rfind("\n", 0, at) + 1
    return start if not text[start:at].strip(" \t") else None


def _format_value(text: str, value: Any, depth: int) -> str:
    newline, indent = _detect_style(text)
    lines = json.dumps(value, indent=indent, ensure_ascii=False).split("\n")
    return (newline + indent * depth).join(lines)


def _detect_style(text: str) -> tuple[str, str]:
    """The newline and the indent that the text uses."""
    newline = "\r\n" if "\r\n" in text else "\n"
    members = parse(text).members
    start = _line_start(text, members[0].start) if members else None
    indent = "" if start is None else text[start : members[0].start]
    return newline, indent or USUAL_INDENT
