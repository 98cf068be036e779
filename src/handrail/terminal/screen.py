"""Terminal bytes into what a person or a model can read: plain text, or the screen as it stands now.

Owns what escape sequences, carriage returns and backspaces mean for plain text, and which bytes the emulator must see.
It does not know where the bytes come from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handrail.terminal.engine import Engine

if TYPE_CHECKING:
    from handrail.terminal.tail import Tail

_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\|$)"  # OSC … BEL or ST: titles, links, clipboard
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\|$)"  # DCS, SOS, PM, APC … ST
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|\x1b\[[0-?]*[ -/]*$"  # CSI cut off by the end
    r"|\x1b[ -/]*[0-~]"  # two-character escapes
    r"|\x1b$"
)
_CONTROLS = re.compile(r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")


def plain(data: bytes) -> str:
    """The text as it would stand after the terminal showed it, line by line; bad UTF-8 is replaced."""
    text = _ESCAPES.sub("", data.decode("utf-8", errors="replace")).replace("\r\n", "\n")
    return "\n".join(_overwrite(line) for line in text.split("\n"))


def _overwrite(line: str) -> str:
    """A line after its carriage returns and backspaces: a progress bar keeps its last state."""
    line = line.rstrip("\r")
    if "\r" not in line and "\b" not in line:
        return _CONTROLS.sub("", line)
    cells: list[str] = []
    at = 0
    for char in line:
        if char == "\r":
            at = 0
        elif char == "\b":
            at = max(0, at - 1)
        elif not _CONTROLS.match(char):
            cells[at : at + 1] = [char]
            at += 1
    return "".join(cells)


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


def render(tail: Tail, cols: int, rows: int) -> Shown:
    """The screen as it stands now. Slow enough to be called in a thread."""
    engine = Engine(cols, rows)
    after = tail.first
    while True:
        data, after = tail.read(after)
        if not data:
            break
        engine.feed(data)
    cells = engine.cells()
    engine.close()
    return Shown(
        lines=cells.lines,
        cursor=cells.cursor,
        alternate=cells.alternate,
        application_keys=cells.application_keys,
        bracketed_paste=cells.bracketed_paste,
        title=cells.title,
    )
