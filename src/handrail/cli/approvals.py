"""Approvals on the command line: list, show in full, allow, deny.

Owns those commands. An answer always carries the digest of what was shown here, so that nothing else can be allowed
by it. How a person is asked live is `ask`.
"""

import sys
from typing import Annotated

import typer

from handrail.cli.exact import warning
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
        table(("ID", "STATUS", "RISK", "ASKED", "CALLER", "TOOL", "TITLE"), [_cells(row) for row in found])
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


def show_approval(asked: Row) -> None:
    """All a person needs to decide, from what will run and not from what the agent says of it."""
    word, style = risk(asked["risk"])
    say((f"{asked['tool']}", "bold"), " · ", (word, style), f" · {caller(asked)} · {asked['id']}")
    if asked["reasons"]:
        say((f"Why {word.lower()}: ", style), " · ".join(asked["reasons"]))
    say("Why you are asked: ", asked["why"])
    preview: Row = asked["preview"] or {"kind": "input"}
    shown = _SHOWN[preview["kind"]](asked, preview)
    for line in shown:
        say(*line)
    hidden = warning("".join(text for line in shown for text in map(_text, line)))
    if hidden:
        say((f"⚠ {hidden}", "bold red"))


def _command(_asked: Row, preview: Row) -> list[list[Piece]]:
    names = preview["environment"]
    added: list[list[Piece]] = [[f"  with {', '.join(names)} set"]] if names else []
    return [[("\n" + _indented(preview["command"]) + "\n", "bold")], [f"  in {preview['cwd']}"], *added]


def _diff(_asked: Row, preview: Row) -> list[list[Piece]]:
    does = "creates" if preview["creates"] else "changes"
    head = f"{does} {preview['path']}  +{preview['added']} \N{MINUS SIGN}{preview['removed']}"
    notes: list[list[Piece]] = [[(f"  {note}", "yellow")] for note in preview["notes"]]
    return [
        [(head, "bold")],
        *([_coloured(line)] for line in preview["diff"].removesuffix("\n").split("\n")),
        *notes,
    ]


def _path(_asked: Row, preview: Row) -> list[list[Piece]]:
    return [[("  " + preview["path"], "bold")]]


def _input(asked: Row, _preview: Row) -> list[list[Piece]]:
    return [[f"  {name}: ", (str(value), "bold")] for name, value in asked["input"].items()]


_SHOWN = {"command": _command, "diff": _diff, "path": _path, "input": _input}


def _coloured(line: str) -> Piece:
    return "  " + line, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


def _text(piece: Piece) -> str:
    return piece if isinstance(piece, str) else piece[0]


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
