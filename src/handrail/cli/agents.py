"""`handrail agents`: which agents there are, and the command that installs the others; `handrail agent`: our own.

Finding them is the daemon's; how our own works is its own.
"""

import os
import sys
from typing import Annotated, NoReturn

import typer

from handrail.cli.exact import exact_line
from handrail.cli.help import verb
from handrail.cli.link import reach
from handrail.cli.show import Piece, as_json, note, say, table
from handrail.cli.words import Row

AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]


def add_to(app: typer.Typer) -> None:
    verb(app, "agents", "handrail agents", "handrail agents --json")(agents)
    verb(
        app,
        "agent",
        "handrail agent",
        "acpx --agent 'handrail agent' exec 'What does this project do?'",
        '{"agent_servers": {"Handrail": {"command": "handrail", "args": ["agent"]}}}      (Zed\'s settings)',
    )(agent)


def agents(as_json_: AsJson = False) -> None:
    """List the agents that can be talked to, and how to install those that are missing."""
    with reach("person") as link:
        found: list[Row] = link.get("agents")
    if as_json_:
        as_json(found)
        return
    here = [row for row in found if row["found"]]
    table(("NAME", "STATE", "VERSION", "FROM", "COMMAND"), [_cells(row) for row in here])
    missing = [row for row in found if not row["found"]]
    if missing:
        say("")
        note(("Not found here:", "dim"))
        table(("NAME", "WHAT IS MISSING", "TO INSTALL IT"), [_missing(row) for row in missing])
    say("")
    note(
        (f"handrail chat --agent {exact_line(here[0]['name']) if here else 'NAME'}", "bold"),
        " begins to talk.",
    )


def agent() -> NoReturn:
    """Our own agent as an ACP program on stdin and stdout: what an editor launches. To talk here: handrail chat."""
    os.execv(sys.executable, [sys.executable, "-P", "-m", "handrail", "agent"])


def _cells(row: Row) -> tuple[Piece, ...]:
    running: Piece = ("◐ running", "blue") if row["running"] else ("✓ found", "green")
    return row["name"], running, row["version"] or "", row["source"], " ".join(row["command"])


def _missing(row: Row) -> tuple[Piece, ...]:
    return row["name"], row["why"], row["install"] or ""
