"""Terminal bytes into what a person or a model can read: plain text, or the screen as it stands now.

Owns what escape sequences, carriage returns and backspaces mean for plain text, and which bytes the emulator must see.
It does not know where the bytes come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from handrail.terminal.engine import Engine
from handrail.terminal.text import plain

if TYPE_CHECKING:
    from handrail.terminal.tail import Tail

__all__ = ["Shown", "plain", "render"]


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
