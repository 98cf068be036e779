"""What one JSON-RPC line says, as far as the door needs it: id, method, answer or cancel.

Owns no state and changes no bytes. Does not know MCP beyond these few names. A line too long to be kept whole
is read at its head and its tail alone, where every known client and server writes its id and method.
"""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False  # `typing` itself would cost the door a third of its start
if TYPE_CHECKING:
    from typing import Any

WINDOW = 4096
"""Bytes of a long line looked at from either end; bounds what a regular expression is given to chew."""

_STRING = rb'"(?:[^"\\]|\\.)*"'
_SCALAR = rb"(?:" + _STRING + rb"|-?\d[\d.eE+-]*|null|true|false)"
_HEAD_MEMBER = rb"\s*[{,]\s*(" + _STRING + rb")\s*:\s*(" + _SCALAR + rb"(?=\s*[,}]))?"
_TAIL = rb'((?:,\s*"(?:id|jsonrpc|method)"\s*:\s*' + _SCALAR + rb"\s*)+)\}\s*$"


class Message:
    """One JSON-RPC message, reduced to what decides who waits for whom."""

    __slots__ = ("answers", "cancels", "key", "method")

    def __init__(self, key: str | None, method: str | None, answers: bool, cancels: str | None) -> None:
        self.key = key
        """The id as JSON text, so that 1 and "1" stay apart; None where there is none."""
        self.method = method
        self.answers = answers
        self.cancels = cancels

    @property
    def is_request(self) -> bool:
        return self.method is not None and self.key is not None

    @property
    def is_answer(self) -> bool:
        return self.method is None and self.key is not None and self.answers


def read(line: bytes) -> list[Message]:
    """Every message of a whole line; none where it is not JSON-RPC."""
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        return []
    batch: list[Any] = parsed if _is(list, parsed) else [parsed]
    return [_message(item) for item in batch if _is(dict, item)]


def survey(head: bytes, tail: bytes = b"") -> list[Message]:
    """The message of a line of which only both ends are at hand: best effort, never a guess."""
    try:
        members = {**_members_of_head(head[:WINDOW]), **_members_of_tail(tail[-WINDOW:])}
    except ValueError:
        return []
    return [_message(members)] if members else []


def key_of(value: object) -> str | None:
    """An id as JSON text; null is no id."""
    return None if value is None else json.dumps(value)


def _is(kind: type, value: object) -> bool:
    return isinstance(value, kind)


def _message(item: dict[str, Any]) -> Message:
    method = item.get("method")
    method = method if isinstance(method, str) else None
    cancels = None
    if method == "notifications/cancelled" and isinstance(item.get("params"), dict):
        cancels = key_of(item["params"].get("requestId"))
    return Message(key_of(item.get("id")), method, "result" in item or "error" in item, cancels)


def _members_of_head(head: bytes) -> dict[str, Any]:
    members: dict[str, Any] = {}
    at = 0
    member = re.compile(_HEAD_MEMBER)  # compiled only once a long line comes: a door must start at once
    while found := member.match(head, at):
        name, value = found.groups()
        members[json.loads(name)] = None if value is None else json.loads(value)
        if value is None:  # the long one: nothing after it can be found from this end
            break
        at = found.end()
    return members


def _members_of_tail(tail: bytes) -> dict[str, Any]:
    found = re.search(_TAIL, tail)
    return {} if found is None else json.loads(b"{" + found[1].lstrip(b",") + b"}")
