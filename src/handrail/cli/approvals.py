"""Approvals on the command line: list, show in full, allow, deny.

Owns those commands. How one looks is `card`. An answer always carries the digest of what was shown here, so that nothing else can be allowed
by it. How a person is asked live is `ask`.
"""

import sys
from typing import Annotated

import typer

from handrail.cli.card import show_approval
from handrail.cli.help import verb
from handrail.cli.link import Link, reach
from handrail.cli.named import by_prefix
from handrail.cli.show import Piece, as_json, note, say, table
from handrail.cli.words import Row, caller, elapsed, risk, state

AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]
ApprovalId = Annotated[str, typer.Argument(metavar="ID", help="An approval's id, or its first letters.")]


def add_to(app: typer.Typer) -> None:
    verb(app, "approvals", "handrail approvals", "handrail approvals -f", "handrail approvals --json")(
        approvals
    )
    verb(app, "approve", "handrail approve a81")(approve)
    verb(app, "deny", "handrail deny a81", "handrail deny a81 -m 'Use the staging database.'")(deny)


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


def approve(approval: ApprovalId, as_json_: AsJson = False) -> None:
    """Allow one call, once: exactly what is shown, and nothing else."""
    _answer(approval, "allow", "", as_json_)


def deny(
    approval: ApprovalId,
    reason: Annotated[str, typer.Option("-m", "--reason", help="What the agent is told.")] = "",
    as_json_: AsJson = False,
) -> None:
    """Deny one call. The reason reaches the agent as text; other calls are not touched."""
    _answer(approval, "deny", reason, as_json_)


def answer(link: Link, asked: Row, kind: str, reason: str) -> Row:
    """Answer what was seen. Raises Failure when somebody was first, or what was seen is out of date."""
    body = {"answer": kind, "digest": asked["digest"], "reason": reason}
    return link.post("approvals", asked["id"], "answer", body=body)


def _answer(typed: str, kind: str, reason: str, for_programs: bool) -> None:
    with reach("person") as link:
        asked: Row = link.get("approvals", _open_first(link, typed))
        if not for_programs and asked["status"] == "open":
            show_approval(asked)
        answered = answer(link, asked, kind, reason)
    if for_programs:
        as_json(answered)
    else:
        word, style = state(answered["status"])
        say((word, style), f" {answered['id']}", f": {reason}" if reason else "")


def _open_first(link: Link, typed: str) -> str:
    """Which question is meant: an open one before an older one that begins alike."""
    still_open = [row["id"] for row in link.get("approvals", open=True) if row["id"].startswith(typed)]
    return by_prefix(typed, still_open or [row["id"] for row in link.get("approvals")], "approval")


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
