"""The terminal emulator behind `screen.py`: bytes in, cells out.

Owns every call into pyghostty, which has no types, and the lifetime of what it allocates. It does not know tails, nor
which bytes matter. The library is loaded at first use: most processes that import this room never show a screen.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

_ALTERNATE = 1
_OFF = (
    ("KITTY_IMAGE_STORAGE_LIMIT", "uint64_t*"),  # none at all, which also turns temporary files off
    ("KITTY_IMAGE_MEDIUM_FILE", "bool*"),
    ("KITTY_IMAGE_MEDIUM_SHARED_MEM", "bool*"),
)
"""Output is not trusted: it may not make us keep pictures, nor read or delete the files it names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A terminal as a person would see it."""

    lines: tuple[str, ...]
    """One for each row, trailing blanks trimmed."""
    cursor: tuple[int, int]
    """Column and row, from zero."""
    alternate: bool
    """A full-screen program has the alternate screen."""
    application_keys: bool
    """It wants application cursor keys (`keys.encode`)."""
    bracketed_paste: bool
    title: str


class Engine:
    """One emulated terminal, of one size. Not for two threads at once."""

    def __init__(self, cols: int, rows: int) -> None:
        self._library: Any = importlib.import_module("pyghostty")
        self._native: Any = self._library.Terminal(cols, rows, scrollback=0)
        self._rows = rows
        for option, kind in _OFF:
            self._set(option, self._library.ffi.new(kind, 0))

    def feed(self, data: bytes) -> None:
        self._native.feed(data)

    def shown(self) -> Shown:
        lines = [line.rstrip() for line in str(self._native.text()).split("\n")][: self._rows]
        column, row = self._native.cursor
        return Shown(
            lines=(*lines, *[""] * (self._rows - len(lines))),
            cursor=(int(column), int(row)),
            alternate=int(self._native.get("active_screen", "GhosttyTerminalScreen")) == _ALTERNATE,
            application_keys=bool(self._native.mode(1)),
            bracketed_paste=bool(self._native.mode(2004)),
            title=self._title(),
        )

    def close(self) -> None:
        self._native.close()

    def _title(self) -> str:
        title = self._native.get("title", "GhosttyString")
        if not title.len:
            return ""
        text: str = self._library.ffi.buffer(title.ptr, title.len)[:].decode(errors="replace")
        return "".join(char for char in text if char.isprintable())

    def _set(self, option: str, value: Any) -> None:
        lib: Any = self._library.lib
        result = lib.ghostty_terminal_set(
            self._native._t[0],  # noqa: SLF001 - it has no other way to say this
            getattr(lib, f"GHOSTTY_TERMINAL_OPT_{option}"),
            value,
        )
        if result:
            raise RuntimeError(f"The terminal emulator refuses {option}: {result}.")
