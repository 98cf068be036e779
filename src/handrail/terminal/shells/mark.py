"""Marks in a terminal's output: escape sequences by which a shell says where prompts, lines and outputs begin and end.

Owns what a mark looks like (OSC 133 and 633, with the nonce that only our own shell was told) and finding them in
bytes that come in pieces. It does not know what marks mean together (marks.py), nor how a shell is made to write them
(integration.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Kind = Literal["prompt", "input", "line", "cwd", "output", "end"]
    _Said = tuple[Kind, str, dict[str, str]]

MOST = 128 * 1024
"""Bytes one mark may take: a sequence that does not end is not held longer than this."""

_OPENING = b"\x1b]"
_CLOSINGS = (b"\x07", b"\x1b\\")
_CONTROL = re.compile(rb"[\x00-\x1f]")
_ESCAPED = re.compile(rb"\\(?:\\|x([0-9a-fA-F]{2}))")
_KINDS: dict[str, Kind] = {"A": "prompt", "B": "input", "C": "output", "D": "end"}


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing the shell said, and where it said it."""

    kind: Kind
    start: int
    end: int
    text: str
    """The line or the directory; the exit code at an end."""
    about: Mapping[str, str]


class Finder:
    """Finds the marks of one nonce; what is cut off by the end of a piece is kept until the next."""

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce.encode()
        self._kept = b""
        self._next = 0

    @property
    def held(self) -> int:
        """Bytes kept for the next piece."""
        return len(self._kept)

    def find(self, data: bytes, offset: int) -> Iterator[Mark]:
        """The marks that end in this piece. A piece that does not follow the last one begins anew."""
        if offset != self._next:
            self._kept = b""
        self._next = offset + len(data)
        data, offset = self._kept + data, offset - len(self._kept)
        done = 0  # no sequence that began before it matters any more
        while self._nonce and (at := data.find(self._nonce, done)) >= 0:
            start = data.rfind(_OPENING, done, at)
            done = at + len(self._nonce)
            if start < 0 or _CONTROL.search(data, start + 2, at):
                continue  # the nonce as a word, in no sequence
            closing = _CONTROL.search(data, done, start + MOST)
            done = min(start + MOST, len(data)) if closing is None else closing.start()
            mark = self._read(data[start + 2 : done])
            if mark and (closed := next((end for end in _CLOSINGS if data.startswith(end, done)), None)):
                done += len(closed)
                yield Mark(mark[0], offset + start, offset + done, *mark[1:])
        self._kept = _unfinished(data)

    def _read(self, body: bytes) -> _Said | None:
        code, _, rest = body.partition(b";")
        read = {b"133": self._read_133, b"633": self._read_633}.get(code)
        return read(rest) if read else None

    def _read_133(self, rest: bytes) -> _Said | None:
        letter, *fields = rest.decode("utf-8", errors="replace").split(";")
        about = {name: value for name, known, value in (field.partition("=") for field in fields) if known}
        kind = _KINDS.get(letter)
        if kind is None or about.get("nonce") != self._nonce.decode():
            return None
        return kind, "" if not fields or "=" in fields[0] else fields[0], about

    def _read_633(self, rest: bytes) -> _Said | None:
        parts = rest.split(b";")
        if len(parts) != 3 or parts[2] != self._nonce:
            return None
        match parts[0], parts[1].partition(b"="):
            case b"E", _:
                return "line", _unescape(parts[1]), {}
            case b"P", (b"Cwd", _, path):
                return "cwd", _unescape(path), {}
            case _:
                return None


def _unfinished(data: bytes) -> bytes:
    """What may be the beginning of a mark."""
    start = data.rfind(_OPENING, max(0, len(data) - MOST))
    if start >= 0:
        control = _CONTROL.search(data, start + 2)
        if control is None or (control.end() == len(data) and control[0] == b"\x1b"):
            return data[start:]
    return b"\x1b" if data.endswith(b"\x1b") else b""


def _unescape(text: bytes) -> str:
    whole = _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()) if found[1] else b"\\", text)
    return whole.decode("utf-8", errors="replace")
