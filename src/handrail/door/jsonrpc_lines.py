"""JSON-RPC over lines: framing, output queue, and the parts of a message that the door needs.

A line up to `KEEP` bytes is buffered until complete. A longer line is forwarded in pieces, so memory stays bounded. Of a
message, only the id, the method, and whether it answers or cancels a request are read.
"""

from __future__ import annotations

import json
import re
from collections import deque

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


WINDOW = 4096
"""Bytes parsed at either end of a long line; bounds the input of the regular expressions."""

_STRING = rb'"(?:[^"\\]|\\.)*"'
_SCALAR = rb"(?:" + _STRING + rb"|-?\d[\d.eE+-]*|null|true|false)"
_HEAD_MEMBER = rb"\s*[{,]\s*(" + _STRING + rb")\s*:\s*(" + _SCALAR + rb"(?=\s*[,}]))?"
_TAIL = rb'((?:,\s*"(?:id|jsonrpc|method)"\s*:\s*' + _SCALAR + rb"\s*)+)\}\s*$"


class Message:
    """One JSON-RPC message, reduced to the fields that match requests with answers."""

    __slots__ = ("answers", "cancels", "key", "method")

    def __init__(self, key: str | None, method: str | None, answers: bool, cancels: str | None) -> None:
        self.key = key
        """The id as JSON text, so that 1 and "1" differ; None without an id."""
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
    """Parse all messages of a complete line; empty if it is not JSON-RPC."""
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        return []
    batch: list[Any] = parsed if _is(list, parsed) else [parsed]
    return [_message(item) for item in batch if _is(dict, item)]


def survey(head: bytes, tail: bytes = b"") -> list[Message]:
    """Parse the message of a long line from its two ends: best effort, never a guess."""
    try:
        members = {**_members_of_head(head[:WINDOW]), **_members_of_tail(tail[-WINDOW:])}
    except ValueError:
        return []
    return [_message(members)] if members else []


def key_of(value: object) -> str | None:
    """The id as JSON text; None for null."""
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
    member = re.compile(_HEAD_MEMBER)  # compiled on first use, to start fast
    while found := member.match(head, at):
        name, value = found.groups()
        members[json.loads(name)] = None if value is None else json.loads(value)
        if value is None:  # a value that does not fit: nothing after it can be parsed from this end
            break
        at = found.end()
    return members


def _members_of_tail(tail: bytes) -> dict[str, Any]:
    found = re.search(_TAIL, tail)
    return {} if found is None else json.loads(b"{" + found[1].lstrip(b",") + b"}")


KEEP = 1 << 20
"""Bytes of a line that is buffered completely. Bounds memory per direction; a longer line cannot be sent again."""


class Piece:
    """A complete line, or a part of a line that is too long to be buffered."""

    __slots__ = ("_messages", "data", "ends", "starts")

    def __init__(
        self, data: bytes, messages: list[Message] | None = None, starts: bool = True, ends: bool = True
    ) -> None:
        """For a complete line, `messages` may be omitted: the line is then parsed on first use."""
        self.data = data
        self._messages = messages
        self.starts = starts
        self.ends = ends

    @property
    def messages(self) -> list[Message]:
        """The messages of the line; at the start of a long line, only what its head contains."""
        if self._messages is None:
            self._messages = read(self.data)
        return self._messages

    @property
    def requests(self) -> list[Message]:
        return [each for each in self.messages if each.is_request] if self.ends else []


class Lines:
    """Splits one peer's byte stream into pieces."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._size = 0
        self._head = b""
        self._tail = b""

    @property
    def inside_long(self) -> bool:
        """Whether part of a long line was already forwarded and its end has not arrived."""
        return bool(self._head)

    def feed(self, data: bytes) -> list[Piece]:
        pieces: list[Piece] = []
        at = 0
        while (end := data.find(b"\n", at)) >= 0:
            self._hold(data[at : end + 1])
            pieces.append(self._cut(ends=True))
            at = end + 1
        self._hold(data[at:])
        if self._size >= KEEP or (self._size and self.inside_long):
            pieces.append(self._cut(ends=False))
        return pieces

    def rest(self) -> list[Piece]:
        """The data after the last newline, as a last line."""
        return [self._cut(ends=True)] if self._size or self.inside_long else []

    def _hold(self, data: bytes) -> None:
        if data:
            self._held.append(data)
            self._size += len(data)

    def _cut(self, ends: bool) -> Piece:
        data = b"".join(self._held)
        self._held.clear()
        self._size = 0
        if ends and not self.inside_long:
            return Piece(data)
        starts = not self.inside_long
        self._head = self._head or data[:WINDOW]
        self._tail = (self._tail + data[-WINDOW:])[-WINDOW:]
        piece = Piece(data, survey(self._head, self._tail if ends else b""), starts, ends)
        if ends:
            self._head = self._tail = b""
        return piece


class Outbox:
    """Queue of pieces to one peer, which may disconnect in the middle of a piece."""

    def __init__(self) -> None:
        self._pieces: deque[Piece] = deque()
        self._written = 0
        self._inside = False
        self._skipping = False
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self._pieces)

    @property
    def full(self) -> bool:
        return self.size >= KEEP

    @property
    def requests(self) -> list[Message]:
        """The queued requests; none of them has been sent completely."""
        return [each for piece in self._pieces for each in piece.requests]

    def put(self, piece: Piece) -> bool:
        """Queue a piece; False, and the piece is dropped, if its line can no longer be sent completely."""
        if self._skipping:
            self._skipping = not piece.ends
            return False
        self._pieces.append(piece)
        self.size += len(piece.data)
        return True

    def put_first(self, piece: Piece) -> None:
        self._pieces.appendleft(piece)
        self.size += len(piece.data)

    def next(self, most: int) -> memoryview:
        return memoryview(self._pieces[0].data)[self._written : self._written + most]

    def wrote(self, count: int) -> Piece | None:
        """Count bytes as written; return the piece if this completes it."""
        self._written += count
        if self._written < len(self._pieces[0].data):
            return None
        piece = self._pop()
        self._inside = not piece.ends
        return piece

    def start_over(self) -> list[Piece]:
        """Restart at a line boundary for a new peer. Returns the queued rest of a line that was partly sent."""
        self._written = 0
        torn: list[Piece] = []
        while self._inside and self._pieces:
            torn.append(self._pop())
            self._inside = not torn[-1].ends
        self._skipping = self._skipping or self._inside
        self._inside = False
        return torn

    def empty(self) -> list[Piece]:
        """Remove and return all pieces; if the last line is incomplete, drop its rest when it arrives."""
        pieces = list(self._pieces)
        self._pieces.clear()
        self._written = self.size = 0
        self._skipping = self._skipping or (bool(pieces) and not pieces[-1].ends)
        return pieces

    def _pop(self) -> Piece:
        piece = self._pieces.popleft()
        self._written = 0
        self.size -= len(piece.data)
        return piece
