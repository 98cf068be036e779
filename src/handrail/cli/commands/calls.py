"""`handrail calls`, `cancel` and `complete`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from handrail.cli.client import Link, follow_status, reach
from handrail.cli.command_help import add_command
from handrail.cli.exact import escape_line_breaks
from handrail.cli.failure import Failure
from handrail.cli.render.approval_card import show_approval
from handrail.cli.render.formats import (
    find_by_prefix,
    format_caller,
    format_outcome,
    format_ran,
    format_time_of_day,
    format_waited,
)
from handrail.cli.render.output import Piece, note, print_json, print_table, say, width

if TYPE_CHECKING:
    from handrail.cli.wire import CallView, CompleteBody, Forced

ID_LENGTH = 11
"""Length of a full id; anything shorter is a prefix."""

Status = Literal["waiting", "running", "done", "failed", "denied", "cancelled", "completed", "interrupted"]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
CallId = Annotated[str, typer.Argument(metavar="CALL", help="Id of a call, or its first letters.")]


def add_to(app: typer.Typer) -> None:
    add_command(
        app,
        "calls",
        "handrail calls",
        "handrail calls -f",
        "handrail calls --status running --json",
        "handrail calls -q 'pytest status:failed -tool:read_file since:2d'",
    )(calls)
    add_command(app, "cancel", "handrail cancel c3f")(cancel)
    add_command(
        app,
        "complete",
        "handrail complete c3f",
        "handrail complete c3f --stop",
        "handrail complete c3f --text 'The server is up on port 8000.'",
    )(complete)


def calls(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing changes until Ctrl-C.")
    ] = False,
    status: Annotated[Status | None, typer.Option(help="Only calls with this status.")] = None,
    tool: Annotated[str | None, typer.Option(help="Only calls of this tool.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only calls by this client.")] = None,
    q: Annotated[
        str | None,
        typer.Option("--query", "-q", help='Search, as on the page: words, key:value, -not, "a phrase".'),
    ] = None,
    unasked: Annotated[bool, typer.Option("--unasked", help="Only what agents did without asking.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of calls.")] = 50,
    as_json_: AsJson = False,
) -> None:
    """List calls, newest first, or follow them with -f."""
    if follow:
        if status or tool or agent or q or unasked:
            raise typer.BadParameter("-f shows every call; give no filters with it.")
        _follow(as_json_)
        return
    with reach("read") as link:
        rows = link.get(
            "calls", status=status, tool=tool, agent=agent, q=q, unasked=unasked or None, limit=limit
        )
    if as_json_:
        print_json(rows)
    elif rows:
        _print_table(rows)
    elif status or tool or agent or q or unasked:
        note("No call matches. `handrail calls` lists all of them.")
    else:
        note("No calls. Connect an agent (`handrail mcp --help` shows how), or try `handrail demo`.")


def cancel(call: CallId, as_json_: AsJson = False) -> None:
    """Stop a call. The agent gets the output so far."""
    with reach("person") as link:
        _show_result(link.post("calls", _find_call(link, call), "cancel"), as_json_)


def complete(
    call: CallId,
    stop: Annotated[bool, typer.Option("--stop", help="Also stop the work.")] = False,
    text: Annotated[str | None, typer.Option(help="Return this text instead of the output.")] = None,
    as_json_: AsJson = False,
) -> None:
    """Return the output so far to the agent; the work continues. A write that waits for approval is accepted."""
    with reach("person") as link:
        call_id = _find_call(link, call)
        detail = link.get("calls", call_id)
        body: CompleteBody = {"stop": stop, "text": text}
        completion, approval_id = detail["completion"], detail["approval_id"]
        if text is None and completion and completion["does"] == "accept_diff" and approval_id:
            approval = link.get("approvals", approval_id)
            body["digest"] = approval["digest"]
            if not as_json_:
                show_approval(approval)
        _show_result(link.post("calls", call_id, "complete", body=body), as_json_)


def _follow(for_programs: bool) -> None:
    """Print a line for each open call, then for each change of status."""
    follow_status("call", _print, for_programs)


def _print(row: CallView) -> None:
    word, style = format_outcome(row)
    why = row["message"].partition("\n")[0] if row["status"] in ("failed", "denied") else ""
    at = format_time_of_day(row["ended_at"] or row["ran_at"] or row["started_at"])
    where = f"{at}  {row['id']}  {_format_times(row)}{format_caller(row)}  {_tool_name(row)}  "
    say(
        (f"{word:<13}", style),
        f"  {where}",
        (escape_line_breaks(row["title"]), "bold"),
        f"  {escape_line_breaks(why)}",
    )


def _format_times(row: CallView) -> str:
    parts = (("ran", format_ran(row)), ("waited", format_waited(row)))
    return "".join(f"{verb} {text}  " for verb, text in parts if text)


NARROW, MEDIUM = 100, 120
"""Columns of the terminal below which the table leaves out the caller, and the tool: the title needs room."""


def _print_table(rows: list[CallView]) -> None:
    columns = width()
    names = ["AT", "ID", "STATUS", "RAN", "WAITED"]
    names += ["CALLER"] if columns >= NARROW else []
    names += ["TOOL"] if columns >= MEDIUM else []
    names.append("TITLE")
    cells = [_cells(row, times) for row, times in _fold_polls(rows)]
    print_table(names, [[row[name] for name in names] for row in cells])


_POLLS = frozenset({"wait_for_call", "get_call", "list_calls"})
"""Tools with which an agent asks for calls that it made before."""


def _fold_polls(rows: list[CallView]) -> list[tuple[CallView, int]]:
    """The calls, newest first, with polls of one client in a row as one, and how many it stands for."""
    folded: list[tuple[CallView, int]] = []
    for row in rows:
        last, times = folded[-1] if folded else (row, 0)
        if times and _is_poll(row) and _is_poll(last) and row["caller"]["key"] == last["caller"]["key"]:
            folded[-1] = (last, times + 1)
        else:
            folded.append((row, 1))
    return folded


def _is_poll(row: CallView) -> bool:
    return row["tool"] in _POLLS and row["status"] == "done"


def _tool_name(row: CallView) -> str:
    """The tool. Work that a client or an agent does itself goes by internal names."""
    own = {"client_work": "its own tool", "agent_work": "its own tool", "agent_form": "form"}
    return own.get(row["tool"], row["tool"])


def _cells(row: CallView, times: int) -> dict[str, Piece]:
    more = f"  and {times - 1} more like it" if times > 1 else ""
    return {
        "AT": format_time_of_day(row["started_at"]),
        "ID": row["id"],
        "STATUS": format_outcome(row),
        "RAN": format_ran(row),
        "WAITED": format_waited(row),
        "CALLER": format_caller(row),
        "TOOL": _tool_name(row),
        "TITLE": row["title"] + _decision_note(row) + more,
    }


def _decision_note(row: CallView) -> str:
    """The id to look up: of the open approval, or of the person's rule that allowed the call."""
    if row["status"] == "waiting":
        return f"  (approval {row['approval_id']})"
    if row["allowed_by"] == "nobody":
        return "  (unasked)"
    return f"  ({row['allowed_by']})" if re.fullmatch(r"rule r[0-9a-f]{10}", row["allowed_by"] or "") else ""


def _find_call(link: Link, typed: str) -> str:
    """Find a call by id or prefix; open calls take precedence. Raises Failure."""
    if len(typed) >= ID_LENGTH:
        return typed
    still_open = [row["id"] for row in link.get("state")["calls"] if row["id"].startswith(typed)]
    return find_by_prefix(typed, still_open or [row["id"] for row in link.get("calls", limit=1000)], "call")


def _show_result(result: Forced, for_programs: bool) -> None:
    if for_programs:
        print_json(result)
    elif result["won"]:
        row = result["call"]
        say(f"{result['message']} {row['id']} ", (escape_line_breaks(row["title"]), "bold"))
        if row["message"]:
            say(f"The agent is told: {row['message']}")
    if not result["won"]:
        raise Failure(f"{result['message']} Nothing was changed.")
