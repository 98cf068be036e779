"""Moves of a client's MCP servers behind Handrail: the offer of `handrail connect`, and the way back of `handrail disconnect`.

The daemon adds and removes Handrail's entries and stores secrets; the client's file is edited here, as for `connect`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from handrail.cli.client import Link
from handrail.cli.commands.connect_options import Servers
from handrail.cli.failure import Failure
from handrail.cli.interactive.keyboard import confirm
from handrail.cli.render.connection_changes import show_changes
from handrail.cli.render.formats import format_count
from handrail.cli.render.output import Piece, note, print_table, say
from handrail.clients.client_facts import Client, Setup
from handrail.clients.config_edit import BadFile
from handrail.clients.config_file import FileProblem
from handrail.clients.connection_plan import ConnectionPlan, ConnectRefused, plan_connect
from handrail.clients.connection_plan import connect as carry_out
from handrail.clients.connections import Connections, MovedServer
from handrail.clients.mcp_entries import find_mcp_entries
from handrail.clients.server_move import KnownServers, MovePlan, ServerMove, digest_entry, plan_moves
from handrail.lazy_dataclass import dataclass
from handrail.paths import Places

if TYPE_CHECKING:
    from handrail.cli.wire import McpServerSection


def offer_move(
    client: Client, setup: Setup, connections: Connections, link: Link | None, choice: Servers, *, yes: bool
) -> None:
    """Say which other MCP servers a connected client starts, and move them if that is wished. Raises Failure.

    Without a link nothing is changed: the plan is only shown.
    """
    if choice == "keep":
        return
    found = find_moves(client, setup, connections, link)
    if choice == "ask" and (yes or not (sys.stdin.isatty() and sys.stdout.isatty())):
        _say_how(client, found)
        return
    for sentence in found.staying:
        note((sentence, "yellow"))
    if not found.moves:
        if choice == "move":
            say(
                f"{client.title} has no {'other ' if found.staying else ''}MCP server that can be moved behind Handrail."
            )
        return
    try:
        plan = plan_connect(client, setup, connections, found.moves)
    except ConnectRefused as problem:
        raise Failure(str(problem)) from None
    _show_moves(client, found.moves, plan)
    if link is None:
        return
    if not yes and not _confirm_move(client, found.moves, choice):
        return
    _move(plan, found.moves, connections, link)


def find_moves(client: Client, setup: Setup, connections: Connections, link: Link | None) -> MovePlan:
    """The servers of a client that can be moved. Raises Failure."""
    try:
        entries = find_mcp_entries(client, setup)
        moved = [server for each in connections.all() for server in each.servers]
    except (BadFile, FileProblem) as problem:
        raise Failure(str(problem)) from None
    if not entries:
        return MovePlan()
    stored = [row["name"] for row in link.get("secrets")] if link else []
    return plan_moves(
        client, setup, entries, KnownServers(sections=_read_sections(), secrets=stored, moved=moved)
    )


def _read_sections() -> dict[str, Mapping[str, Any]]:
    """The entries of config.toml by name. Raises Failure."""
    from handrail.config import BadConfig, load  # noqa: PLC0415 - takes a tenth of a second

    try:
        servers = load(Places.find(os.environ).config).servers
    except BadConfig as problem:
        raise Failure(str(problem)) from None
    return {each.name: each.model_dump(mode="json", exclude_defaults=True) for each in servers}


def _say_how(client: Client, found: MovePlan) -> None:
    """One line for a script, or for somebody who said yes to something else."""
    if found.moves:
        names = ", ".join(move.entry.name for move in found.moves)
        note(
            f"{client.title} also starts {format_count(len(found.moves), 'MCP server')} by itself ({names}), which stay as they "
            f"are. `handrail connect {client.name} --servers move` moves them behind Handrail.",
        )


def _show_moves(client: Client, moves: Sequence[ServerMove], plan: ConnectionPlan) -> None:
    say(
        f"{client.title} also starts {format_count(len(moves), 'MCP server')} by itself. Behind Handrail, every call of"
    )
    say("their tools is judged by your rules and recorded, and every connected client has them.")
    rows: list[tuple[Piece, ...]] = []
    for move in moves:
        section = move.section or move.entry.section
        what = section.get("url") or " ".join(section.get("command", ()))
        state: Piece = ("+ new", "green") if move.section else ("= is there", "dim")
        rows.append((move.entry.name, state, move.server.name, ", ".join(move.secrets), str(what)))
    print_table(("IN THE CLIENT", "", "HERE", "TO THE SECRET STORE", "WHAT"), rows)
    for move in moves:
        if move.lost:
            note((f"{move.entry.name}: {', '.join(move.lost)} has no effect behind Handrail.", "yellow"))
    show_changes(plan)


def _confirm_move(client: Client, moves: Sequence[ServerMove], choice: Servers) -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure("No server was moved: this needs a terminal to ask in, or --yes.")
    what = "it" if len(moves) == 1 else f"these {len(moves)}"
    if confirm(f"Move {what} behind Handrail?"):
        return True
    if choice == "move":
        raise Failure("No server was moved.")
    say(f"They stay as they are. `handrail connect {client.name} --servers move` moves them later.")
    return False


def _move(plan: ConnectionPlan, moves: Sequence[ServerMove], connections: Connections, link: Link) -> None:
    """Add the servers to Handrail, then take them out of the client's file; all or nothing. Raises Failure."""
    added, known = _Added(link, [], []), connections.find(plan.connection.key)
    try:
        for move in moves:
            added.add(move)
        carry_out(plan, connections, os.environ)
    except BaseException as problem:  # also Ctrl-C
        added.undo()
        if known is not None:
            connections.save(known)
        if isinstance(problem, ConnectRefused):
            raise Failure(f"{problem} No server was moved.") from None
        raise
    names = ", ".join(move.server.name for move in moves)
    say(
        ("✓ moved  ", "green"),
        f"{names}. {plan.client.title} gets their tools through Handrail from its next start.",
    )
    say(f"`handrail servers test {moves[0].server.name}` tries one out.")
    for move in moves:
        headers = move.section.get("headers", {})
        if "url" in move.section and not any(name.lower() == "authorization" for name in headers):
            say(f"`handrail servers login {move.server.name}` signs in, if it wants that.")
    say(f"`handrail disconnect {plan.client.name}` moves them back.")


@dataclass(frozen=True, slots=True)
class _Added:
    """What was added to Handrail so far."""

    link: Link
    servers: list[str]
    secrets: list[str]

    def add(self, move: ServerMove) -> None:
        """Raises Failure."""
        for name, value in move.secrets.items():
            self.link.put("secrets", name, body={"value": value})
            self.secrets.append(name)
        if move.section:
            self.link.post("servers", body=cast("McpServerSection", move.section))
            self.servers.append(move.server.name)

    def undo(self) -> None:
        try:
            for name in self.servers:
                self.link.delete("servers", name)
            for name in self.secrets:
                self.link.delete("secrets", name)
        except Failure as problem:
            names = ", ".join([*self.servers, *self.secrets])
            note((f"Not all of {names} could be removed from Handrail again: {problem}", "yellow"))


@dataclass(frozen=True, slots=True)
class Return:
    """What becomes of Handrail's side when a client gets its servers back."""

    servers: tuple[MovedServer, ...]
    """They are removed from Handrail."""
    notes: tuple[str, ...]
    """Why others stay."""


def plan_return(plans: Sequence[ConnectionPlan], connections: Connections) -> Return:
    """Which servers leave Handrail when these clients are disconnected. Raises Failure."""
    leaving = {plan.connection.key for plan in plans}
    rest = {
        server.name: each for each in connections.all() if each.key not in leaving for server in each.servers
    }
    moved = [(plan, server) for plan in plans for server in plan.connection.servers]
    if not moved:
        return Return((), ())
    sections = _read_sections()
    servers, notes = dict[str, MovedServer](), list[str]()
    for plan, server in moved:
        if server.name in servers or server.name not in sections or not server.is_ours:
            continue
        why = ""
        if server.name in rest:
            why = f"it was moved from {rest[server.name].client}, too"
        elif server not in plan.returning:
            why = f"its entry cannot be put back into the file of {plan.client.title}"
        elif digest_entry(sections[server.name]) != server.entry:
            why = "its entry in config.toml was changed since"
        if why:
            notes.append(
                f"{server.name} stays behind Handrail: {why}. `handrail servers remove {server.name}` removes it."
            )
        else:
            servers[server.name] = server
    return Return(tuple(servers.values()), tuple(notes))


def describe_return(back: Return) -> Iterator[str]:
    """What is to happen to Handrail's side, as sentences."""
    if back.servers:
        secrets = [name for each in back.servers for name in each.secrets]
        stored = f", with the stored secrets {', '.join(secrets)}" if secrets else ""
        yield f"To be removed from Handrail: {', '.join(each.name for each in back.servers)}{stored}."
    yield from back.notes


def remove_returned(back: Return, link: Link) -> None:
    """Remove the servers and their secrets from Handrail, after the client's file was restored."""
    for server in back.servers:
        try:
            link.delete("servers", server.name)
        except Failure as problem:
            note((f"{server.name} is still behind Handrail, too: {problem}", "yellow"))
            continue
        needed = {row["name"] for row in link.get("secrets") if row["servers"]}
        for name in server.secrets:
            if name not in needed:
                link.delete("secrets", name)
