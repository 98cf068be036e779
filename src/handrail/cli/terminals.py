"""`handrail terminals`: every terminal, whoever's it is.

Owns the listing, and how a terminal is named by people: by its id, the id's first letters, or its own name.
"""

import time
from typing import Annotated

import typer

from handrail.cli.help import verb
from handrail.cli.link import Link, reach
from handrail.cli.named import by_prefix
from handrail.cli.show import Piece, as_json, note, table
from handrail.cli.words import Row, elapsed

MOST = 1000
"""Terminals in one listing; older ones are found through their calls."""

AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]


def add_to(app: typer.Typer) -> None:
    verb(
        app, "terminals", "handrail terminals", "handrail terminals --all", "handrail terminals --all --json"
    )(terminals)


def terminals(
    every: Annotated[bool, typer.Option("--all", help="Also those that have ended.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="At most so many.")] = 200,
    as_json_: AsJson = False,
) -> None:
    """List the terminals that run, newest first."""
    with reach("read") as link:
        found: list[Row] = link.get("terminals", running=str(not every).lower(), limit=limit)
    if as_json_:
        as_json(found)
    elif found:
        table(("ID", "STATE", "SINCE", "OF", "NAME", "PID", "CWD"), [_cells(row) for row in found])
    elif every:
        note("No terminals. `handrail shell` opens one.")
    else:
        note(
            "No terminal runs. `handrail shell` opens one; `handrail terminals --all` also lists ended ones."
        )


def which(link: Link, typed: str) -> str:
    """The id of the terminal that is meant: a running one before one that has ended."""
    running: list[Row] = link.get("terminals", running="true", limit=MOST)
    if any(_may_mean(row, typed) for row in running):
        return _one(typed, running)
    return _one(typed, link.get("terminals", limit=MOST))


def _one(typed: str, rows: list[Row]) -> str:
    ids = [row["id"] for row in rows]
    named = [row["id"] for row in rows if row["name"] == typed]
    if len(named) == 1 and not any(each.startswith(typed) for each in ids):
        return named[0]
    return by_prefix(typed, ids, "terminal")


def _may_mean(row: Row, typed: str) -> bool:
    return row["id"].startswith(typed) or row["name"] == typed


def _cells(row: Row) -> tuple[Piece, ...]:
    since = elapsed(max(0, int(time.time() * 1000) - (row["ended_at"] or row["started_at"])))
    return row["id"], state(row), since, _whose(row), row["name"], str(row["pid"]), row["cwd"]


def state(row: Row) -> Piece:
    """What it does, or how it ended."""
    if not row["running"]:
        return _ended(row)
    if row["asks"]:
        return ("● asks for a secret" if row["asks"]["secret"] else "● asks", "yellow")
    if row["taken"]:
        return "◐ taken over", "yellow"
    return (f"◐ {row['foreground'] or 'busy'}", "blue") if row["busy"] else ("◐ running", "blue")


def _ended(row: Row) -> Piece:
    if row["signal"]:
        return f"✗ {row['signal']}", "red"
    if row["exit_code"] is None:
        return "◌ lost", "magenta"
    return ("✓ exit 0", "green") if row["exit_code"] == 0 else (f"✗ exit {row['exit_code']}", "red")


def _whose(row: Row) -> str:
    """`shell`, or `command of claude`."""
    owner = row["owner"]
    return row["of"] if owner is None or owner["person"] else f"{row['of']} of {owner['name']}"
