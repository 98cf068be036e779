"""`handrail clients`: the connected clients that run now."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.client import reach
from handrail.cli.command_help import add_command
from handrail.cli.render.formats import format_clock
from handrail.cli.render.output import Piece, note, print_json, print_table

if TYPE_CHECKING:
    from handrail.cli.wire import ClientView

_STATES = {
    "working": ("◐ working", "blue"),
    "needs_you": ("● needs you", "yellow"),
    "idle": ("✓ idle", "dim"),
}


def add_to(app: typer.Typer) -> None:
    add_command(app, "clients", "handrail clients", "handrail clients --json")(clients)


def clients(
    as_json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List connected clients that run now."""
    with reach("read") as link:
        rows = link.get("clients")
    if as_json_:
        print_json(rows)
    elif rows:
        head = ("CLIENT", "STATE", "FOR", "FOLDER", "TERMINAL", "SESSION", "TOOL")
        print_table(head, [_cells(row) for row in rows])
    else:
        note("No connected client runs now.")


def _cells(row: ClientView) -> tuple[Piece, ...]:
    elapsed = format_clock(max(0, time.time() - row["since"] / 1000))
    terminal = row["terminal_id"] or row["tty"]
    return row["title"], _STATES[row["state"]], elapsed, row["folder"], terminal, row["session"], row["tool"]
