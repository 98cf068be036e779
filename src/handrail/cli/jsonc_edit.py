"""Changing one member of a JSON text with comments, and leaving every other character as it is.

Owns where a new member goes and what goes with a removed one. Pure; does not know what any setting means.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from handrail.cli.jsonc import Member, Node, gap, parse

_REST_OF_LINE = re.compile(r"(?:[ \t]|/\*[^\r\n]*?\*/)*(?://[^\r\n]*)?(?=[\r\n])")
"""After a member: only space and comments, to the end of its line."""
_EMPTY_REST = re.compile(r"[ \t]*(?:\r\n|\n|(?=\}))")
USUAL_INDENT = "    "


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Set the member at this path; objects on the way are made where they are missing."""
    text = text if text.strip("\ufeff \t\r\n") else "{}\n"
    return _put(text, parse(text), path, value, 1)


def remove(text: str, path: Sequence[str]) -> str:
    """Take out the member at this path; when it is not there, nothing changes."""
    node = parse(text)
    for key in path[:-1]:
        member = node.member(key)
        if member is None:
            return text
        node = member.node
    member = node.member(path[-1])
    return text if member is None else _without(text, node, member)


def at(text: str, path: Sequence[str]) -> str | None:
    """The text of the value at this path."""
    node = parse(text) if text.strip("\ufeff \t\r\n") else Node({}, 0, 0)
    for key in path:
        member = node.member(key)
        if member is None:
            return None
        node = member.node
    return text[node.start : node.end]


def _put(text: str, node: Node, path: Sequence[str], value: Any, depth: int) -> str:
    if not isinstance(node.value, dict):
        raise NotAnObject(text, node)
    key, rest = path[0], path[1:]
    member = node.member(key)
    if member is not None and rest and isinstance(member.node.value, dict):
        return _put(text, member.node, rest, value, depth + 1)
    for inner in reversed(rest):
        value = {inner: value}
    written = _written(text, value, depth)
    if member is not None:
        return text[: member.node.start] + written + text[member.node.end :]
    return _with(text, node, f"{json.dumps(key)}: {written}", depth)


class NotAnObject(Exception):
    """There is something else where an object belongs."""

    def __init__(self, text: str, node: Node) -> None:
        super().__init__(f"an object was expected where {text[node.start : node.end][:40]} stands")


def _with(text: str, node: Node, member: str, depth: int) -> str:
    """The same with one more member, behind the others."""
    newline, indent = _style(text)
    if "\n" not in text[node.start : node.end] and node.members:
        last = node.members[-1].node.end
        return text[:last] + f", {member}" + text[last:]
    begin = newline + indent * depth
    if not node.members:
        return _with_first(text, node, begin + member, newline + indent * (depth - 1))
    last = node.members[-1].node.end
    comma = gap(text, last) + 1 if node.has_trailing_comma else last
    rest = _REST_OF_LINE.match(text, comma)
    place = rest.end() if rest else comma
    before = "" if node.has_trailing_comma else ","
    after = "," if node.has_trailing_comma else ""
    return text[:last] + before + text[last:place] + begin + member + after + text[place:]


def _with_first(text: str, node: Node, member: str, closing: str) -> str:
    """Into an object that holds nothing but, perhaps, comments."""
    inside = text[node.start + 1 : node.end - 1]
    place = node.start + 1 + len(inside.rstrip(" \t\r\n"))
    after = text[place : node.end - 1]
    return text[:place] + member + (after if "\n" in after else closing) + text[node.end - 1 :]


def _without(text: str, node: Node, member: Member) -> str:
    index = node.members.index(member)
    end = gap(text, member.node.end)
    has_comma = text[end : end + 1] == ","
    cut_end = end + 1 if has_comma else member.node.end
    start = _line_start(text, member.start)
    rest = _EMPTY_REST.match(text, cut_end)
    if start is not None and rest is not None:  # it has its lines to itself
        text, cut = text[:start] + text[rest.end() :], start
    else:
        start = member.start
        text, cut = text[:start] + text[cut_end:].lstrip(" \t"), start
    if index > 0 and not has_comma:
        return _without_comma(text, node.members[index - 1].node.end, cut)
    return text


def _without_comma(text: str, after: int, before: int) -> str:
    """Take out the comma that separated a member from the one that is gone."""
    place = gap(text, after)
    return text[:place] + text[place + 1 :] if place < before and text[place] == "," else text


def _line_start(text: str, at: int) -> int | None:
    """Where the line begins, if nothing but space stands before this."""
    start = text.rfind("\n", 0, at) + 1
    return start if not text[start:at].strip(" \t") else None


def _written(text: str, value: Any, depth: int) -> str:
    newline, indent = _style(text)
    lines = json.dumps(value, indent=indent, ensure_ascii=False).split("\n")
    return (newline + indent * depth).join(lines)


def _style(text: str) -> tuple[str, str]:
    """The text's own newline and indent."""
    newline = "\r\n" if "\r\n" in text else "\n"
    members = parse(text).members
    start = _line_start(text, members[0].start) if members else None
    indent = "" if start is None else text[start : members[0].start]
    return newline, indent or USUAL_INDENT
