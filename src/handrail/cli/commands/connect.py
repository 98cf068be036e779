"""`handrail connect` and `handrail disconnect`: write Handrail's entries into clients' files, list them, remove them.

`handrail.clients` has the facts about each client and does the work; nothing is written that was not shown.
"""

import difflib
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from handrail.cli.client import reach
from handrail.cli.command_help import add_command
from handrail.cli.commands._connect_proof import prove
from handrail.cli.commands._connect_servers import (
    describe_return,
    offer_move,
    plan_return,
    remove_returned,
)
from handrail.cli.commands._connect_vscode import NAME as VSCODE
from handrail.cli.commands._connect_vscode import install_extension, remove_extension
from handrail.cli.commands.connect_options import (
    HookTimeout,
    Locked,
    Proves,
    ServersOption,
    SingleQuestion,
    Wish,
    check_wish,
)
from handrail.cli.failure import Code, Failure
from handrail.cli.folder import project, top_level
from handrail.cli.interactive.keyboard import confirm
from handrail.cli.render.client_states import show_client_states
from handrail.cli.render.connection_changes import describe_effect, describe_parts, say_next, show_plan
from handrail.cli.render.output import note, print_json, say
from handrail.clients.client_facts import Client, HostedAgent, Machine, Setup
from handrail.clients.client_program import find_version
from handrail.clients.config_file import FileProblem
from handrail.clients.connection_plan import (
    ConnectionPlan,
    ConnectRefused,
    needs_root,
    plan_connect,
    plan_disconnect,
    stage,
)
from handrail.clients.connection_plan import (
    connect as carry_out,
)
from handrail.clients.connection_plan import (
    disconnect as take_out,
)
from handrail.clients.connection_state import examine_clients, find_other_entries
from handrail.clients.connections import Connection, Connections
from handrail.clients.known_clients import NAMES, find_client
from handrail.clients.launcher_path import find_launcher, find_problem
from handrail.clients.mcp_entries import find_mcp_entries
from handrail.paths import Places

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
ScopeOption = Annotated[
    Literal["user", "project"], typer.Option(help="Your own configuration, or files in this project.")
]


def add_to(app: typer.Typer) -> None:
    add_command(
        app,
        "connect",
        "handrail connect",
        "handrail connect claude",
        "handrail connect --all --dry-run",
        "handrail connect codex --no-mcp",
        "handrail connect claude --scope project",
        "handrail connect claude --servers move",
        "handrail connect claude --locked",
        "handrail connect gemini --single-question",
        "handrail connect claude --hook-timeout 600",
        "handrail connect claude --prove",
        "handrail connect code-server",
    )(connect)
    add_command(
        app, "disconnect", "handrail disconnect claude", "handrail disconnect claude --scope project"
    )(disconnect)


def connect(
    client: Annotated[
        str | None, typer.Argument(metavar="[CLIENT]", help=f"One of: {', '.join(NAMES)}.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All clients that are found.")] = False,
    only_print: Annotated[
        bool, typer.Option("--print", help="Only print the entries, also for a client that is not installed.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the change.")] = False,
    yes: Yes = False,
    scope: ScopeOption = "user",
    hooks: Annotated[bool, typer.Option("--hooks/--no-hooks", help="Write the hooks.")] = True,
    mcp: Annotated[bool, typer.Option("--mcp/--no-mcp", help="Write the MCP server.")] = True,
    locked: Locked = False,
    single_question: SingleQuestion = False,
    hook_timeout: HookTimeout = 0,
    servers: ServersOption = "ask",
    undo: Annotated[bool, typer.Option("--undo", help="The same as `handrail disconnect`.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also if it is not installed, or has another Handrail.")
    ] = False,
    launcher: Annotated[str, typer.Option(metavar="PATH", help="The program that clients start.")] = "",
    proves: Proves = False,
    as_json_: AsJson = False,
) -> None:
    """Put a coding agent's own tool calls through Handrail.

    Registers hooks and the MCP server; the change is shown first. Without CLIENT: lists the clients that are found, connected,
    drifted or overridden.
    """
    if client is None and not every:
        _list_clients(launcher, as_json_)
        return
    if (client is None) != every:
        raise typer.BadParameter("Name a client, or give --all.")
    if proves and (client is None or undo or only_print or dry_run or locked or not hooks or scope != "user"):
        raise typer.BadParameter(
            "--prove takes one client, and with it only --no-mcp, --launcher, --yes and --json."
        )
    if undo:
        _disconnect(_known_name(client or ""), scope, is_locked=locked, dry_run=dry_run, yes=yes)
        return
    wish = Wish(
        scope=scope,
        has_mcp=mcp and not locked,
        has_hooks=hooks,
        is_locked=locked,
        is_single_question=single_question,
        hook_timeout=hook_timeout,
        servers=servers,
        is_forced=force,
        launcher=launcher,
        starts_daemon=not (only_print or dry_run),
    )
    if proves:
        _prove(client or "", wish, yes=yes, as_json=as_json_)
    elif only_print:
        _print_entries(_known_name(client or ""), wish)
    else:
        _connect_clients(client, wish, dry_run=dry_run, yes=yes)


def disconnect(
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="A connected client.")],
    yes: Yes = False,
    scope: ScopeOption = "user",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the change.")] = False,
) -> None:
    """Remove exactly what `handrail connect` wrote for a client.

    A file that nothing else changed is as it was before, byte for byte. From any other, only our entries are removed.
    """
    _disconnect(_known_name(client), scope, is_locked=False, dry_run=dry_run, yes=yes)


def _disconnect(name: str, scope: str, *, is_locked: bool, dry_run: bool, yes: bool) -> None:
    """Disconnect a client; with `is_locked`, remove only its hooks in settings for the whole machine."""
    connections = _connections()
    if name == VSCODE:
        remove_extension(_machine(), dry_run=dry_run, yes=yes)
        if not any(each.client == name for each in connections.all()):
            return
    plans = _plan_removals(name, scope, connections, is_locked=is_locked)
    back = plan_return(plans, connections)
    for plan in plans:
        show_plan(plan)
    for sentence in describe_return(back):
        note((sentence, "yellow"))
    if dry_run:
        return
    with reach("person", start=True) as link:
        _ask(f"Disconnect {find_client(name).title}?", yes)
        for plan in plans:
            _remove(plan, connections)
        remove_returned(back, link)


def _connect_clients(client: str | None, wish: Wish, *, dry_run: bool, yes: bool) -> None:
    """Connect this client, or all that are found."""
    is_one = client is not None
    if wish.servers == "move" and not (is_one and wish.has_mcp):
        raise typer.BadParameter("--servers move takes one client, which gets Handrail's MCP server.")
    machine = _machine(wish.scope)
    names = _found_clients(machine) if client is None else [_known_name(client)]
    others = [name for name in names if name != VSCODE]
    if others:
        _connect_all(others, machine, wish, dry_run=dry_run, yes=yes, is_one=is_one)
    if VSCODE in names:
        _connect_vscode(machine, wish, dry_run=dry_run, yes=yes, is_one=is_one)


def _connect_vscode(machine: Machine, wish: Wish, *, dry_run: bool, yes: bool, is_one: bool) -> None:
    files = [file for each in _connections().all() if each.client == VSCODE for file in each.files]
    if any(each.piece.kind != "absent" for file in files for each in file.pieces):
        raise Failure(
            "An earlier Handrail wrote an MCP server on stdio for VS Code. With it, VS Code counts as an agent and cannot "
            "decide. Run `handrail disconnect vscode` first."
        )
    install_extension(machine, dry_run=dry_run, yes=yes)
    if is_one:
        _offer_servers(VSCODE, machine, wish, _connections(), dry_run=dry_run, yes=yes)


def _known_name(client: str) -> str:
    name = client.lower()
    if name in NAMES:
        return name
    near = difflib.get_close_matches(name, NAMES, 3, 0.5)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    raise Failure(f"Handrail does not know a client {client!r}.{meant} It knows {', '.join(NAMES)}.")


def _machine(scope: str = "user") -> Machine:
    here = project(None, "cd") if scope == "project" else top_level(Path.cwd())
    return Machine.of(os.environ, here)


def _connections() -> Connections:
    return Connections(Places.find(os.environ).data)


def _found_clients(machine: Machine) -> list[str]:
    names = [name for name in NAMES if find_client(name).is_found(machine)]
    if not names:
        raise Failure(f"None of the clients that Handrail knows is installed: {', '.join(NAMES)}.")
    return names


def _list_clients(launcher: str, for_programs: bool) -> None:
    try:
        states = examine_clients(_machine(), find_launcher(os.environ, launcher), _connections())
    except FileProblem as problem:
        raise Failure(str(problem)) from None
    if for_programs:
        print_json([asdict(state) for state in states])
        return
    show_client_states(states)


def _build_setup(client: Client, machine: Machine, wish: Wish) -> Setup:
    program = client.program(machine)
    return Setup(
        machine=machine,
        launcher=find_launcher(os.environ, wish.launcher),
        version=find_version(client, machine),
        program=program,
        scope=wish.scope,
        has_mcp=wish.has_mcp,
        has_hooks=wish.has_hooks and client.has_hooks,
        is_locked=wish.is_locked,
        is_single_question=wish.is_single_question,
        hook_timeout=wish.hook_timeout,
        agents=_find_agents(starts_daemon=wish.starts_daemon) if client.starts_agents else (),
    )


def _find_agents(*, starts_daemon: bool) -> tuple[HostedAgent, ...]:
    """The installed agents but our own, which the daemon finds."""
    try:
        with reach("person", start=starts_daemon) as link:
            rows = link.get("agents")
    except Failure as failure:
        if starts_daemon or failure.code != Code.NO_DAEMON:
            raise
        note(("Handrail is not running, so only its own agent is listed.", "yellow"))
        return ()
    found = [row for row in rows if row["found"] and row["command"] and row["source"] != "built in"]
    return tuple(HostedAgent(row["title"], tuple(row["command"])) for row in found)


def _print_entries(name: str, wish: Wish) -> None:
    client = find_client(name)
    check_wish(client, wish)
    setup = _build_setup(client, _machine(wish.scope), wish)
    for path in dict.fromkeys(piece.path for piece in client.pieces(setup)):
        say((f"# {path}", "bold"))
        text = ""
        for piece in client.pieces(setup):
            text = piece.add_to(text) if piece.path == path else text
        say(text)
    for step in client.steps(setup):
        say(step)


def _prove(name: str, wish: Wish, *, yes: bool, as_json: bool) -> None:
    client = find_client(_known_name(name))
    _warn_of_launcher(wish)
    is_watched = sys.stdin.isatty() and sys.stdout.isatty() and not yes and not as_json
    is_locked = any(each.client == client.name and each.is_locked for each in _connections().all())
    setup = replace(_build_setup(client, _machine(), wish), is_locked=is_locked)
    prove(client, setup, stays=is_watched, as_json=as_json)


def _connect_all(
    names: list[str], machine: Machine, wish: Wish, *, dry_run: bool, yes: bool, is_one: bool
) -> None:
    connections = _connections()
    with ThreadPoolExecutor(8) as pool:  # some clients are asked for their version
        tries = [pool.submit(_try_plan, name, machine, wish, connections, is_one=is_one) for name in names]
        results = [each.result() for each in tries]
    failures = [result for result in results if isinstance(result, str)]
    plans = [result for result in results if isinstance(result, ConnectionPlan)]
    if is_one and failures:
        raise Failure(failures[0])
    for plan in plans:
        show_plan(plan, describe_parts(plan))
    for failure in failures:
        note((failure, "red"))
    changed = [plan for plan in plans if plan.is_change or not connections.find(plan.connection.key)]
    if changed and not dry_run:
        _warn_of_launcher(wish)
        with reach("person", start=True):
            _ask(f"Write this for {', '.join(plan.client.title for plan in changed)}?", yes)
            with ThreadPoolExecutor(len(changed)) as pool:
                tries = [pool.submit(_write, plan, connections) for plan in changed]
                problems = [words for each in tries if (words := each.result())]
        if len(problems) < len(changed) and not wish.is_locked:
            say_next(changed[0].client.name if len(changed) == 1 else "CLIENT")
        failures += problems
    if failures:
        raise Failure("Not all clients were connected." if len(failures) > 1 or not is_one else failures[0])
    if is_one and wish.has_mcp:
        _offer_servers(names[0], machine, wish, connections, dry_run=dry_run, yes=yes)


def _offer_servers(
    name: str, machine: Machine, wish: Wish, connections: Connections, *, dry_run: bool, yes: bool
) -> None:
    client = find_client(name)
    rough = Setup(machine=machine, launcher=find_launcher(os.environ, wish.launcher), scope=wish.scope)
    if wish.servers == "keep" or (wish.servers == "ask" and not find_mcp_entries(client, rough)):
        return
    setup = _build_setup(client, machine, wish)
    with nullcontext() if dry_run else reach("person", start=True) as link:
        offer_move(client, setup, connections, link, wish.servers, yes=yes)


def _try_plan(
    name: str, machine: Machine, wish: Wish, connections: Connections, *, is_one: bool
) -> ConnectionPlan | str:
    """The plan, or a sentence why it is missing."""
    client = find_client(name)
    try:
        if is_one or wish.scope == "user":
            check_wish(client, wish)
        if not client.is_found(machine) and not wish.is_forced:
            return (
                f"{client.title} is not installed: there is no {' or '.join(client.programs)} on PATH. Install it, or use "
                "--print to see the entries, or --force to write them."
            )
        setup = _build_setup(client, machine, wish)
        plan = plan_connect(client, setup, connections)
        if not wish.is_forced and connections.find(plan.connection.key) is None:
            _check_other_homes(client, setup)
    except (ConnectRefused, Failure, FileProblem) as problem:
        return str(problem)
    return plan


def _check_other_homes(client: Client, setup: Setup) -> None:
    """Raises Failure. An MCP server without a home was added by hand: it is replaced, and comes back on disconnect."""
    others = find_other_entries(client, setup)
    entries = [each for each in others if each.is_hook or (each.is_other_home and each.home)]
    if not entries:
        return
    first = entries[0]
    home = f"HANDRAIL_HOME={first.home} " if first.home else ""
    fix = (
        f"`{home}handrail disconnect {client.name}` removes it"
        if first.is_other_home
        else "Remove it by hand"
    )
    raise Failure(f"{first} Two would ask about every call twice. {fix}; --force keeps both.")


def _warn_of_launcher(wish: Wish) -> None:
    problem = find_problem(find_launcher(os.environ, wish.launcher))
    if problem.startswith("There is no"):
        raise Failure(problem)
    if problem:
        note((problem, "yellow"))


def _ask(question: str, yes: bool) -> None:
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure("Nothing was changed: this needs a terminal to ask in, or --yes.")
    if not confirm(question):
        raise Failure("Nothing was changed.")


def _write(plan: ConnectionPlan, connections: Connections) -> str:
    """Carry out a plan; returns why it failed, or nothing."""
    try:
        if needs_root(plan):
            _say_root(stage(plan, connections))
            return ""
        carry_out(plan, connections, os.environ)
    except ConnectRefused as problem:
        return str(problem)
    say(("✓ ", "green"), f"{plan.client.title} is connected. {describe_effect(plan)}")
    for step in plan.steps:
        say(step)
    return ""


def _say_root(commands: list[str]) -> None:
    say("Only root can write settings for the whole machine, and for every user of it. Run:")
    for command in commands:
        say(("  " + command, "bold"))


def _plan_removals(
    name: str, scope: str, connections: Connections, *, is_locked: bool
) -> list[ConnectionPlan]:
    here = str(project(None, "cd")) if scope == "project" else ""
    try:
        known = [each for each in connections.all() if each.client == name]
        chosen = [each for each in known if each.project == here and (each.is_locked or not is_locked)]
        if not chosen and is_locked:
            raise Failure(f"{find_client(name).title} has no locked hooks of this Handrail.")
        if not chosen:
            raise Failure(_explain_nothing(name, known))
        return [plan_disconnect(find_client(name), each, connections) for each in chosen]
    except (ConnectRefused, FileProblem) as problem:
        raise Failure(str(problem)) from None


def _explain_nothing(name: str, known: list[Connection]) -> str:
    title = find_client(name).title
    if known:
        places = ", ".join(each.project or "your own configuration" for each in known)
        return f"{title} is not connected here, but in: {places}."
    setup = Setup(machine=_machine(), launcher=find_launcher(os.environ))
    others = [str(each) for each in find_other_entries(find_client(name), setup)]
    return " ".join([f"{title} is not connected: Handrail has no record of it.", *others])


def _remove(plan: ConnectionPlan, connections: Connections) -> None:
    try:
        if needs_root(plan):
            _say_root(stage(plan, connections, forget=True))
            say(f"Then run `handrail disconnect {plan.client.name}` again.")
            return
        take_out(plan, connections, os.environ)
    except ConnectRefused as problem:
        raise Failure(str(problem)) from None
    say(
        ("✓ ", "green"),
        f"{plan.client.title} is disconnected.",
        " What was changed by hand stays." if plan.notes else " Its files are as they were.",
    )
