"""`handrail status`, `doctor`, `config` and `mcp`.

`handrail.doctor` implements the checks, `door.mcp_stdio` the MCP server.
"""

import json
import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.client import Link, reach
from handrail.cli.command_help import add_command
from handrail.cli.commands.accept_policy import find_policy, format_change, warn_of_changes
from handrail.cli.failure import Code, Failure
from handrail.cli.render.formats import format_ago, format_count
from handrail.cli.render.output import Piece, print_json, print_table, say
from handrail.door.own_processes import describe_hung_keeper, find_hung_keeper
from handrail.lazy_dataclass import dataclass
from handrail.paths import Places

if TYPE_CHECKING:
    from handrail.cli.wire import PolicyView
    from handrail.doctor.checks import Finding


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_LEVELS = {"ok": ("✓ ok", "green"), "warn": ("! warn", "yellow"), "bad": ("✗ bad", "red")}


def add_to(app: typer.Typer) -> None:
    add_command(app, "status", "handrail status", "handrail status --json")(status)
    add_command(
        app,
        "doctor",
        "handrail doctor",
        "handrail doctor --backup handrail-copy.db",
        "handrail doctor --harden",
    )(doctor)
    add_command(app, "config", "handrail config", "handrail config --show-origin")(config)
    add_command(
        app,
        "mcp",
        "handrail mcp",
        "handrail mcp --workspace ~/code/api",
        "claude mcp add handrail -- handrail mcp",
    )(mcp)


@dataclass(frozen=True, slots=True)
class Status:
    """The running daemon, as `handrail status` prints it."""

    pid: int
    url: str
    version: str
    home: str
    keeper_pid: int | None
    hung_keeper_pid: int | None
    """A keeper that does not answer."""
    running: int
    """Running calls."""
    waiting: int
    """Open approvals."""
    restarts: int
    """How often the keeper has restarted the daemon because it had ended unexpectedly."""
    restarted_at: int | None
    """When that was last, in milliseconds since 1970."""
    paused_since: int | None
    """When all agents were paused, in milliseconds since 1970."""
    devices_url: str | None
    """Where paired devices connect; None if nothing listens for them."""
    devices: int
    """Paired devices."""
    held: tuple[str, ...]
    """What changed without Handrail and no person has accepted; while there is any, everything asks."""


def status(as_json_: AsJson = False) -> None:
    """Show whether Handrail runs, where, and how many calls wait. Exit status 3 if it does not run."""
    with _explain_hang(), reach("read") as link:
        policy = find_policy(link)
        state = _build_status(link, policy)
    if as_json_:
        print_json(asdict(state))
        return
    say(("● ", "green"), f"Handrail {state.version} runs at {state.url}")
    keeper = f"keeper {state.keeper_pid}" if state.keeper_pid else "no keeper"
    if state.hung_keeper_pid:
        keeper = f"keeper {state.hung_keeper_pid} does not answer"
    say(f"  process {state.pid}, {keeper}")
    if state.restarted_at:
        often, when = (
            format_count(state.restarts, "time"),
            format_ago(state.restarted_at, int(time.time() * 1000)),
        )
        say((f"  restarted by the keeper {often}, last {when}: the daemon had ended unexpectedly", "yellow"))
    say(f"  home    {state.home}")
    say(f"  calls   {state.running} running, {format_count(state.waiting, 'approval')} waiting for you")
    if state.paused_since:
        since = format_ago(state.paused_since, int(time.time() * 1000))
        say((f"  paused  all agents, {since}: new calls wait for you. `handrail resume` ends it", "yellow"))
    if state.devices_url:
        say(f"  devices {format_count(state.devices, 'device')} paired, listening at {state.devices_url}")
    if state.hung_keeper_pid:
        say((describe_hung_keeper(state.hung_keeper_pid), "red"))
    warn_of_changes(policy, say)


def doctor(
    backup: Annotated[
        Path | None, typer.Option(help="Also back up the database to this new file, and check the copy.")
    ] = None,
    harden: Annotated[
        bool,
        typer.Option("--harden", help="Only print the commands for an installation that belongs to root."),
    ] = False,
    as_json_: AsJson = False,
) -> None:
    """Check the installation and show how to fix problems. Exit status 1 if a check fails."""
    if harden:
        from handrail.doctor import harden_commands  # noqa: PLC0415 - imports the store

        typer.echo(harden_commands(), nl=False)
        return
    findings: list[Finding] = []
    for finding in _run_checks(backup):
        findings.append(finding)
        if not as_json_:
            _show_finding(finding)
    bad = any(finding.level == "bad" for finding in findings)
    if as_json_:
        print_json({"ok": not bad, "findings": [asdict(finding) for finding in findings]})
    raise typer.Exit(Code.FAILED if bad else Code.OK)


def config(
    show_origin: Annotated[
        bool, typer.Option("--show-origin", help="Also show where each value comes from.")
    ] = False,
    as_json_: AsJson = False,
) -> None:
    """Show the effective settings."""
    from handrail.config import BadConfig  # noqa: PLC0415 - pydantic, which most commands do without
    from handrail.doctor.checks import check_rules  # noqa: PLC0415 - imports the rules engine
    from handrail.flat_settings import mask_secrets, settings  # noqa: PLC0415 - pydantic, which most commands do without

    path = Places.find(os.environ).config
    try:
        values = [mask_secrets(each) for each in settings(path)]
        check_rules(path)
    except BadConfig as problem:
        raise Failure(str(problem)) from None
    if as_json_:
        print_json([asdict(setting) for setting in values])
        return
    columns = ("SETTING", "VALUE", "FROM") if show_origin else ("SETTING", "VALUE")
    rows: list[tuple[Piece, ...]] = [(each.name, _format_toml(each.value), each.origin) for each in values]
    print_table(columns, [row[: len(columns)] for row in rows])
    say((f"Change them in {path}, then run `handrail restart`.", "dim"))


def mcp(
    workspace: Annotated[
        str | None, typer.Option(metavar="DIR", help="The workspace; relative paths start here.")
    ] = None,
) -> None:
    """Run the MCP server on stdin and stdout. MCP clients launch this command."""
    from handrail.door import mcp_stdio  # noqa: PLC0415

    raise typer.Exit(mcp_stdio.main(["--workspace", workspace] if workspace else []))


def _run_checks(backup: Path | None) -> "Iterator[Finding]":
    from handrail import doctor as checks  # noqa: PLC0415 - imports the store

    places = Places.find(os.environ)
    yield from checks.examine(places)
    if backup is not None:
        yield checks.back_up(places, backup)


def _show_finding(finding: "Finding") -> None:
    word, style = _LEVELS[finding.level]
    say((f"{word:<7}", style), f"{finding.name:<12}", finding.says)
    if finding.fix:
        say(" " * 19, ("→ " + finding.fix, "bold"))


@contextmanager
def _explain_hang() -> Generator[None]:
    """Add to the failure to reach a daemon that the keeper hangs, which keeps a daemon from starting."""
    try:
        yield
    except Failure as failure:
        pid = find_hung_keeper(Places.find(os.environ)) if failure.code is Code.NO_DAEMON else None
        if pid is None:
            raise
        raise Failure(f"{failure} {describe_hung_keeper(pid)}", failure.code) from None


def _build_status(link: Link, policy: "PolicyView | None") -> Status:
    health, state = link.get("health"), link.get("state")
    return Status(
        pid=link.pid,
        url=link.url,
        version=link.version,
        home=str(Places.find(os.environ).data),
        keeper_pid=health["keeper"]["pid"] if health["keeper"] else None,
        hung_keeper_pid=health.get("hung_keeper"),
        running=sum(call["status"] == "running" for call in state["calls"]),
        waiting=len(state["approvals"]),
        restarts=health.get("restarts", 0),
        restarted_at=health.get("restarted_at"),
        paused_since=state.get("pause", {}).get("since"),
        devices_url=link.get("devices")["url"],
        devices=sum(row["device"] for row in link.get("sign-ins")),
        held=tuple(format_change(change) for change in policy["changes"]) if policy else (),
    )


def _format_toml(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case _:  # strings and lists of strings are the same in TOML and JSON
            return json.dumps(value, ensure_ascii=False)
