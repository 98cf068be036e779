"""`handrail agents`, `agent` and `keys`: list agents, run Handrail's own, and manage its API keys.

The daemon detects agents. `handrail.own_agent` implements our own. Keys are in the system keyring.
"""

from __future__ import annotations

import getpass
import os
import shlex
import sys
import time
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from handrail.cli.client import Link, reach
from handrail.cli.command_help import add_command, plain_app
from handrail.cli.commands.threads import show_new_thread
from handrail.cli.exact import exact_line
from handrail.cli.failure import Failure
from handrail.cli.folder import workspace
from handrail.cli.package_versions import NewestVersions, find_newest_versions
from handrail.cli.render.formats import find_by_prefix, format_ago
from handrail.cli.render.output import Piece, note, print_json, print_table, say
from handrail.paths import Places, own_python

if TYPE_CHECKING:
    from handrail.cli.wire import AdoptBody, AgentSessionView, AgentView, KeysView

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add_to(app: typer.Typer) -> None:
    group = plain_app(
        invoke_without_command=True,
        epilog="handrail agents\nhandrail agents --json\nhandrail agents --refresh\nhandrail agents sessions claude",
    )
    group.callback()(agents)
    add_command(
        group,
        "sessions",
        "handrail agents sessions claude",
        "handrail agents sessions claude --all",
    )(sessions)
    add_command(group, "adopt", "handrail agents adopt claude d5bb")(adopt)
    app.add_typer(group, name="agents")
    add_command(
        app,
        "agent",
        "handrail agent",
        "acpx --agent 'handrail agent' exec 'What does this project do?'",
        '{"agent_servers": {"Handrail": {"type": "custom", "command": "handrail", "args": ["agent"]}}}   (Zed)',
    )(agent)


Refresh = Annotated[
    bool, typer.Option("--refresh", help="Look up the newest versions with npm and pip (needs a network).")
]


def agents(context: typer.Context, as_json_: AsJson = False, refresh: Refresh = False) -> None:
    """List agents, how to install the others, and their sessions."""
    if context.invoked_subcommand is not None:
        return
    with reach("person") as link:
        rows = link.get("agents")
        keys_found = link.get("keys") if any(row["why"] for row in rows if row["found"]) else None
    if refresh:
        _show_newest(rows, as_json_)
        return
    if as_json_:
        print_json(rows)
        return
    installed, missing = [row for row in rows if row["found"]], [row for row in rows if not row["found"]]
    without_key = [row for row in installed if row["why"] and not _has_key(keys_found)]
    cells = [_cells(row, lacks=row in without_key) for row in installed]
    print_table(("NAME", "STATE", "VERSION", "FROM", "COMMAND"), cells)
    if missing:
        say("")
        note(("Not installed:", "dim"))
        print_table(("NAME", "MISSING", "INSTALL WITH"), [_missing_cells(row) for row in missing])
    say("")
    for row in without_key:
        note((f"{exact_line(row['name'])}: {exact_line(row['why'])}", "yellow"))
    ready = next((row["name"] for row in installed if row not in without_key), "NAME")
    note((f"handrail chat --agent {exact_line(ready)}", "bold"), " starts a conversation.")


AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="Which agent; `handrail agents` lists them.")]
EveryFolder = Annotated[bool, typer.Option("--all", help="Of all folders, not only of this project.")]


def sessions(agent: AgentName, every: EveryFolder = False, as_json_: AsJson = False) -> None:
    """List the sessions that an agent has kept.

    Those of its own command line are among them. The agent is started if needed.
    """
    with reach("person") as link:
        rows = _list_sessions(link, agent, every)
    if as_json_:
        print_json(rows)
    elif rows:
        print_table(("ID", "UPDATED", "THREAD", "FOLDER", "TITLE"), [_session_cells(row) for row in rows])
        note((f"handrail agents adopt {exact_line(agent)} ID", "bold"), " continues one as a conversation.")
    else:
        note(
            f"{exact_line(agent)} has no sessions {'' if every else 'in this project; try --all'}".rstrip()
            + "."
        )


def adopt(
    agent: AgentName,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="Its id, or the first letters of it.")],
    as_json_: AsJson = False,
) -> None:
    """Continue an agent's session as a conversation here.

    Its history is shown if the agent sends it.
    """
    with reach("person") as link:
        ids = [row["id"] for row in _list_sessions(link, agent, every=True)]
        found = find_by_prefix(session, ids, "session", f"agents sessions {agent} --all")
        body: AdoptBody = {"session": found, "workspace": _this_folder()}
        show_new_thread(link, link.post("agents", agent, "sessions", body=body), as_json_)


def _list_sessions(link: Link, agent: str, every: bool) -> list[AgentSessionView]:
    return link.get("agents", agent, "sessions", workspace=None if every else _this_folder())


def _this_folder() -> str | None:
    """The project that this command runs in, if it is one."""
    folder = workspace(None)
    return str(folder) if folder else None


def _session_cells(row: AgentSessionView) -> tuple[Piece, ...]:
    updated = format_ago(row["updated_at"], int(time.time() * 1000)) if row["updated_at"] else ""
    folder = row["folder"].rstrip("/").rpartition("/")[2]
    return row["id"], updated, row["thread"] or "", folder, row["title"]


def _show_newest(rows: list[AgentView], as_json_: bool) -> None:
    """Print the newest version of each known agent, and how to update those that are installed."""
    packages = {row["name"]: (row["manager"], row["package"]) for row in rows}
    known = {name: (manager, package) for name, (manager, package) in packages.items() if manager and package}
    newest = find_newest_versions(known)
    if as_json_:
        print_json([{**row, "newest": newest.versions.get(row["name"])} for row in rows])
    else:
        listed = [row for row in rows if row["name"] in newest.versions]
        if listed:
            print_table(
                ("NAME", "INSTALLED", "NEWEST", "INSTALL WITH"),
                [_newest_cells(row, newest) for row in listed],
            )
        for sentence in newest.problems:
            note((exact_line(sentence), "yellow"))
    if known and not newest.versions:
        raise Failure("No registry answered, so nothing is known about newer versions. Is there a network?")


def _newest_cells(row: AgentView, newest: NewestVersions) -> tuple[Piece, ...]:
    version = newest.versions[row["name"]]
    is_newest = row["found"] and row["version"] == version
    shown: Piece = (version, "green" if is_newest else "yellow" if row["found"] else "")
    command = {
        "npm": f"npm install --global {row['package']}@latest",
        "uv": f"uv tool install --upgrade {shlex.quote(row['package'] or '')}",
    }
    install = "" if is_newest else command[row["manager"] or "npm"]
    return row["name"], row["version"] or ("?" if row["found"] else "—"), shown, install


def agent() -> NoReturn:
    """Run Handrail's own agent on stdin and stdout, for editors. It speaks ACP. To talk in the terminal: handrail chat."""
    os.execv(sys.executable, [*own_python(), "-m", "handrail", "agent"])


def _has_key(keys_found: KeysView | None) -> bool:
    """Whether our own agent has a key: the daemon or the keyring has one, as on the page, or this environment does."""
    from handrail.config import PROVIDER_VARIABLES  # noqa: PLC0415 - pydantic takes a tenth of a second

    if keys_found is not None and (keys_found["other"] or any(key["stored"] for key in keys_found["keys"])):
        return True
    return any(os.environ.get(name) for name in PROVIDER_VARIABLES if name != "HANDRAIL_MODEL")


def _cells(row: AgentView, *, lacks: bool) -> tuple[Piece, ...]:
    state: Piece = ("! no key", "yellow") if lacks else ("✓ found", "green")
    if row["running"]:
        state = ("◐ running", "blue")
    return row["name"], state, row["version"] or "", row["source"], " ".join(row["command"])


def _missing_cells(row: AgentView) -> tuple[Piece, ...]:
    return row["name"], row["why"], row["install"] or ""


PROVIDERS = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "google": "GOOGLE_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "ollama": "OLLAMA_API_KEY",
}
"""Short provider name → variable that holds its key."""
KEY_MAX = 4096
"""Maximum characters of a key; rejects a file that was piped in by mistake."""
Which = Annotated[
    str, typer.Argument(metavar="PROVIDER|NAME", help="anthropic, openai, google, or the name of a variable.")
]


def add_keys_to(app: typer.Typer) -> None:
    group = plain_app(
        invoke_without_command=True,
        epilog="handrail keys\nhandrail keys set anthropic\nhandrail keys remove anthropic",
    )
    group.callback()(keys)
    add_command(
        group,
        "set",
        "handrail keys set anthropic",
        "handrail keys set OPENAI_API_KEY < key.txt",
    )(set_)
    add_command(group, "remove", "handrail keys remove anthropic")(remove)
    app.add_typer(group, name="keys")


def keys(context: typer.Context, as_json_: AsJson = False) -> None:
    """List, set or remove the API keys of Handrail's own agent. Keys are stored in the system keyring."""
    if context.invoked_subcommand is not None:
        return
    from handrail.config import PROVIDER_SECRETS  # noqa: PLC0415 - pydantic takes a tenth of a second
    from handrail.doctor.checks import variable_sources  # noqa: PLC0415 - brings the settings and the keyring

    keys_found = variable_sources(Places.find(os.environ), os.environ)
    if as_json_:
        print_json([{"name": name, "found": where} for name, where in keys_found.items()])
        return
    rows = {name: where for name, where in keys_found.items() if where or name in PROVIDER_SECRETS}
    print_table(("NAME", "FOUND IN"), [(name, _format_sources(where)) for name, where in rows.items()])
    note(("The daemon's environment may have others. `handrail keys set anthropic` stores one.", "dim"))


def set_(which: Which) -> None:
    """Store a key in the system keyring. Type it at the prompt (not shown), or pipe it in."""
    from handrail.provider_keys import NoKeyring, store_key  # noqa: PLC0415

    name = _key_name(which)
    value = _read_key(name)
    try:
        store_key(name, value)
    except NoKeyring as problem:
        raise Failure(f"{problem} Nothing was stored.") from None
    say(f"{name} is in the system's keyring. Our own agent finds it there when it is started next.")


def remove(which: Which) -> None:
    """Remove a key from the system keyring."""
    from handrail.provider_keys import NoKeyring, delete_key  # noqa: PLC0415

    name = _key_name(which)
    try:
        was_there = delete_key(name)
    except NoKeyring as problem:
        raise Failure(str(problem)) from None
    if not was_there:
        raise Failure(f"There is no {name} in the system's keyring. `handrail keys` lists the keys.")
    say(f"{name} is no longer in the system's keyring.")


def _key_name(which: str) -> str:
    from handrail.config import PROVIDER_SECRETS  # noqa: PLC0415

    name = PROVIDERS.get(which.lower(), which)
    if name not in PROVIDER_SECRETS:
        known = ", ".join([*PROVIDERS, *PROVIDER_SECRETS])
        raise typer.BadParameter(f"{which} is not the name of a provider or of a key. Known names: {known}.")
    return name


def _read_key(name: str) -> str:
    text = getpass.getpass(f"{name} (not shown): ") if sys.stdin.isatty() else sys.stdin.read(KEY_MAX + 2)
    value = text.strip()
    if not value:
        raise Failure("No key was given. Nothing was stored.")
    if len(value) > KEY_MAX or not value.isprintable() or " " in value:
        raise Failure("That is no key: a key is one word on one line. Nothing was stored.")
    return value


def _format_sources(where: tuple[str, ...]) -> Piece:
    return (f"✓ {', '.join(where)}", "green") if where else ("nowhere", "dim")
