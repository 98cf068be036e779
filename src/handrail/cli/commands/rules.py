"""`handrail rules`: list rules in order of evaluation, add, remove, and test a call against them.

The daemon evaluates rules; this module only renders them: table cells, sentences, and the command that adds one.
"""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from handrail.cli.client import Link, reach
from handrail.cli.command_help import add_command, plain_app
from handrail.cli.commands import _rule_test, accept_policy
from handrail.cli.exact import escape_line_breaks, exact_line
from handrail.cli.failure import Failure
from handrail.cli.folder import project, workspace
from handrail.cli.render.formats import (
    find_by_prefix,
    format_ago,
    format_count,
    format_effect,
    format_minute,
    parse_assignment,
    parse_duration,
)
from handrail.cli.render.output import Piece, note, print_json, print_table, say, width

if TYPE_CHECKING:
    from handrail.cli.wire import (
        ProposedView,
        Rule,
        RuleBody,
        RulesView,
        RuleView,
    )

MOST_SUGGESTED = 3
"""Maximum suggestions below the list; the page shows all."""

RuleId = Annotated[str, typer.Argument(metavar="ID", help="Id of a rule, or its first letters.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Folder = Annotated[
    Path | None,
    typer.Option("--workspace", metavar="DIR", help="The folder; default: the current project."),
]
EXAMPLES = """\
handrail rules
handrail rules add allow 'npm test'
handrail rules test 'git push -f'
handrail rules disable r1f"""


def add_to(app: typer.Typer) -> None:
    group = plain_app(invoke_without_command=True, epilog=EXAMPLES)
    group.callback()(rules)
    add_command(
        group,
        "add",
        "handrail rules add allow 'npm test'",
        "handrail rules add deny 'git push' --user --note 'Pushing is for people.'",
        "handrail rules add ask --path 'migrations/**'",
        "handrail rules add allow --tool write_file 'docs/**' --expires 7d",
        "handrail rules add allow --tool github__create_issue --argument 'repo=acme/*'",
        "handrail rules add allow 'make' --match 'make test' --not-match 'makepkg'",
    )(add)
    add_command(
        group,
        "edit",
        "handrail rules edit r1f 'npm run test'",
        "handrail rules edit r1f --effect ask --expires 8h",
    )(edit)
    add_command(group, "disable", "handrail rules disable r1f")(disable)
    add_command(group, "enable", "handrail rules enable r1f")(enable)
    add_command(group, "move", "handrail rules move r1f --before r2a", "handrail rules move r1f --last")(move)
    add_command(group, "remove", "handrail rules remove r1f")(remove)
    _rule_test.add_to(group)
    accept_policy.add_to(group)
    app.add_typer(group, name="rules")


def rules(
    context: typer.Context,
    folder: Folder = None,
    every: Annotated[bool, typer.Option("--all", help="Include rules of other folders.")] = False,
    as_json_: AsJson = False,
) -> None:
    """List the rules of this folder; add, edit or remove rules."""
    if context.invoked_subcommand is not None:
        return
    here = workspace(folder)
    with reach("read") as link:
        answer = link.get("rules", workspace=None if here is None else str(here))
        held = accept_policy.find_policy(link)
    views = [view for view in answer["rules"] if every or _applies_in(view["rule"], here)]
    if as_json_:
        print_json([flatten_rule(view) for view in views])
        return
    now, wide = int(time.time() * 1000), width() >= WIDE
    print_table(rule_columns(wide), [rule_cells(view, now, wide) for view in views])
    accept_policy.warn_of_changes(held)
    for line in (_describe_folder(answer, here), *_describe_suggestions(answer)):
        note((exact_line(line), "dim"))


def add(
    effect: Annotated[
        Literal["allow", "ask", "deny"], typer.Argument(metavar="EFFECT", help="allow, ask or deny.")
    ],
    pattern: Annotated[
        str | None,
        typer.Argument(
            metavar="PATTERN", help="First words of a command; with --tool, that tool's own pattern."
        ),
    ] = None,
    tool: Annotated[str | None, typer.Option(help="Only calls of this tool.")] = None,
    path: Annotated[
        str | None, typer.Option(metavar="GLOB", help="Files that match: 'src/**', '*.md'.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Commands that name this host: '*.example.org'.")] = None,
    server: Annotated[str | None, typer.Option(help="Only calls of this MCP server.")] = None,
    argument: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=GLOB", help="Only with this argument, for a server's tool. Repeatable."),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Only clients with this name: 'claude-*'.")] = None,
    user: Annotated[
        bool,
        typer.Option("--user/--project", help="Apply in every trusted folder, or only in this one."),
    ] = False,
    folder: Folder = None,
    expires: Annotated[str | None, typer.Option(metavar="7d", help="Time until it expires.")] = None,
    remark: Annotated[str, typer.Option("--note", help="Why; for a deny rule, the agent reads it.")] = "",
    match: Annotated[list[str] | None, typer.Option(help="An example it must match. Repeatable.")] = None,
    not_match: Annotated[
        list[str] | None, typer.Option(help="An example it must not match. Repeatable.")
    ] = None,
    as_json_: AsJson = False,
) -> None:
    """Add a rule. It also answers open approvals that it decides."""
    body: RuleBody = {
        "effect": effect,
        "tool": tool,
        "command": pattern if tool is None else None,
        "pattern": None if tool is None else pattern,
        "path": path,
        "host": host,
        "server": server,
        "arguments": dict(parse_assignment(each, "--argument") for each in argument or []),
        "agent": agent,
        "scope": "user" if user else "project",
        "workspace": None if user else str(project(folder)),
        "expires_in": parse_duration(expires),
        "note": remark,
        "match": match or [],
        "not_match": not_match or [],
    }
    with reach("person") as link:
        past = "" if as_json_ else _check_rule(link, body)
        view = link.post("rules", body=body)
    if as_json_:
        print_json(flatten_rule(view))
        return
    say(*describe_new_rule(view), f" {past}" if past else "")


def remove(id: RuleId, as_json_: AsJson = False) -> None:
    """Remove a rule. To remove a rule that is in a file, edit the file."""
    with reach("person") as link:
        view = _find_rule(link, id)
        link.delete("rules", view["rule"]["id"])
    _report("Removed", view, as_json_)


def edit(
    id: RuleId,
    pattern: Annotated[
        str | None, typer.Argument(metavar="PATTERN", help="Its new command, path or host.")
    ] = None,
    effect: Annotated[
        Literal["allow", "ask", "deny"] | None, typer.Option(help="allow, ask or deny.")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Only clients with this name: 'claude-*'.")] = None,
    expires: Annotated[str | None, typer.Option(metavar="7d", help="Time until it expires.")] = None,
    remark: Annotated[str | None, typer.Option("--note", help="Why it is there.")] = None,
    as_json_: AsJson = False,
) -> None:
    """Change a rule. The changed rule has a new id; the old rule is removed."""
    with reach("person") as link:
        view = _find_rule(link, id)
        body = _changed_body(view["rule"], pattern, parse_duration(expires))
        body["effect"] = effect or view["rule"]["effect"]
        body["agent"] = agent or view["rule"]["agent"]
        body["note"] = view["rule"]["note"] if remark is None else remark
        past = "" if as_json_ else _check_rule(link, body)
        made = link.post("rules", body=body)
        link.delete("rules", view["rule"]["id"])
    if as_json_:
        print_json(flatten_rule(made))
    else:
        say(*describe_new_rule(made), f" {past}" if past else "")


def _changed_body(rule: Rule, pattern: str | None, expires_in: int | None) -> RuleBody:
    """A rule as a request body, with another pattern for its subject. Raises Failure."""
    if rule["scope"] == "session" or rule["disabled"]:
        why = "is disabled. Enable it first" if rule["disabled"] else "belongs to a session. Add another one"
        raise Failure(f"Rule {rule['id']} {why}.")
    about = next((name for name in ("command", "path", "host") if rule[name] is not None), "command")
    ends = rule["expires_at"]
    left = None if ends is None else max(1, ends // 1000 - int(time.time()))
    body: dict[str, object] = {
        name: rule[name]
        for name in ("effect", "tool", "command", "path", "host", "server", "agent", "scope", "workspace")
    }
    body |= {name: rule[name] for name in ("note", "match", "not_match")}
    body["arguments"] = dict(rule["arguments"])
    body |= {"expires_in": expires_in or left} | ({} if pattern is None else {about: pattern})
    return cast("RuleBody", body)


def disable(id: RuleId, as_json_: AsJson = False) -> None:
    """Switch a rule off. It stays in the list and decides nothing."""
    _switch(id, "Disabled", as_json_)


def enable(id: RuleId, as_json_: AsJson = False) -> None:
    """Switch a disabled rule on again."""
    _switch(id, "Enabled", as_json_)


def _switch(id: str, done: Literal["Disabled", "Enabled"], as_json_: bool) -> None:
    with reach("person") as link:
        rule = _find_rule(link, id)["rule"]
        view = link.patch("rules", rule["id"], body={"enabled": done == "Enabled"})
    _report(done, view, as_json_)


def move(
    id: RuleId,
    before: Annotated[
        str | None, typer.Option(metavar="ID", help="The rule of the same effect and scope to put it before.")
    ] = None,
    last: Annotated[bool, typer.Option("--last", help="Put it behind all of its effect and scope.")] = False,
    as_json_: AsJson = False,
) -> None:
    """Change the order of rules.

    Of several that match, the first is named and counted.
    """
    if (before is None) is not last:
        raise typer.BadParameter("Give --before ID, or --last.")
    with reach("person") as link:
        rule_id = _find_rule(link, id)["rule"]["id"]
        other = None if before is None else _find_rule(link, before)["rule"]["id"]
        view = link.post("rules", rule_id, "move", body={"before": other})
    _report("Moved", view, as_json_)


def _find_rule(link: Link, id: str) -> RuleView:
    views = {view["rule"]["id"]: view for view in link.get("rules")["rules"] if not view["builtin"]}
    return views[find_by_prefix(id, views, "rule")]


def _report(done: str, view: RuleView, as_json_: bool) -> None:
    rule = view["rule"]
    if as_json_:
        print_json(flatten_rule(view))
    else:
        say(f"{done} {rule['id']}: ", escape_line_breaks(f"{rule['effect']} {describe_rule(view)}"))


def _applies_in(rule: Rule, here: Path | None) -> bool:
    return here is None or rule["workspace"] in (None, str(here))


def _describe_folder(answer: RulesView, here: Path | None) -> str:
    """A line that names the folder and whether it is trusted."""
    if here is None:
        return "Not in a project: these are the rules of all folders. Calls of an agent without a workspace always need approval."
    folder = next((each for each in answer["folders"] if each["folder"] == str(here)), None)
    if folder is None or not folder["trusted"]:
        problem = folder["problem"] if folder else ""
        return (
            f"In {here}, which is not trusted{': ' + problem if problem else '. `handrail trust` trusts it.'}"
        )
    return f"In {here}, which is trusted. {folder['problem']}".rstrip()


def _describe_suggestions(answer: RulesView) -> list[str]:
    return [
        f"You allowed {each['words']} {each['answers']} times: {add_rule_command(each['rule'])}"
        for each in answer["suggestions"][:MOST_SUGGESTED]
        if each["rule"].get("effect") == "allow"
    ]


def _check_rule(link: Link, body: RuleBody) -> str:
    """How the rule would have decided past calls. Raises Failure if the rule is invalid."""
    proposed = link.post("rules", "propose", body={"rule": body})
    if proposed["problem"]:
        raise Failure(proposed["problem"])
    return describe_impact(proposed)


WIDE = 120
"""Terminal width from which the table of rules has a column for every field."""
_EFFECT_VERBS = {"allow": "allows", "ask": "asks about", "deny": "refuses"}


def flatten_rule(view: RuleView) -> dict[str, object]:
    """Merge a rule view and its nested rule into one object, for JSON output."""
    return {**view["rule"], **{name: value for name, value in view.items() if name != "rule"}}


def rule_columns(wide: bool) -> tuple[str, ...]:
    if wide:
        return ("ID", "EFFECT", "SCOPE", "HITS", "LAST USE", "SOURCE", "WHAT")
    return ("ID", "EFFECT", "USED", "WHAT")


def rule_cells(view: RuleView, now: int, wide: bool) -> tuple[Piece, ...]:
    """Table cells of a rule. In a narrow table the last cell holds description and source."""
    rule = view["rule"]
    last = format_ago(view["last_used_at"], now) if view["last_used_at"] or not view["builtin"] else ""
    hits = str(view["hits"]) if view["hits"] else ""
    style = "" if view["in_force"] else "dim"
    if not wide:
        used = f"{hits}, {last}" if hits else last
        return (
            rule["id"],
            format_effect(rule["effect"]),
            used,
            (f"{describe_rule(view)} · {describe_source(view)}", style),
        )
    scope = "" if view["builtin"] else rule["scope"]
    return (
        rule["id"],
        format_effect(rule["effect"]),
        scope,
        hits,
        last,
        describe_source(view),
        (describe_rule(view), style),
    )


def describe_rule(view: RuleView) -> str:
    """Describe a rule: its subject, expiry and note, and why it is not in force."""
    rule = view["rule"]
    pieces = [
        view["words"],
        f"until {format_minute(rule['expires_at'])}" if rule["expires_at"] else "",
        f"({rule['note']})" if rule["note"] and not view["builtin"] else "",
        f"· not in force: {view['says']}" if not view["in_force"] else "",
    ]
    return " ".join(filter(None, pieces))


def describe_source(view: RuleView) -> str:
    """Where a rule comes from: file and line, or who added it and when."""
    by = (view["added_by"] or "").removeprefix("a person on the ")
    return view["rule"]["source"] or (f"{by}, {format_minute(view['added_at'])}" if view["added_at"] else by)


def describe_new_rule(view: RuleView) -> tuple[Piece, ...]:
    """Describe a new rule and how to remove it."""
    rule = view["rule"]
    does = f" {_EFFECT_VERBS[rule['effect']]} {describe_rule(view)}. "
    return (
        "Rule ",
        (rule["id"], "bold"),
        exact_line(does),
        f"`handrail rules remove {rule['id']}` removes it.",
    )


def describe_impact(proposed: ProposedView) -> str:
    """How a proposed rule would have decided past calls; empty if there are none."""
    sentences: list[str] = []
    if proposed["calls"]:
        sentences.append(
            f"matches {proposed['matches']} of the last {format_count(proposed['calls'], 'call')}"
        )
    if proposed["prompts"]:
        sentences.append(
            f"would have decided {proposed['decided']} of your last {format_count(proposed['prompts'], 'question')}"
        )
    return "It " + " and ".join(sentences) + "." if sentences else ""


def add_rule_command(body: RuleBody) -> str:
    """The `handrail rules add` command for a suggested rule."""
    about = body.get("command") or body.get("pattern")
    tool = body.get("tool")
    options = {
        "tool": tool if tool != "execute_command" or about is None else None,
        "path": body.get("path"),
        "host": body.get("host"),
        "server": body.get("server"),
        "agent": body.get("agent"),
    }
    words = ["handrail", "rules", "add", body.get("effect", "allow")]
    words += [about] if about else []
    for name, value in options.items():
        words += [f"--{name}", value] if value else []
    for name, glob in (body.get("arguments") or {}).items():
        words += ["--argument", f"{name}={glob}"]
    words += ["--user"] if body.get("scope") == "user" else ["--workspace", body.get("workspace") or "."]
    return shlex.join(words)
