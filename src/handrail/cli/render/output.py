"""The only writer to the terminal: lines, tables, and JSON for programs.

Owns that nothing reaches the terminal unescaped: every piece of text passes `exact`, styles come from us alone.
The one exception is `raw_bytes`.
Does not know what is shown.
"""

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from handrail.cli.exact import exact_line, exact_text

Piece = str | tuple[str, str]
"""Text, or text with a style."""

PIPED_WIDTH = 200
"""Columns where there is no terminal: enough that ids and titles stay on one line."""


def say(*pieces: Piece) -> None:
    """One line or more on stdout."""
    _write(sys.stdout, pieces)


def note(*pieces: Piece) -> None:
    """A remark for people, on stderr: a program that reads stdout never meets it."""
    _write(sys.stderr, pieces)


def text(words: str) -> None:
    """Somebody's text on stdout as it is, but for what could drive the terminal: no newline is added."""
    sys.stdout.write(exact_text(words))
    sys.stdout.flush()


def raw_bytes(data: bytes) -> None:
    """Bytes on stdout, unchanged: only where a person asked for exactly that."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def as_json(value: Any, *, line: bool = False) -> None:
    """For programs: indented, or one line of a stream. Plain ASCII, whatever an agent wrote."""
    text = json.dumps(value, separators=(",", ":")) if line else json.dumps(value, indent=2)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def table(columns: Sequence[str], rows: Iterable[Sequence[Piece]]) -> None:
    """A table of one-line cells; the last column folds where the terminal ends, the others never."""
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    grid = Table(box=None, pad_edge=False, header_style="dim", show_edge=False)
    for name in columns[:-1]:
        grid.add_column(name, no_wrap=True)
    grid.add_column(columns[-1], overflow="fold")
    for row in rows:
        grid.add_row(*(Text(exact_line(text), style) for text, style in map(_pair, row)))
    _console(sys.stdout).print(grid)


def width() -> int:
    """Columns of what stdout is."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPED_WIDTH


def _write(stream: Any, pieces: Iterable[Piece]) -> None:
    pairs = [(exact_text(text), style) for text, style in map(_pair, pieces)]
    if stream.isatty():
        from rich.text import Text  # noqa: PLC0415

        _console(stream).print(Text.assemble(*pairs), soft_wrap=True)
    else:
        stream.write("".join(text for text, _ in pairs) + "\n")
        stream.flush()


def _pair(piece: Piece) -> tuple[str, str]:
    return (piece, "") if isinstance(piece, str) else piece


def _console(stream: Any) -> Any:
    from rich.console import Console  # noqa: PLC0415

    width = None if stream.isatty() else PIPED_WIDTH
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)
