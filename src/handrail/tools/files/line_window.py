"""Read a range of lines from a file of any size, in bounded memory."""

import os
from collections.abc import Callable
from dataclasses import field

from handrail.lazy_dataclass import dataclass
from handrail.tools.files.encoding import split, split_raw

CHUNK = 1 << 18
LINE_MAX = 2000
"""Characters shown of one line: minified code would fill a model's context."""
WINDOW_MAX = 1 << 18
"""Bytes of text in one answer, for the same reason."""
_BEGINNING = 8192
"""Bytes checked for NUL to detect binary files; a stray NUL later in a log is accepted."""
_LINE_BYTES = LINE_MAX * 4 + 4


@dataclass(slots=True)
class Window:
    """The lines of the range, and facts about the rest of the file."""

    first: int
    lines: list[str] = field(default_factory=list[str])
    """Decoded, with line endings; bytes that are not UTF-8 are replaced."""
    cut: list[int] = field(default_factory=list[int])
    """Numbers of the lines that were cut."""
    total: int | None = None
    """Lines in the file; None when it was not read to its end."""
    replaced: bool = False
    full: bool = False
    """Stopped before `limit` lines because of WINDOW_MAX."""

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1


class BinaryError(Exception):
    """The file is binary."""


def is_binary(beginning: bytes) -> bool:
    """Whether the first bytes of a file contain NUL."""
    return b"\0" in beginning[:_BEGINNING]


def read_window(
    descriptor: int, first: int, limit: int, count_until: int, check: Callable[[], None]
) -> Window:
    """Read `limit` lines from line `first` (1-based); count the rest while offset < `count_until`.

    `check` is called between chunks, and may raise to stop a long read.
    """
    chunk = os.read(descriptor, CHUNK)
    if is_binary(chunk):
        raise BinaryError
    following = os.read(descriptor, CHUNK)
    if not following and (window := _whole(chunk, first, limit)):
        return window
    reader = _Reader(Window(first), first + limit)
    offset = 0
    while chunk:
        check()
        offset += len(chunk)
        reader.feed(chunk)
        if reader.done and offset >= count_until:
            return reader.window
        chunk, following = following, os.read(descriptor, CHUNK)
    reader.end()
    return reader.window


def _whole(raw: bytes, first: int, limit: int) -> Window | None:
    """Fast path for a small file; None when a line or the total must be cut."""
    lines = split(raw.decode(errors="replace"))
    wanted = lines[first - 1 : first - 1 + limit]
    if len(raw) > WINDOW_MAX or max(map(len, wanted), default=0) > LINE_MAX:
        return None
    kept = b"".join(split_raw(raw)[first - 1 : first - 1 + limit])
    return Window(first, wanted, total=len(lines), replaced=_is_replaced("".join(wanted), kept))


def _is_replaced(text: str, raw: bytes) -> bool:
    """Whether decoding inserted a replacement character."""
    return "\ufffd" in text and not raw.startswith(text.removesuffix("\n").encode())


class _Reader:
    """Splits chunks into lines; keeps only the lines of the window, cut to their bound."""

    def __init__(self, window: Window, stop: int) -> None:
        self.window = window
        self._stop = stop
        self._number = 1
        self._line = bytearray()
        self._length = 0
        self._kept = 0
        self._ended = True

    @property
    def done(self) -> bool:
        return self._number >= self._stop or self.window.full

    def feed(self, chunk: bytes) -> None:
        self._ended = chunk.endswith(b"\n")
        newlines = chunk.count(b"\n")
        if self._number + newlines < self.window.first:
            self._number += newlines
            return
        at = 0
        while not self.done and (end := chunk.find(b"\n", at) + 1):
            self._extend(chunk[at:end])
            self._finish()
            at = end
        if self.done:
            self._number += chunk.count(b"\n", at)
        else:
            self._extend(chunk[at:])

    def end(self) -> None:
        if not self._ended:
            if self.done:
                self._number += 1
            else:
                self._finish()
        self.window.total = self._number - 1

    def _extend(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._number >= self.window.first:
            self._line += piece[: max(0, _LINE_BYTES - len(self._line))]

    def _finish(self) -> None:
        if self._number >= self.window.first:
            self._keep()
        self._number += 1
        self._line.clear()
        self._length = 0

    def _keep(self) -> None:
        text = self._line.decode(errors="replace")
        body = text.rstrip("\r\n")
        if len(body) > LINE_MAX or self._length > len(self._line):
            self.window.cut.append(self._number)
            text = body[:LINE_MAX] + "\n"
        self._kept += len(text)
        if self._kept > WINDOW_MAX and self.window.lines:
            self.window.full = True
            return
        self.window.replaced = self.window.replaced or _is_replaced(text, bytes(self._line))
        self.window.lines.append(text)
