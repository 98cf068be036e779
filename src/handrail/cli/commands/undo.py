"""`handrail undo`: preview and restore the files changed by a call, an operation or a thread.

The daemon decides which files can be restored without losing later changes. The request carries the digest of the preview;
if the files have changed since, the daemon refuses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.client import Link, reach
from handrail.cli.command_help import add_command
from handrail.cli.exact import escape_line_breaks
from handrail.cli.failure import Failure
from handrail.cli.interactive.keyboard import confirm
from handrail.cli.render.approval_card import diff_lines
from handrail.cli.render.formats import find_by_prefix, format_count
from handrail.cli.render.output import Piece, print_json, say

if TYPE_CHECKING:
    from handrail.cli.wire import UndoFile, UndoView

ID_LENGTH = 11
"""Length of a full id; anything shorter is a prefix."""
_DOES = {
    "restore": ("restore", "restored", "cyan"),
    "recreate": ("bring back", "brought back", "cyan"),
    "remove": ("remove", "removed", "yellow"),
    "nothing": ("as it was", "as it was", "dim"),
    "refuse": ("leave alone", "left alone", "red"),
}
_ACTS = ("restore", "recreate", "remove")


def add_to(app: typer.Typer) -> None:
    add_command(
        app,
        "undo",
        "handrail undo c3f --dry-run",
        "handrail undo c3f",
        "handrail undo u9a1c04e77b",
        "handrail undo c3f --dry-run --json",
    )(undo)


def undo(
    what: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="Id of a call (or its first letters), operation, thread or earlier undo."
        ),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the changes without making them.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Restore the files changed by a call, operation or thread. The id of an earlier undo reverts that undo."""
    with reach("person") as link:
        plan = link.get("undo", _complete_id(link, what))
        if dry_run or not as_json_:
            _show_plan(plan, as_json_)
        if dry_run:
            return
        done = _run_undo(link, plan, asks=not (yes or as_json_))
    _show_result(done, as_json_)


def _run_undo(link: Link, plan: UndoView, *, asks: bool) -> UndoView:
    acting = [file for file in plan["files"] if file["does"] in _ACTS]
    if not plan["files"]:
        raise Failure("Nothing was undone: no file was changed by it through Handrail's own tools.")
    if asks and acting and not confirm(f"Undo {format_count(len(acting), 'file')}?"):
        raise Failure("Nothing was changed.")
    return link.post("undo", plan["what"], body={"digest": plan["digest"]})


def _show_plan(plan: UndoView, for_programs: bool) -> None:
    if for_programs:
        print_json(plan)
        return
    say(f"Undo of the {plan['of']} {plan['what']}  ", (escape_line_breaks(plan["title"]), "bold"))
    for file in plan["files"]:
        say("")
        say(*_file_line(file, 0))
        for line in diff_lines(file["diff"]) if file["diff"] else ():
            say(*line)
    _show_not_covered(plan)


def _show_not_covered(plan: UndoView) -> None:
    if plan["not_covered"]:
        say("")
        say(("Not covered:", "yellow"))
        for line in plan["not_covered"]:
            say(escape_line_breaks(f"  {line}"))


def _show_result(result: UndoView, for_programs: bool) -> None:
    """Print the result for each file. Raises Failure if a file was left alone."""
    refused = [file for file in result["files"] if file["does"] == "refuse"]
    if for_programs:
        print_json(result)
    else:
        say("")
        for file in result["files"]:
            say(*_file_line(file, 1))
        if result["undo"]:
            say(f"`handrail undo {result['undo']}` takes this back.")
    if refused:
        rest = "nothing was undone" if result["undo"] is None else "the rest was undone"
        raise Failure(
            f"{format_count(len(refused), 'file')} left alone; {rest}. `--dry-run` says why, and shows what is in the way."
        )


def _file_line(file: UndoFile, tense: int) -> list[Piece]:
    *words, style = _DOES.get(file["does"], (file["does"], file["does"], ""))
    counted = f"  +{file['added']} \N{MINUS SIGN}{file['removed']}" if file["diff"] else ""
    return [(words[tense], style), escape_line_breaks(f"  {file['path']}{counted}  {file['says']}")]


def _complete_id(link: Link, typed: str) -> str:
    """Complete the prefix of a call id; pass any other text on to the daemon."""
    if len(typed) >= ID_LENGTH or not typed:
        return typed or "?"
    ids = [row["id"] for row in link.get("calls", limit=1000) if row["id"].startswith(typed)]
    return find_by_prefix(typed, ids, "call") if ids else typed
