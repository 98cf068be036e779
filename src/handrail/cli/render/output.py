"""The only writer to the terminal: lines, tables, and JSON for programs.

All text is escaped by `exact`, and styles come only from our own code, so that agent text cannot control the terminal.
The one exception is `raw_bytes`.
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
"""Width of output that is piped: enough to keep ids and titles on one line."""


def say(*pieces: Piece) -> None:
    """Print one or more lines to stdout."""
    _write(sys.stdout, pieces)


def note(*pieces: Piece) -> None:
    """Print a remark for people to stderr, so that programs that read stdout never see it."""
    _write(sys.stderr, pieces)


def write_text(words: str) -> None:
    """Write text to stdout with hidden characters escaped; adds no newline."""
    sys.stdout.write(exact_text(words))
    sys.stdout.flush()


def write_bytes(data: bytes) -> None:
    """Write bytes to stdout unescaped. Only for options that ask for raw output."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def print_json(value: Any, *, line: bool = False) -> None:
    """Print JSON in plain ASCII: indented, or one line of a stream."""
    text = json.dumps(value, separators=(",", ":")) if line else json.dumps(value, indent=2)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Piece]]) -> None:
    """Print a table of one-line cells. Only the last column wraps."""
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
    """Columns of stdout; PIPED_WIDTH if it is not a terminal."""
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
