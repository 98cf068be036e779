"""`handrail approve` and `handrail deny`: one question, answered by one command.

Owns their options, and what they show before they answer: the answer carries the digest of just that. What becomes of
it is the daemon's.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from handrail.cli.answer import Answer, Edit, Scope, beyond, patterned, send, still_asks, suggested, weigh
from handrail.cli.card import show_approval, show_edit
from handrail.cli.exact import exact_line, flat
from handrail.cli.help import verb
from handrail.cli.link import Link, reach
from handrail.cli.named import by_prefix
from handrail.cli.rule_words import made
from handrail.cli.show import as_json, note, say
from handrail.cli.values import content, json_object, seconds
from handrail.cli.words import Row, state

AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]
ApprovalId = Annotated[str, typer.Argument(metavar="ID", help="An approval's id, or its first letters.")]

_NOT_HERE = "It holds in every trusted folder. This one is not trusted, so here it goes on asking."


def add_to(app: typer.Typer) -> None:
    verb(
        app,
        "approve",
        "handrail approve a81",
        "handrail approve a81 --session",
        "handrail approve a81 --always --expires 7d",
        "handrail approve a81 --always --pattern 'npm run test:*' --scope user",
        'handrail approve a81 --input \'{"command": "git push --dry-run"}\'',
        "handrail approve a81 --content notes.md",
    )(approve)
    verb(app, "deny", "handrail deny a81", "handrail deny a81 -m 'Use the staging database.'")(deny)


def approve(
    approval: ApprovalId,
    session: Annotated[
        bool, typer.Option("--session", help="And the like of it, from this client, until Handrail restarts.")
    ] = False,
    always: Annotated[
        bool,
        typer.Option("--always", help="And make a rule of it; --pattern, --scope and --expires say which."),
    ] = False,
    pattern: Annotated[
        str | None, typer.Option(metavar="P", help="Of that rule, instead of the suggested one.")
    ] = None,
    scope: Annotated[
        Literal["project", "user"] | None,
        typer.Option(help="Where that rule holds: in this folder, or in every trusted one."),
    ] = None,
    expires: Annotated[str | None, typer.Option(metavar="7d", help="How long that rule holds.")] = None,
    edited: Annotated[
        str | None, typer.Option("--input", metavar="JSON", help="Run with this input instead.")
    ] = None,
    written: Annotated[
        Path | None, typer.Option("--content", metavar="FILE", help="Write what this file holds instead.")
    ] = None,
    as_json_: AsJson = False,
) -> None:
    """Allow one call: exactly what is shown, or what you would have instead; and the like of it, if you say so."""
    if session and always:
        raise typer.BadParameter("Either --session or --always: both say how long it holds.")
    if (pattern or expires) and not (session or always):
        raise typer.BadParameter("--pattern and --expires are about a rule: say --always or --session too.")
    if scope and not always:
        raise typer.BadParameter("--scope says where a rule holds: say --always too.")
    if edited and written:
        raise typer.BadParameter("Either --input or --content: both say what to do instead.")
    if (edited or written) and (session or always) and not pattern:
        raise typer.BadParameter(
            "What is suggested is about what was asked, not your edit: say --pattern too."
        )
    reaches: Scope | None = "session" if session else (scope or "project") if always else None
    lasts, changes = seconds(expires), _changes(edited, written)
    with reach("person") as link:
        asked = look_up(link, approval)
        _show(asked, as_json_)
        edit = _weighed(link, asked, changes, as_json_) if changes else None
        rules = _rules(asked, reaches, pattern, lasts) if reaches and asked["status"] == "open" else ()
        if pattern and not as_json_:
            _doubt(link, asked, rules, edit)
        _answer(link, asked, Answer(kind="allow", edit=edit, rules=rules), as_json_)


def deny(
    approval: ApprovalId,
    reason: Annotated[str, typer.Option("-m", "--reason", help="What the agent is told.")] = "",
    as_json_: AsJson = False,
) -> None:
    """Deny one call. The reason reaches the agent as text; other calls are not touched."""
    with reach("person") as link:
        asked = look_up(link, approval)
        _show(asked, as_json_)
        _answer(link, asked, Answer(kind="deny", reason=reason), as_json_)


def look_up(link: Link, typed: str) -> Row:
    """The question that is meant: an open one before an older one that begins alike."""
    still_open = [row["id"] for row in link.get("approvals", open=True) if row["id"].startswith(typed)]
    found = by_prefix(typed, still_open or [row["id"] for row in link.get("approvals")], "approval")
    return link.get("approvals", found)


def tell_rules(asked: Row, rules: list[Row]) -> None:
    """Which rules were made, how they are taken back, and where they do not help."""
    for rule in rules:
        say(*made(rule))
        if rule["scope"] == "user" and not asked["trusted"]:
            say((_NOT_HERE, "yellow"))
    for part in beyond(asked) if rules else ():
        say((f"{exact_line(part)} will go on asking: no rule was offered for it.", "yellow"))


def _changes(edited: str | None, written: Path | None) -> Row:
    given, text = json_object(edited), content(written)
    return {"input": given} if given is not None else {"content": text} if text is not None else {}


def _show(asked: Row, for_programs: bool) -> None:
    if not for_programs and asked["status"] == "open":
        show_approval(asked)


def _weighed(link: Link, asked: Row, changes: Row, for_programs: bool) -> Edit:
    edit = weigh(link, asked, changes)
    if not for_programs:
        say("")
        show_edit(asked, edit.view)
    return edit


def _rules(asked: Row, scope: Scope, pattern: str | None, lasts: int | None) -> tuple[Row, ...]:
    if pattern is None:
        return suggested(asked, scope, lasts)
    return (patterned(asked, pattern, scope, lasts),)


def _doubt(link: Link, asked: Row, rules: tuple[Row, ...], edit: Edit | None) -> None:
    """A pattern of one's own may miss the very call it was written for; that is said, and no reason to refuse."""
    done = {**asked, **edit.changes} if edit else asked
    for rule in rules:
        if why := still_asks(link, done, rule):
            note((f"With this rule such a call would not simply pass: {flat(why)}", "yellow"))


def _answer(link: Link, asked: Row, answer: Answer, for_programs: bool) -> None:
    answered, rules = send(link, asked, answer)
    if for_programs:
        as_json({**answered, "rules": rules})
        return
    word, style = state(answered["status"])
    say((word, style), f" {answered['id']}", flat(f": {answer.reason}") if answer.reason else "")
    tell_rules(asked, rules)
