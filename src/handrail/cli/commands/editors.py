"""`handrail editors`: the editors that run, and which of them may decide."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.client import reach
from handrail.cli.command_help import add_command, plain_app
from handrail.cli.exact import escape_line_breaks
from handrail.cli.failure import Failure
from handrail.cli.interactive.keyboard import confirm
from handrail.cli.render.formats import find_by_prefix
from handrail.cli.render.output import Piece, note, print_json, print_table, say

if TYPE_CHECKING:
    from handrail.cli.wire import EditorView

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
EditorId = Annotated[str, typer.Argument(metavar="ID", help="Id of an editor, or its first letters.")]

_STATES = {
    "waiting": ("● asks to be paired", "yellow"),
    "paired": ("✓ decides", "green"),
    "refused": ("⊘ only watches", "dim"),
}


def add_to(app: typer.Typer) -> None:
    group = plain_app(
        invoke_without_command=True,
        epilog="handrail editors\nhandrail editors pair e3f\nhandrail editors refuse e3f",
    )
    group.callback()(editors)
    add_command(group, "pair", "handrail editors pair e3f")(pair)
    add_command(group, "refuse", "handrail editors refuse e3f")(refuse)
    app.add_typer(group, name="editors")


def editors(context: typer.Context, as_json_: AsJson = False) -> None:
    """List running editors, and pair the one asking."""
    if context.invoked_subcommand is not None:
        return
    with reach("read") as link:
        rows = link.get("editors")
    if as_json_:
        print_json(rows)
    elif rows:
        print_table(("ID", "STATE", "NUMBER", "STARTED", "PROGRAM", "FOLDER"), [_cells(row) for row in rows])
    else:
        note("No editor is connected. `handrail connect vscode` installs the extension.")


def pair(
    id: EditorId,
    number: Annotated[
        int | None, typer.Option(help="The number that the editor shows: do not ask for confirmation.")
    ] = None,
) -> None:
    """Let an editor that shows this number decide as you do.

    It may do so for as long as it runs.
    """
    with reach("person") as link:
        row = _find(id, link.get("editors"))
        if number is None:
            _compare(row)
        link.post("editors", row["id"], "pair", body={"number": number or row["number"]})
    say(("✓ paired", "green"), f"  {_describe(row)}")


def refuse(id: EditorId) -> None:
    """Let an editor only watch. Also takes a pairing back."""
    with reach("person") as link:
        row = _find(id, link.get("editors"))
        link.post("editors", row["id"], "refuse")
    say(f"Editor {row['id']} only watches.")


def _find(id: str, rows: list[EditorView]) -> EditorView:
    editor = find_by_prefix(id, (row["id"] for row in rows), "editor")
    return next(row for row in rows if row["id"] == editor)


def _compare(row: EditorView) -> None:
    """Show the editor and its number. Raises Failure if the person does not see the same number there."""
    say(_describe(row))
    say(escape_line_breaks(f"  {row['command']}"))
    say(f"  started {_format_time(row['started_at'])}, folder {row['workspace'] or 'unknown'}")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure("Nothing was paired: add --number with the number that the editor shows.")
    if not confirm(f"Does the editor's window show {row['number']}?"):
        raise Failure("Nothing was paired. `handrail editors refuse ID` ends the question.")


def _describe(row: EditorView) -> str:
    return escape_line_breaks(f"{row['program']} (process {row['pid']})")


def _cells(row: EditorView) -> tuple[Piece, ...]:
    number = "" if row["state"] == "paired" else str(row["number"])
    program = escape_line_breaks(row["program"])
    started = _format_time(row["started_at"])
    return row["id"], _STATES[row["state"]], number, started, program, escape_line_breaks(row["workspace"])


def _format_time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
