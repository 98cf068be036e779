"""`handrail approvals`: what waits for a person.

Owns the listing. How one is answered by a command is `approve`; how a person is asked live is `ask`.
"""

import sys
from typing import Annotated

import typer

from handrail.cli.help import verb
from handrail.cli.link import reach
from handrail.cli.show import Piece, as_json, note, table
from handrail.cli.words import Row, caller, elapsed, risk, state

AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]


def add_to(app: typer.Typer) -> None:
    verb(app, "approvals", "handrail approvals", "handrail approvals -f", "handrail approvals --json")(
        approvals
    )


def approvals(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Ask here for each one, as it comes; Ctrl-C ends it.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Also those that were answered.")] = False,
    as_json_: AsJson = False,
) -> None:
    """List what waits for you, or be asked here in the terminal."""
    if follow:
        _follow(as_json_)
        return
    with reach("read") as link:
        found: list[Row] = link.get("approvals", open=not every)
    if as_json_:
        as_json(found)
    elif found:
        table(("ID", "STATUS", "RISK", "WAITED", "CALLER", "TOOL", "TITLE"), [_cells(row) for row in found])
    else:
        note("Nothing waits for you.")


def _cells(row: Row) -> tuple[Piece, ...]:
    return (
        row["id"],
        state(row["status"]),
        risk(row["risk"]),
        elapsed(row["elapsed_ms"]),
        caller(row),
        row["tool"],
        row["title"],
    )


def _follow(for_programs: bool) -> None:
    from handrail.cli import ask  # noqa: PLC0415 - brings the live socket

    if for_programs or not (sys.stdin.isatty() and sys.stdout.isatty()):
        ask.stream(for_programs)
    else:
        ask.everything()
