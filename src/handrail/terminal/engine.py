"""The terminal emulator behind `screen.py`: bytes in, cells out.

Owns every call into pyghostty, which has no types, and its lifetime. It does not know tails, nor which bytes matter.
The library is loaded at first use: most processes that import this room never show a screen.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

ALTERNATE = (47, 1047, 1049)
"""The private modes that mean the alternate screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """What the emulator shows."""

    lines: tuple[str, ...]
    cursor: tuple[int, int]
    alternate: bool
    application_keys: bool
    bracketed_paste: bool
    title: str


class Engine:
    """One emulated terminal, of one size. Not for two threads at once."""

    def __init__(self, cols: int, rows: int) -> None:
        self._native: Any = importlib.import_module("pyghostty").Terminal(cols, rows, scrollback=0)
        self._rows = rows

    def feed(self, data: bytes) -> None:
        self._native.feed(data)

    def cells(self) -> Cells:
        lines = [line.rstrip() for line in str(self._native.text()).split("\n")][: self._rows]
        column, row = self._native.cursor
        return Cells(
            lines=tuple(lines + [""] * (self._rows - len(lines))),
            cursor=(int(column), int(row)),
            alternate=any(self._native.mode(mode) for mode in ALTERNATE),
            application_keys=self._native.mode(1),
            bracketed_paste=self._native.mode(2004),
            title="",
        )

    def close(self) -> None:
        self._native.close()
