"""`handrail rules test`: which rule decides a call, and everything that was considered."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.client import reach
from handrail.cli.command_help import add_command
from handrail.cli.exact import escape_line_breaks, exact_line
from handrail.cli.folder import workspace
from handrail.cli.render.approval_card import action_verb, part_remarks
from handrail.cli.render.formats import format_effect, format_risk, parse_json_object
from handrail.cli.render.output import Piece, print_json, print_table, say

if TYPE_CHECKING:
    from handrail.cli.wire import PartView, StepView, TestBody, TestView


def add_to(group: typer.Typer) -> None:
    add_command(
        group,
        "test",
        "handrail rules test 'git push -f'",
        "handrail rules test 'npm test && npm publish' --workspace ~/code/api --json",
        'handrail rules test --tool write_file --input \'{"path": "a.md", "content": ""}\'',
    )(explain_decision)


def explain_decision(
    command: Annotated[
        str | None, typer.Argument(metavar="COMMAND", help="A command line, as an agent would run it.")
    ] = None,
    tool: Annotated[str | None, typer.Option(help="Test this tool instead, with --input.")] = None,
    tool_input: Annotated[
        str | None, typer.Option("--input", metavar="JSON", help="Input of that tool.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--workspace", metavar="DIR", help="The agent's folder; default: the current project."),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Name of the client that makes the call.")] = None,
    as_json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show which rule decides a call, and why. Nothing runs, and no approval is created."""
    if (command is None) == (tool is None):
        raise typer.BadParameter("Give a command line, or --tool with --input.")
    if tool_input is not None and tool is None:
        raise typer.BadParameter("--input needs --tool.")
    here = workspace(folder)
    body: TestBody = {
        "command": command,
        "tool": tool,
        "input": parse_json_object(tool_input) or ({} if tool else None),
        "workspace": None if here is None else str(here),
        "agent": agent,
    }
    with reach("person") as link:
        decision = link.post("rules", "test", body=body)
    if as_json_:
        print_json(decision)
    else:
        _show_explanation(decision, here)


def _show_explanation(decision: TestView, here: Path | None) -> None:
    where = (
        f"in {here}, {'trusted' if decision['trusted'] else 'not trusted'}" if here else "without a workspace"
    )
    say(
        format_effect(decision["effect"]),
        f"  by {decision['rule']}   ",
        format_risk(decision["risk"]),
        exact_line(f" risk, {where}"),
    )
    say(escape_line_breaks(decision["why"]))
    if decision["reasons"]:
        say(("Risk: ", "dim"), escape_line_breaks(" · ".join(decision["reasons"])))
    say("")
    print_table(
        ("PART", "EFFECT", "BY", "WHAT"),
        [_part_cells(place, part) for place, part in enumerate(decision["parts"], 1)],
    )
    say("")
    print_table(
        ("", "RULE, IN ORDER", "EFFECT", "PARTS", "ABOUT"),
        [_step_cells(step) for step in decision["chain"]],
    )


def _part_cells(place: int, part: PartView) -> tuple[Piece, ...]:
    does = "" if part["action"] == "run" else f"{action_verb(part['action'])} "
    text = " · ".join([f"{does}{part['text']}", *part_remarks(part)])
    return str(place), format_effect(part["effect"]), part["rule"], text


def _step_cells(step: StepView) -> tuple[Piece, ...]:
    """Cells of a rule in the evaluation chain: dim if it did not match, marked if it decided."""
    style = "bold" if step["decides"] else "" if step["effect"] else "dim"
    places = ", ".join(str(place + 1) for place in step["parts"])
    decided = format_effect(step["effect"]) if step["effect"] else ("-", "dim")
    return (
        ("→", "bold") if step["decides"] else "",
        (step["name"], style),
        decided,
        places,
        (step["words"], style),
    )
