"""`handrail rules test`: what would be decided about a call that nobody makes, by which rule, and why.

Owns the command and how the chain of a decision is shown. The decision is the daemon's own.
"""

from pathlib import Path
from typing import Annotated

import typer

from handrail.cli.exact import exact_line, flat
from handrail.cli.folder import workspace
from handrail.cli.help import verb as add_verb
from handrail.cli.link import reach
from handrail.cli.parts import action_verb, remarks
from handrail.cli.show import Piece, as_json, say, table
from handrail.cli.values import json_object
from handrail.cli.words import Row, effect, risk


def add_to(group: typer.Typer) -> None:
    add_verb(
        group,
        "test",
        "handrail rules test 'git push -f'",
        "handrail rules test 'npm test && npm publish' --workspace ~/code/api --json",
        'handrail rules test --tool write_file --input \'{"path": "a.md", "content": ""}\'',
    )(explain)


def explain(
    command: Annotated[
        str | None, typer.Argument(metavar="COMMAND", help="A command line, as an agent would run it.")
    ] = None,
    tool: Annotated[str | None, typer.Option(help="Another tool, with --input.")] = None,
    given: Annotated[
        str | None, typer.Option("--input", metavar="JSON", help="What that tool is given.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--workspace", metavar="DIR", help="The agent's folder; the current project unless given."
        ),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="The name of the client that would ask.")] = None,
    as_json_: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Say which rule decides about a call, and why. Nothing is run and nobody is asked."""
    if (command is None) == (tool is None):
        raise typer.BadParameter("Give a command line, or --tool with --input.")
    if given is not None and tool is None:
        raise typer.BadParameter("--input is what a tool is given: name it with --tool.")
    here = workspace(folder)
    body: Row = {
        "command": command,
        "tool": tool,
        "input": json_object(given) or ({} if tool else None),
        "workspace": None if here is None else str(here),
        "agent": agent,
    }
    with reach("person") as link:
        told: Row = link.post("rules", "test", body=body)
    if as_json_:
        as_json(told)
    else:
        _show(told, here)


def _show(told: Row, here: Path | None) -> None:
    where = f"in {here}, {'trusted' if told['trusted'] else 'not trusted'}" if here else "without a workspace"
    say(effect(told["effect"]), f"  by {told['rule']}   ", risk(told["risk"]), exact_line(f" risk, {where}"))
    say(flat(told["why"]))
    if told["reasons"]:
        say(("Risk: ", "dim"), flat(" · ".join(told["reasons"])))
    say("")
    table(
        ("PART", "EFFECT", "BY", "WHAT"), [_part(place, part) for place, part in enumerate(told["parts"], 1)]
    )
    say("")
    table(("", "LOOKED AT, IN ORDER", "EFFECT", "PARTS", "ABOUT"), [_step(step) for step in told["chain"]])


def _part(place: int, part: Row) -> tuple[Piece, ...]:
    does = "" if part["action"] == "run" else f"{action_verb(part['action'])} "
    told = " · ".join([f"{does}{part['text']}", *remarks(part)])
    return str(place), effect(part["effect"]), part["rule"], told


def _step(step: Row) -> tuple[Piece, ...]:
    """Dim where it applies to nothing; marked where it decided."""
    style = "bold" if step["decides"] else "" if step["effect"] else "dim"
    places = ", ".join(str(place + 1) for place in step["parts"])
    decided = effect(step["effect"]) if step["effect"] else ("-", "dim")
    return (
        ("→", "bold") if step["decides"] else "",
        (step["name"], style),
        decided,
        places,
        (step["words"], style),
    )
