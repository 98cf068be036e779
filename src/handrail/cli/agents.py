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
from handrail.places import Places

AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]


def add_to(app: typer.Typer) -> None:
    verb(app, "agents", "handrail agents", "handrail agents --json")(agents)
    verb(
        app,
        "agent",
        "handrail agent",
        "acpx --agent 'handrail agent' exec 'What does this project do?'",
        '{"agent_servers": {"Handrail": {"type": "custom", "command": "handrail", "args": ["agent"]}}}   (Zed)',
    )(agent)


def agents(as_json_: AsJson = False) -> None:
    """List the agents that can be talked to, and how to install those that are missing."""
    with reach("person") as link:
        found: list[Row] = link.get("agents")
    if as_json_:
        as_json(found)
        return
    here, missing = [row for row in found if row["found"]], [row for row in found if not row["found"]]
    lacking = _lacking(here)
    rows = [_cells(row, lacks=row in lacking) for row in here]
    table(("NAME", "STATE", "VERSION", "FROM", "COMMAND"), rows)
    if missing:
        say("")
        note(("Not found here:", "dim"))
        table(("NAME", "WHAT IS MISSING", "TO INSTALL IT"), [_missing(row) for row in missing])
    say("")
    for row in lacking:
        note((f"{exact_line(row['name'])}: {exact_line(row['why'])}", "yellow"))
    ready = next((row["name"] for row in here if row not in lacking), "NAME")
    note((f"handrail chat --agent {exact_line(ready)}", "bold"), " begins to talk.")


def agent() -> NoReturn:
    """Our own agent as an ACP program on stdin and stdout: what an editor launches. To talk here: handrail chat."""
    os.execv(sys.executable, [sys.executable, "-P", "-m", "handrail", "agent"])


def _lacking(here: list[Row]) -> list[Row]:
    """Our own agent, where it has no key: not in the daemon's environment, as that says, and not in ours."""
    from handrail.doctor.own_agent import sources  # noqa: PLC0415 - brings the settings and the keyring

    found = [row for row in here if row["why"]]
    return [] if found and any(sources(Places.find(os.environ), os.environ).values()) else found


def _cells(row: Row, *, lacks: bool) -> tuple[Piece, ...]:
    state: Piece = ("! no key", "yellow") if lacks else ("✓ found", "green")
    if row["running"]:
        state = ("◐ running", "blue")
    return row["name"], state, row["version"] or "", row["source"], " ".join(row["command"])


def _missing(row: Row) -> tuple[Piece, ...]:
    return row["name"], row["why"], row["install"] or ""
