"""`handrail servers`: the MCP servers behind the gate: list, add, remove, import, restart, test, standard error.

The daemon runs them and edits config.toml. This module reads clients' files for `import`. The commands for secrets and
sign-ins are in `secrets` and `logins`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NoReturn, cast

import typer

from handrail.cli.client import Link, reach
from handrail.cli.command_help import GroupWithHeadings, add_command, plain_app
from handrail.cli.commands.logins import login, logout
from handrail.cli.commands.secrets import add_to as add_secrets_to
from handrail.cli.exact import escape_line_breaks, exact_line
from handrail.cli.failure import Failure
from handrail.cli.interactive.keyboard import confirm
from handrail.cli.render.formats import find_by_prefix, format_count, parse_assignment
from handrail.cli.render.output import Piece, note, print_json, print_table, say

if TYPE_CHECKING:
    from handrail.cli.wire import McpServerSection, ServerLogView, ServerTrialView, ServerView
    from handrail.clients.mcp_entries import McpEntry
    from handrail.clients.mcp_secrets import SplitSection

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ServerName = Annotated[
    str, typer.Argument(metavar="NAME", help="A server, or the first letters of its name.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
EXAMPLES = """\
handrail servers
handrail servers add git -- uvx mcp-server-git
handrail servers add github --url https://api.githubcopilot.com/mcp/
handrail servers login github
handrail servers secret set GITHUB_TOKEN
handrail servers import claude
handrail servers test git"""
_STATES: dict[str, Piece] = {
    "running": ("◐ running", "blue"),
    "starting": ("◐ starting", "blue"),
    "idle": ("not started", "dim"),
    "failed": ("! failed", "red"),
    "held": ("! not accepted", "yellow"),
    "disabled": ("disabled", "dim"),
}


class _Group(GroupWithHeadings):
    headings: ClassVar[Mapping[str, Sequence[str]]] = {
        "Servers": ("add", "remove", "import"),
        "Operation": ("test", "logs", "restart"),
        "Credentials": ("secret", "login", "logout"),
    }


def add_to(app: typer.Typer) -> None:
    group = plain_app(_Group, invoke_without_command=True, epilog=EXAMPLES)
    group.callback()(servers)
    add_command(
        group,
        "add",
        "handrail servers add git -- uvx mcp-server-git",
        "handrail servers add db --secret DATABASE_URL -- npx -y @acme/mcp-database",
        "handrail servers add github --url https://api.githubcopilot.com/mcp/",
        "handrail servers add far --url https://mcp.example.org/mcp --header 'Authorization: Bearer {secret:FAR_TOKEN}'",
    )(add)
    add_command(group, "remove", "handrail servers remove git")(remove)
    add_command(group, "import", "handrail servers import claude", "handrail servers import codex --dry-run")(
        import_
    )
    add_command(group, "restart", "handrail servers restart git")(restart)
    add_command(group, "test", "handrail servers test git")(try_out)
    add_command(group, "logs", "handrail servers logs git")(logs)
    add_command(group, "login", "handrail servers login github")(login)
    add_command(group, "logout", "handrail servers logout github")(logout)
    add_secrets_to(group)
    app.add_typer(group, name="servers")


def servers(context: typer.Context, as_json_: AsJson = False) -> None:
    """List other MCP servers behind the gate; add, import, sign in."""
    if context.invoked_subcommand is not None:
        return
    with reach("read") as link:
        rows = link.get("servers")
        if as_json_:
            print_json(rows)
            return
        wanting = {row["server"] for row in link.get("logins") if row["state"] == "needed"}
        missing = [row for row in link.get("secrets") if row["kept"] == "nowhere"]
    if not rows:
        note("No MCP server is behind Handrail. `handrail servers add NAME -- COMMAND` adds one, and")
        note("`handrail servers import CLIENT` those that a client has.")
        return
    head = ("NAME", "STATE", "TOOLS", "CALLS/H", "ERRORS/H", "USED BY", "COMMAND OR URL")
    print_table(head, [_cells(row, needs_sign_in=row["name"] in wanting) for row in rows])
    for row in rows:
        needed = [each["name"] for each in missing if row["name"] in each["servers"]]
        for sentence in _remarks(row, needed, needs_sign_in=row["name"] in wanting):
            whose = "" if sentence.startswith(f"{row['name']} ") else f"{row['name']}: "
            note((f"{whose}{exact_line(sentence)}", "yellow"))


def _cells(row: ServerView, *, needs_sign_in: bool) -> tuple[Piece, ...]:
    state: Piece = ("! needs sign-in", "yellow") if needs_sign_in else _STATES[row["state"]]
    tools = str(len(row["tools"])) if row["is_listed"] else "?"
    counts = [str(count) if count else "" for count in (row["calls_hour"], row["errors_hour"])]
    return row["name"], state, tools, *counts, ", ".join(row["clients"]), row["target"]


def _remarks(row: ServerView, missing: list[str], *, needs_sign_in: bool) -> list[str]:
    fresh = [tool["own_name"] for tool in row["tools"] if tool["state"] != "known"]
    held = (
        "A person has to accept config.toml first: `handrail rules accept`." if row["state"] == "held" else ""
    )
    sign_in = f"`handrail servers login {row['name']}` signs in." if needs_sign_in else ""
    problem = "" if needs_sign_in or missing else row["problem"]
    secrets = [f"{name} is missing: `handrail servers secret set {name}` stores it." for name in missing]
    changed = f"{', '.join(fresh)}: new or changed, so each call asks." if fresh else ""
    return [each for each in (held, sign_in, *secrets, problem, changed, *row["refused"]) if each]


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its tools are called NAME__TOOL.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND", help="Program and arguments; speaks MCP on stdio."),
    ] = None,
    url: Annotated[
        str, typer.Option(metavar="URL", help="Instead of COMMAND: it speaks MCP over HTTP.")
    ] = "",
    header: Annotated[
        list[str] | None,
        typer.Option(metavar="'NAME: VALUE'", help="A header of each request to the URL. Repeatable."),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A stored secret that it gets as a variable. Repeatable."),
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A variable for it. Repeatable.")
    ] = None,
    env_pass: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="A variable of the daemon's that it gets. Repeatable."),
    ] = None,
    cwd: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Its folder; default: the client's.")
    ] = None,
    as_json_: AsJson = False,
) -> None:
    """Add a server to config.toml. Agents can use it at once.

    In KEY=VALUE and 'NAME: VALUE', {secret:NAME} stands for a stored secret. Other values that may be credentials
    are stored as secrets, too: in the system's keyring, or in a file that only your user can read. They are not written
    to config.toml, but your shell may remember them: `handrail servers secret set NAME` asks for the value instead.
    """
    if bool(command) == bool(url):
        raise typer.BadParameter(
            "Give the command that starts it (handrail servers add NAME -- COMMAND …), or --url URL."
        )
    _check_transport(url, header, secret, env, env_pass, cwd)
    section: dict[str, Any] = {"name": name, "command": command, "url": url}
    section["headers"] = dict(_parse_header(each) for each in header or ())
    section["env"] = dict(parse_assignment(each, "--env") for each in env or ())
    section["secrets"], section["env_pass"] = secret or [], env_pass or []
    section["cwd"] = "" if cwd is None else str(cwd.absolute())
    with reach("person") as link:
        view, missing = _add(link, {key: value for key, value in section.items() if value})
    if as_json_:
        print_json(view)
        return
    say(("✓ added  ", "green"), f"{name} is in config.toml, and in force. No restart is needed.")
    for each in missing:
        say(f"It needs {each}, which is not stored: ", (f"handrail servers secret set {each}", "bold"))
    note((f"handrail servers test {name}", "bold"), " starts it once and lists its tools.")
    note("Each call of its tools asks you, unless a rule decides it.")
    if url and not any(each.lower().startswith("authorization") for each in header or ()):
        note((f"handrail servers login {name}", "bold"), " signs in, if it wants that.")


def _check_transport(
    url: str,
    header: list[str] | None,
    secret: list[str] | None,
    env: list[str] | None,
    env_pass: list[str] | None,
    cwd: Path | None,
) -> None:
    """Raises BadParameter for an option of the other kind of server."""
    if url and secret:
        raise typer.BadParameter(
            "--secret passes a variable to a command. In a --header, write {secret:NAME}."
        )
    if url and (env or env_pass or cwd):
        raise typer.BadParameter("--env, --env-pass and --cwd are for a server with a command.")
    if header and not url:
        raise typer.BadParameter("--header is for a server with --url.")


def _parse_header(words: str) -> tuple[str, str]:
    """`NAME: VALUE`, as curl takes it. Raises BadParameter."""
    name, separator, value = words.partition(":")
    if not separator or not name.strip():
        raise typer.BadParameter(f"--header takes 'NAME: VALUE', not {words.split('=', maxsplit=1)[0]!r}.")
    return name.strip(), value.strip()


def _add(link: Link, section: dict[str, Any]) -> tuple[ServerView, list[str]]:
    """Add a server, with its credentials in the secret store; also returns the secrets that are missing."""
    from handrail.clients.mcp_secrets import split_secrets  # noqa: PLC0415 - rarely needed

    name = section["name"]
    if any(row["name"] == name for row in link.get("servers")):
        raise Failure(
            f"There is an MCP server {name} already. Choose another name, or remove that one first."
        )
    taken = {row["name"] for row in link.get("secrets")}
    split = split_secrets(section, taken, keeps_references=True)
    if split.problem:
        note((f"{name}: {split.problem}", "yellow"))
    view = link.post("servers", body=cast("McpServerSection", split.section))
    for secret, value in split.secrets.items():
        link.put("secrets", secret, body={"value": value})
        note(f"{secret} looks like a credential. It is in the secret store, not in config.toml.")
    rows = link.get("secrets")
    return view, [row["name"] for row in rows if row["kept"] == "nowhere" and name in row["servers"]]


def remove(name: ServerName, as_json_: AsJson = False) -> None:
    """Remove a server from config.toml, and end its processes."""
    with reach("person") as link:
        found = _find_name(link, name)
        secrets = [
            row["name"]
            for row in link.get("secrets")
            if row["servers"] == [found] and row["kept"] != "nowhere"
        ]
        link.delete("servers", found)
    if as_json_:
        print_json({"removed": found})
        return
    say(f"Removed {found}. Its processes have ended, and agents no longer see its tools.")
    for each in secrets:
        note(f"Its secret {each} is still stored: `handrail servers secret remove {each}` deletes it.")


def restart(name: ServerName) -> None:
    """End a server's processes. The next use starts it again, without delay."""
    with reach("person") as link:
        found = _find_name(link, name)
        link.post("servers", found, "restart")
    say(f"No process of {found} runs any more. Its next use starts it again, without delay.")


def try_out(name: ServerName, as_json_: AsJson = False) -> None:
    """Start a server, list its tools and end it. Exits with 1 if that fails."""
    with reach("person") as link:
        found = _find_name(link, name)
        trial = link.post("servers", found, "test")
    if as_json_:
        print_json(trial)
    else:
        _show_trial(trial)
    if trial["problem"]:
        raise typer.Exit(1)


def _show_trial(trial: ServerTrialView) -> None:
    view = trial["server"]
    if trial["problem"]:
        say(("✗ failed  ", "red"), escape_line_breaks(trial["problem"]))
        _show_lines("It printed:", trial["lines"])
        return
    about = f"{view['version'] or view['name']}, MCP {view['protocol']}"
    count = format_count(len(view["tools"]), "tool")
    say(("✓ works  ", "green"), exact_line(f"{about}: {count} in {trial['ms'] / 1000:.1f} s"))
    rows = [(tool["name"], _TOOL_STATES[tool["state"]], tool["title"]) for tool in view["tools"]]
    print_table(("TOOL", "", "TITLE"), rows)
    for sentence in view["refused"]:
        note((exact_line(sentence), "yellow"))


_TOOL_STATES: dict[str, Piece] = {"known": "", "new": ("new", "yellow"), "changed": ("changed", "yellow")}


def logs(name: ServerName, as_json_: AsJson = False) -> None:
    """Print the last lines of a server's standard error."""
    with reach("person") as link:
        found = _find_name(link, name)
        log = link.get("servers", found, "logs")
    if as_json_:
        print_json(log)
    else:
        _show_log(found, log)


def _show_log(name: str, log: ServerLogView) -> None:
    if log["problem"]:
        note((exact_line(log["problem"]), "red"))
    _show_lines("The process that ended last:", log["lines"])
    for process in log["running"]:
        _show_lines(f"For {exact_line(process['client'])}, pid {process['pid']}:", process["lines"])
    if not log["lines"] and not any(process["lines"] for process in log["running"]):
        note(f"{name} has printed nothing on its standard error since Handrail started.")


def _show_lines(head: str, lines: list[str]) -> None:
    if lines:
        note((head, "dim"))
        for line in lines:
            say(f"  {exact_line(line)}")


def import_(
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="claude, codex, cursor, vscode, gemini …")],
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="Only this server. Repeatable.")
    ] = None,
    scope: Annotated[
        Literal["user", "project"], typer.Option(help="Your configuration of the client, or this project's.")
    ] = "user",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show them.")] = False,
    yes: Yes = False,
    as_json_: AsJson = False,
) -> None:
    """Add the MCP servers of a client. Its configuration stays as it is.

    Values that may be credentials go to the secret store, and not into config.toml.
    """
    from handrail.clients.mcp_secrets import split_secrets  # noqa: PLC0415 - rarely needed

    entries = [each for each in _read_entries(client, scope) if not only or each.name in only]
    if not entries:
        _explain_nothing(client, only)
    with reach("person") as link:
        known = {row["name"] for row in link.get("servers")}
        taken = {row["name"] for row in link.get("secrets")}
        splits: dict[str, SplitSection] = {}
        for each in entries:
            if each.section and each.section["name"] not in known:
                split = splits.setdefault(each.section["name"], split_secrets(each.section, taken))
                taken |= split.secrets.keys()
        if not as_json_:
            _show_entries(entries, known, splits)
        fresh = [each for each in splits.values() if not each.problem]
        is_wished = not dry_run and (yes or as_json_ or confirm(f"Add {format_count(len(fresh), 'server')}?"))
        added = [_add_split(link, each) for each in fresh] if fresh and is_wished else []
    if as_json_:
        print_json(added)
    elif added:
        say(
            ("✓ added  ", "green"), f"{', '.join(row['name'] for row in added)}. Agents can use them at once."
        )
        note(
            f"{client} still starts its own, too, so its calls pass by Handrail. `handrail connect {client} --servers move` "
            "moves them instead."
        )


def _read_entries(client: str, scope: Literal["user", "project"]) -> list[McpEntry]:
    from handrail.clients.client_facts import Machine, Setup  # noqa: PLC0415 - rarely needed
    from handrail.clients.config_edit import BadFile  # noqa: PLC0415
    from handrail.clients.config_file import FileProblem  # noqa: PLC0415
    from handrail.clients.known_clients import NAMES, find_client  # noqa: PLC0415
    from handrail.clients.launcher_path import find_launcher  # noqa: PLC0415
    from handrail.clients.mcp_entries import find_mcp_entries  # noqa: PLC0415

    if client not in NAMES:
        raise Failure(f"Handrail does not know a client {client!r}. It knows {', '.join(NAMES)}.")
    machine = Machine.of(os.environ, Path.cwd())
    setup = Setup(machine=machine, launcher=find_launcher(os.environ), scope=scope)
    try:
        return find_mcp_entries(find_client(client), setup)
    except (BadFile, FileProblem) as problem:
        raise Failure(f"The configuration of {client} cannot be read: {problem}") from None


def _explain_nothing(client: str, only: list[str] | None) -> NoReturn:
    named = f" called {', '.join(only)}" if only else ""
    raise Failure(f"{client} has no MCP server{named} in this configuration. Nothing was changed.")


def _add_split(link: Link, split: SplitSection) -> ServerView:
    for name, value in split.secrets.items():
        link.put("secrets", name, body={"value": value})
    return link.post("servers", body=cast("McpServerSection", split.section))


def _show_entries(entries: list[McpEntry], known: set[str], splits: dict[str, SplitSection]) -> None:
    rows: list[tuple[Piece, ...]] = []
    for each in entries:
        name = str(each.section.get("name", ""))
        split = splits.get(name)
        problem = each.problem or (split.problem if split else "")
        state: Piece = ("✗ not possible", "red") if problem else ("+ new", "green")
        state = ("= is there", "dim") if name in known else state
        what = each.section.get("url") or " ".join(each.section.get("command", ()))
        stored = ", ".join(split.secrets) if split and not problem else ""
        rows.append((each.name, state, name, stored, problem or str(what)))
    print_table(("IN THE CLIENT", "", "HERE", "TO THE SECRET STORE", "WHAT"), rows)


def _find_name(link: Link, name: str) -> str:
    return find_by_prefix(name, [row["name"] for row in link.get("servers")], "server", "servers")
