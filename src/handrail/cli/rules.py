"""`handrail rules`: what holds, in the order of evaluation; add, remove, and try a call.

Owns those commands. What a rule means is the daemon's; how a tried call is shown is `tester`.
"""

import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from handrail.cli import tester
from handrail.cli.exact import exact_line, flat
from handrail.cli.failure import Failure
from handrail.cli.folder import project, workspace
from handrail.cli.help import plain, verb
from handrail.cli.link import Link, reach
from handrail.cli.named import by_prefix
from handrail.cli.rule_words import WIDE, cells, columns, command, flattened, judged, made, what
from handrail.cli.show import as_json, note, say, table, width
from handrail.cli.values import seconds
from handrail.cli.words import Row

MOST_SUGGESTED = 3
"""Suggestions below the list; the page shows all."""

AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]
Folder = Annotated[
    Path | None,
    typer.Option("--workspace", metavar="DIR", help="The folder; the current project unless given."),
]
EXAMPLES = """\
handrail rules
handrail rules add allow 'npm test'
handrail rules test 'git push -f'
handrail rules remove r1f"""


def add_to(app: typer.Typer) -> None:
    group = plain(invoke_without_command=True, epilog=EXAMPLES)
    group.callback()(rules)
    verb(
        group,
        "add",
        "handrail rules add allow 'npm test'",
        "handrail rules add deny 'git push' --user --note 'Pushing is for people.'",
        "handrail rules add ask --path 'migrations/**'",
        "handrail rules add allow --tool write_file 'docs/**' --expires 7d",
        "handrail rules add allow 'make' --match 'make test' --not-match 'makepkg'",
    )(add)
    verb(group, "remove", "handrail rules remove r1f")(remove)
    tester.add_to(group)
    app.add_typer(group, name="rules")


def rules(
    context: typer.Context,
    folder: Folder = None,
    every: Annotated[bool, typer.Option("--all", help="Also those of other folders.")] = False,
    as_json_: AsJson = False,
) -> None:
    """List what holds here, in the order of evaluation; or add, remove and test rules."""
    if context.invoked_subcommand is not None:
        return
    here = workspace(folder)
    with reach("read") as link:
        found: Row = link.get("rules", workspace=None if here is None else str(here))
    rows = [flattened(view) for view in found["rules"] if every or _is_here(view["rule"], here)]
    if as_json_:
        as_json(rows)
        return
    now, wide = int(time.time() * 1000), width() >= WIDE
    table(columns(wide), [cells(row, now, wide) for row in rows])
    for line in (_standing(found, here), *_suggestions(found)):
        note((exact_line(line), "dim"))


def add(
    effect: Annotated[
        Literal["allow", "ask", "deny"], typer.Argument(metavar="EFFECT", help="allow, ask or deny.")
    ],
    pattern: Annotated[
        str | None,
        typer.Argument(
            metavar="PATTERN", help="The words a command begins with; with --tool, what that takes."
        ),
    ] = None,
    tool: Annotated[str | None, typer.Option(help="Only calls of this tool.")] = None,
    path: Annotated[str | None, typer.Option(metavar="GLOB", help="Files: 'src/**', '*.md'.")] = None,
    host: Annotated[str | None, typer.Option(help="A host named in commands: '*.example.org'.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only clients of this name: 'claude-*'.")] = None,
    user: Annotated[
        bool, typer.Option("--user/--project", help="In every trusted folder, or in this one (the usual).")
    ] = False,
    folder: Folder = None,
    expires: Annotated[str | None, typer.Option(metavar="7d", help="How long it holds.")] = None,
    remark: Annotated[str, typer.Option("--note", help="Why; of a refusal, the agent reads it.")] = "",
    match: Annotated[
        list[str] | None, typer.Option(help="An example it must match; may be repeated.")
    ] = None,
    not_match: Annotated[list[str] | None, typer.Option(help="An example it must not match.")] = None,
    as_json_: AsJson = False,
) -> None:
    """Add a rule. Open questions that it decides are answered by it at once."""
    body: Row = {
        "effect": effect,
        "tool": tool,
        "command" if tool is None else "pattern": pattern,
        "path": path,
        "host": host,
        "agent": agent,
        "scope": "user" if user else "project",
        "workspace": None if user else str(project(folder)),
        "expires_in": seconds(expires),
        "note": remark,
        "match": match or [],
        "not_match": not_match or [],
    }
    with reach("person") as link:
        past = "" if as_json_ else _judged(link, body)
        row = flattened(link.post("rules", body=body))
    if as_json_:
        as_json(row)
        return
    say(*made(row), f" {past}" if past else "")


def remove(
    id: Annotated[str, typer.Argument(metavar="ID", help="A rule's id, or its first letters.")],
    as_json_: AsJson = False,
) -> None:
    """Remove a rule that was made by an answer or by hand. Those in files are removed there."""
    with reach("person") as link:
        rows = [flattened(view) for view in link.get("rules")["rules"] if not view["builtin"]]
        found = by_prefix(id, (row["id"] for row in rows), "rule")
        link.delete("rules", found)
    row = next(row for row in rows if row["id"] == found)
    if as_json_:
        as_json(row)
    else:
        say(f"Removed {found}: ", flat(f"{row['effect']} {what(row)}"))


def _is_here(rule: Row, here: Path | None) -> bool:
    return here is None or rule["workspace"] in (None, str(here))


def _standing(found: Row, here: Path | None) -> str:
    """Where this was looked at, and whether that folder is trusted."""
    if here is None:
        return "Not in a project: these are the rules of every folder. An agent without a workspace is always asked about."
    folder = next((each for each in found["folders"] if each["folder"] == str(here)), None)
    if folder is None or not folder["trusted"]:
        problem = folder["problem"] if folder else ""
        return (
            f"In {here}, which is not trusted{': ' + problem if problem else '. `handrail trust` trusts it.'}"
        )
    return f"In {here}, which is trusted. {folder['problem']}".rstrip()


def _suggestions(found: Row) -> list[str]:
    return [
        f"You allowed {each['words']} {each['answers']} times: {command(each['rule'])}"
        for each in found["suggestions"][:MOST_SUGGESTED]
        if each["rule"]["effect"] == "allow"
    ]


def _judged(link: Link, body: Row) -> str:
    """What the rule would have done. Raises Failure when it cannot be made."""
    proposed: Row = link.post("rules", "propose", body={"rule": body})
    if proposed["problem"]:
        raise Failure(proposed["problem"])
    return judged(proposed)
