"""A line and those around it, cut to what can be shown.

Owns the cutting. It does not know where bytes come from: it is given a way to read them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

WIDEST = 4000
"""Bytes shown of one line."""
_LEAD = 1000
"""Of these, before a match far into a long line."""
_AROUND = 64 * 1024
"""Bytes looked at for the lines before, and for those after."""


@dataclass(frozen=True, slots=True)
class Window:
    text: str
    before: tuple[str, ...]
    after: tuple[str, ...]


def window(
    read: Callable[[int, int], bytes], first: int, end: int, line: int, match: int, context: int
) -> Window:
    """Of the line that begins at `line`, in which something begins at `match`; `context` lines on each side."""
    shown = line if match - line <= WIDEST - _LEAD else match - _LEAD
    data = read(shown, min(end, shown + WIDEST))
    text = data.partition(b"\n")[0]
    before = _before(read(max(first, line - _AROUND), line), context) if context else ()
    after = _after(read(shown, min(end, shown + _AROUND)), context) if context else ()
    return Window(_show(text), before, after)


def _before(data: bytes, context: int) -> tuple[str, ...]:
    lines = data.split(b"\n")[:-1]
    return tuple(_show(line[:WIDEST]) for line in lines[-context:])


def _after(data: bytes, context: int) -> tuple[str, ...]:
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return tuple(_show(line[:WIDEST]) for line in lines[1 : 1 + context])


def _show(line: bytes) -> str:
    return line.removesuffix(b"\r").decode(errors="replace")
