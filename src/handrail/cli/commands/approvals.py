"""`handrail approvals`, `approve` and `deny`: list approvals and answer one.

An answer carries the digest of the approval as it was shown, and optionally an edit and new rules. `interactive.inbox`
answers approvals with single keys and sends its answers through this module.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from handrail.cli.client import Link, reach
from handrail.cli.command_help import add_command
from handrail.cli.commands.rules import describe_new_rule, flatten_rule
from handrail.cli.exact import escape_line_breaks, exact_line
from handrail.cli.failure import Code, Failure
from handrail.cli.render.approval_card import is_told_later, show_approval, show_edit, tool_name
from handrail.cli.render.formats import (
    find_by_prefix,
    format_caller,
    format_elapsed,
    format_risk,
    format_state,
    parse_duration,
    parse_json_object,
    read_content,
)
from handrail.cli.render.output import Piece, note, print_json, print_table, say
from handrail.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from handrail.cli.wire import (
        AnswerBody,
        ApprovalView,
        EditBody,
        EditView,
        RuleBody,
        RuleView,
        Suggestion,
        TestBody,
    )

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add_to(app: typer.Typer) -> None:
    add_command(app, "approvals", "handrail approvals", "handrail approvals -f", "handrail approvals --json")(
        approvals
    )


def approvals(
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", "-f", help="Show each approval here and answer it with a key; Ctrl-C exits."
        ),
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Include answered approvals.")] = False,
    as_json_: AsJson = False,
) -> None:
    """List open approvals, or answer them here with -f."""
    if follow:
        _follow(as_json_)
        return
    with reach("read") as link:
        rows = link.get("approvals", open=not every)
    if as_json_:
        print_json(rows)
    elif rows:
        print_table(
            ("ID", "STATUS", "RISK", "WAITED", "CALLER", "TOOL", "TITLE"), [_cells(row) for row in rows]
        )
    else:
        note("Nothing waits for you.")


def _cells(row: ApprovalView) -> tuple[Piece, ...]:
    return (
        row["id"],
        format_state(row["status"]),
        format_risk(row["risk"]),
        format_elapsed(row["elapsed_ms"]),
        format_caller(row),
        tool_name(row),
        row["title"],
    )


def _follow(for_programs: bool) -> None:
    from handrail.cli.interactive import inbox  # noqa: PLC0415 - brings the live socket

    if for_programs or not (sys.stdin.isatty() and sys.stdout.isatty()):
        inbox.print_changes(for_programs)
    else:
        inbox.ask_for_each()


Scope = Literal["session", "project", "user"]

_SUBJECTS: tuple[Literal["command", "path", "host"], ...] = ("command", "path", "host")
"""The fields of a rule that may hold its pattern, besides `pattern`."""
NO_RULE = (
    "No rule can cover this call: what is not fully understood, and places that are never allowed without a person, "
    "always need your approval."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A person's edit of the input, and the daemon's preview of it."""

    changes: EditBody
    """`input`, or `content` of the file to write."""
    input: dict[str, Any]
    """The input with the changes."""
    view: EditView


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A person's answer to an approval."""

    kind: Literal["allow", "deny"]
    reason: str = ""
    edit: Edit | None = None
    rules: tuple[RuleBody, ...] = ()


def send_answer(link: Link, approval: ApprovalView, answer: Answer) -> tuple[ApprovalView, list[RuleView]]:
    """Send an answer; return the answered approval and the rules created.

    Raises Failure if it was answered before, or has changed since it was shown.
    """
    seq = link.get("state")["seq"] if answer.rules else 0
    body: AnswerBody = {"answer": answer.kind, "digest": approval["digest"], "reason": answer.reason}
    if answer.edit is not None:
        body = {**body, **answer.edit.changes, "digest": answer.edit.view["digest"]}
    if answer.rules:
        body["rule"] = list(answer.rules)
    answered = link.post("approvals", approval["id"], "answer", body=body)
    return answered, _created_rules(link, approval["id"], seq) if answer.rules else []


def preview_edit(link: Link, approval: ApprovalView, changes: EditBody) -> Edit:
    """Ask the daemon for the risk and the preview of an edit. Raises Failure if the edit is invalid."""
    view = link.post("approvals", approval["id"], "edit", body=changes)
    edited = changes.get("input")
    return Edit(changes=changes, input=approval["input"] if edited is None else edited, view=view)


def offered_suggestions(approval: ApprovalView) -> list[Suggestion]:
    """The first suggestion for each claim: together, the rules that would allow this call."""
    covered: set[int] = set()
    suggestions: list[Suggestion] = []
    for suggestion in approval["suggestions"]:
        if not suggestion["claims"] or not covered.issuperset(suggestion["claims"]):
            suggestions.append(suggestion)
        covered.update(suggestion["claims"])
    return suggestions


def uncovered_resources(approval: ApprovalView) -> list[str]:
    """Resources of claims that need approval and have no suggested rule: such a call needs approval again."""
    covered = {place for each in offered_suggestions(approval) for place in each["claims"]}
    asking = (verdict["claim"] for verdict in approval["verdicts"] if verdict["effect"] != "allow")
    return [approval["claims"][place]["resource"] for place in asking if place not in covered]


def suggested_rules(
    approval: ApprovalView, scope: Scope, expires_in: int | None = None
) -> tuple[RuleBody, ...]:
    """The suggested rules in this scope. Raises Failure if no rule can allow the call."""
    rules = tuple(
        rule_in_scope(each["rule"], approval, scope, expires_in) for each in offered_suggestions(approval)
    )
    if not rules:
        raise Failure(f"{NO_RULE} `handrail approve {approval['id']}` allows it once.")
    return rules


def rule_with_pattern(
    approval: ApprovalView, pattern: str, scope: Scope, expires_in: int | None = None
) -> RuleBody:
    """A rule with the person's own pattern, for the same kind of resource as the first suggestion."""
    first = offered_suggestions(approval)[:1]
    rule: RuleBody = (
        replace_pattern(first[0]["rule"], pattern)
        if first
        else {"tool": approval["tool"], "pattern": pattern}
    )
    return rule_in_scope(rule, approval, scope, expires_in)


def replace_pattern(rule: RuleBody, pattern: str) -> RuleBody:
    about = next((name for name in _SUBJECTS if rule.get(name)), "pattern")
    changed = rule.copy()
    changed[about] = pattern
    return changed


def rule_in_scope(rule: RuleBody, approval: ApprovalView, scope: Scope, expires_in: int | None) -> RuleBody:
    """The rule with this scope and expiry."""
    workspace = None if scope == "user" else approval["caller"]["workspace"]
    return {**rule, "scope": scope, "workspace": workspace, "expires_in": expires_in}


def why_still_asked(link: Link, approval: ApprovalView, input: dict[str, Any], rule: RuleBody) -> str:
    """Why a call with this input would still need approval with this rule; empty if the rule allows it."""
    caller = approval["caller"]
    if rule.get("scope") == "session":
        rule = {**rule, "scope": "project"}
    body: TestBody = {
        "tool": approval["tool"],
        "input": input,
        "workspace": caller["workspace"],
        "agent": caller["client"] or None,
        "rule": rule,
    }
    try:
        decision = link.post("rules", "test", body=body)
    except Failure as problem:
        if problem.code is Code.NO_DAEMON:
            raise
        return ""  # the rule cannot be tested; if it is invalid, the answer will fail
    return "" if decision["effect"] == "allow" else decision["why"]


def _created_rules(link: Link, approval_id: str, seq: int) -> list[RuleView]:
    """The rules created with an answer, as they are now."""
    ids: set[str] = set()
    with suppress(Failure):  # the answer is final, even if the rules cannot be listed
        entries = link.get("events", after=seq)["entries"]
        while entries:
            events = [entry["event"] for entry in entries]
            added = [event for event in events if event["kind"] == "RuleAdded"]
            ids |= {event["rule"]["id"] for event in added if event["approval"] == approval_id}
            entries = link.get("events", after=entries[-1]["seq"])["entries"]
        return [view for view in link.get("rules")["rules"] if view["rule"]["id"] in ids]
    return []


ApprovalId = Annotated[str, typer.Argument(metavar="ID", help="Id of an approval, or its first letters.")]

_NOT_TRUSTED = (
    "It applies in every trusted folder. This folder is not trusted, so here such calls still need approval."
)


def add_answers_to(app: typer.Typer) -> None:
    add_command(
        app,
        "approve",
        "handrail approve a81",
        "handrail approve a81 --session",
        "handrail approve a81 --always --expires 7d",
        "handrail approve a81 --always --pattern 'npm run test:*' --scope user",
        'handrail approve a81 --input \'{"command": "git push --dry-run"}\'',
        "handrail approve a81 --content notes.md",
    )(approve)
    add_command(app, "deny", "handrail deny a81", "handrail deny a81 -m 'Use the staging database.'")(deny)


def approve(
    id: ApprovalId,
    session: Annotated[
        bool,
        typer.Option("--session", help="Also allow similar calls of this client until Handrail restarts."),
    ] = False,
    always: Annotated[
        bool,
        typer.Option("--always", help="Also create a rule; see --pattern, --scope and --expires."),
    ] = False,
    pattern: Annotated[
        str | None, typer.Option(metavar="P", help="Pattern of the rule; default: the suggested one.")
    ] = None,
    scope: Annotated[
        Literal["project", "user"] | None,
        typer.Option(help="Where the rule applies: in this folder, or in every trusted folder."),
    ] = None,
    expires: Annotated[str | None, typer.Option(metavar="7d", help="Time until the rule expires.")] = None,
    edited: Annotated[
        str | None, typer.Option("--input", metavar="JSON", help="Run with this input instead.")
    ] = None,
    written: Annotated[
        Path | None,
        typer.Option("--content", metavar="FILE", help="Write the content of this file instead; - is stdin."),
    ] = None,
    as_json_: AsJson = False,
) -> None:
    """Allow a call as shown or edited, once or with a rule."""
    if session and always:
        raise typer.BadParameter("Give --session or --always, not both.")
    if (pattern or expires) and not (session or always):
        raise typer.BadParameter("--pattern and --expires need --always or --session.")
    if scope and not always:
        raise typer.BadParameter("--scope needs --always.")
    if edited and written:
        raise typer.BadParameter("Give --input or --content, not both.")
    if (edited or written) and (session or always) and not pattern:
        raise typer.BadParameter(
            "The suggested rule is for the original input, not for your edit: add --pattern."
        )
    reaches: Scope | None = "session" if session else (scope or "project") if always else None
    lasts, changes = parse_duration(expires), _build_changes(edited, written)
    with reach("person") as link:
        approval = find_approval(link, id)
        _show(approval, as_json_)
        edit = _show_preview_of_edit(link, approval, changes, as_json_) if changes else None
        rules = (
            _build_rules(approval, reaches, pattern, lasts)
            if reaches and approval["status"] == "open"
            else ()
        )
        if pattern and not as_json_:
            _warn_if_still_asked(link, approval, rules, edit)
        _send_and_show(link, approval, Answer(kind="allow", edit=edit, rules=rules), as_json_)


def deny(
    id: ApprovalId,
    reason: Annotated[
        str, typer.Option("-m", "--reason", help="Reason; the agent reads it, some with their next prompt.")
    ] = "",
    as_json_: AsJson = False,
) -> None:
    """Deny a call, with an optional reason for the agent. Other calls are not affected."""
    with reach("person") as link:
        approval = find_approval(link, id)
        _show(approval, as_json_)
        _send_and_show(link, approval, Answer(kind="deny", reason=reason), as_json_)


def find_approval(link: Link, typed: str) -> ApprovalView:
    """Find an approval by id or prefix; open approvals take precedence. Raises Failure."""
    still_open = [row["id"] for row in link.get("approvals", open=True) if row["id"].startswith(typed)]
    approval_id = find_by_prefix(
        typed, still_open or [row["id"] for row in link.get("approvals")], "approval"
    )
    return link.get("approvals", approval_id)


def show_created_rules(approval: ApprovalView, rules: list[RuleView]) -> None:
    """Print the created rules, how to remove them, and where they do not apply."""
    for view in rules:
        say(*describe_new_rule(view))
        if view["rule"]["scope"] == "user" and not approval["trusted"]:
            say((_NOT_TRUSTED, "yellow"))
    for part in uncovered_resources(approval) if rules else ():
        say(
            (
                f"{exact_line(part)} still needs approval each time: there is no rule to suggest for it.",
                "yellow",
            )
        )


def _build_changes(edited: str | None, written: Path | None) -> EditBody:
    values, text = parse_json_object(edited), read_content(written)
    return {"input": values} if values is not None else {"content": text} if text is not None else {}


def _show(approval: ApprovalView, for_programs: bool) -> None:
    if not for_programs and approval["status"] == "open":
        show_approval(approval)


def _show_preview_of_edit(link: Link, approval: ApprovalView, changes: EditBody, for_programs: bool) -> Edit:
    edit = preview_edit(link, approval, changes)
    if not for_programs:
        say("")
        show_edit(approval, edit.view, edit.input)
    return edit


def _build_rules(
    approval: ApprovalView, scope: Scope, pattern: str | None, lasts: int | None
) -> tuple[RuleBody, ...]:
    if pattern is None:
        return suggested_rules(approval, scope, lasts)
    return (rule_with_pattern(approval, pattern, scope, lasts),)


def _warn_if_still_asked(
    link: Link, approval: ApprovalView, rules: tuple[RuleBody, ...], edit: Edit | None
) -> None:
    """Warn if the person's own pattern does not allow this very call. The answer is sent all the same."""
    tool_input = edit.input if edit else approval["input"]
    for rule in rules:
        if why := why_still_asked(link, approval, tool_input, rule):
            note(
                (
                    f"With this rule, such a call would still not be allowed: {escape_line_breaks(why)}",
                    "yellow",
                )
            )


def _send_and_show(link: Link, approval: ApprovalView, answer: Answer, for_programs: bool) -> None:
    answered, rules = send_answer(link, approval, answer)
    if for_programs:
        print_json({**answered, "rules": [flatten_rule(view) for view in rules]})
        return
    word, style = format_state(answered["status"])
    say(
        (word, style), f" {answered['id']}", escape_line_breaks(f": {answer.reason}") if answer.reason else ""
    )
    if answer.reason and is_told_later(approval):
        client = escape_line_breaks(approval["caller"]["client"])
        note(
            (f"{client} reads the reason with its next prompt; the answer itself has no place for it.", "dim")
        )
    show_created_rules(approval, rules)
