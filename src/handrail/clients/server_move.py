"""Moves of MCP servers from a client's configuration behind Handrail.

A move is planned without changing anything. Handrail's entry is added by the daemon; the client's entry is taken out as a
piece of the connection, so that disconnect puts it back.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from handrail.clients.client_facts import Client, Setup
from handrail.clients.connections import MovedServer
from handrail.clients.mcp_entries import McpEntry
from handrail.clients.mcp_secrets import split_secrets
from handrail.clients.pieces import ConfigPiece
from handrail.lazy_dataclass import dataclass

_UNDERSTOOD = {
    "args", "command", "cwd", "description", "disabled", "enabled", "env", "env_vars", "environment", "headers",
    "http_headers", "httpUrl", "name", "serverUrl", "source", "transport", "type", "uri", "url",
}  # fmt: skip
"""Fields of clients' entries that Handrail's entry expresses, or that say nothing about the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerMove:
    """One server of a client that goes behind Handrail."""

    entry: McpEntry
    piece: ConfigPiece
    """Takes the entry out of the client's file."""
    server: MovedServer
    """The record."""
    section: Mapping[str, Any]
    """Handrail's entry. Empty if Handrail has this server already."""
    secrets: Mapping[str, str]
    """Values for the secret store, by name."""
    lost: tuple[str, ...]
    """Settings of the client's entry that have no effect behind Handrail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownServers:
    """What is behind Handrail already."""

    sections: Mapping[str, Mapping[str, Any]]
    """The entries of config.toml by name, without defaults."""
    secrets: Collection[str]
    """Names of secrets that are stored or needed."""
    moved: Sequence[MovedServer]
    """Servers that were moved from any client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePlan:
    """The servers that can be moved, and why others stay."""

    moves: tuple[ServerMove, ...] = ()
    staying: tuple[str, ...] = ()
    """Sentences that begin with the name of the server."""


def plan_moves(client: Client, setup: Setup, entries: Sequence[McpEntry], known: KnownServers) -> MovePlan:
    """Which of a client's servers can be moved behind Handrail."""
    moves, staying = dict[str, ServerMove](), list[str]()
    taken = set(known.secrets)
    for entry in entries:
        try:
            _check_movable(client, setup, entry, moves)
            move = _plan_move(client, setup, entry, known, taken)
        except _Stays as reason:
            staying.append(f"{entry.name} stays with {client.title}: {reason}")
            continue
        taken |= move.secrets.keys()
        moves[move.server.name] = move
    return MovePlan(moves=tuple(moves.values()), staying=tuple(staying))


class _Stays(Exception):
    """The message says why a server is not moved."""


def _check_movable(client: Client, setup: Setup, entry: McpEntry, moves: Mapping[str, ServerMove]) -> None:
    if entry.problem:
        raise _Stays(entry.problem.removeprefix(f"{entry.name}: "))
    if entry.section.get("enabled") is False:
        raise _Stays("it is disabled there.")
    if setup.scope == "project" and (root := _find_repository(entry.path)) is not None:
        raise _Stays(
            f"{entry.path} belongs to the repository {root}, and so to others, too. `handrail servers import "
            f"{client.name} --scope project` adds it to Handrail and leaves the file alone."
        )
    if (name := entry.section["name"]) in moves:
        raise _Stays(f"another server of {client.title} gets the name {name}, too. Rename one.")


def _plan_move(
    client: Client, setup: Setup, entry: McpEntry, known: KnownServers, taken: Collection[str]
) -> ServerMove:
    split = split_secrets(entry.section, taken)
    if split.problem:
        raise _Stays(split.problem)
    name, section = str(split.section["name"]), _normalize(split.section)
    piece = ConfigPiece(
        path=entry.path,
        kind="absent",
        format=entry.format,
        pointer=entry.pointer,
        add=client.removal_command(setup, entry.name),
    )
    server = MovedServer(
        name=name,
        place=piece.place,
        source=digest_entry(entry.section),
        entry=digest_entry(section),
        secrets=tuple(split.secrets),
        is_ours=True,
    )
    lost = tuple(key for key in entry.value if key not in _UNDERSTOOD)
    move = ServerMove(
        entry=entry, piece=piece, server=server, section=section, secrets=split.secrets, lost=lost
    )
    there = known.sections.get(name)
    return move if there is None else _share(move, there, known)


def _share(move: ServerMove, there: Mapping[str, Any], known: KnownServers) -> ServerMove:
    """The move of a server that Handrail has already: only the client's entry goes."""
    name, digest = move.server.name, digest_entry(there)
    same = (each for each in known.moved if each.name == name and each.source == move.server.source)
    earlier = next((each for each in same if each.entry == digest), None)
    # What somebody added or imported has its secrets under the names of their variables.
    plain = split_secrets(move.entry.section, ())
    if earlier is None and digest != digest_entry(_normalize(plain.section)):
        raise _Stays(
            f"Handrail has another server called {name}. Rename one of them, or remove the one that is not needed."
        )
    server = replace(
        move.server,
        entry=digest,
        secrets=earlier.secrets if earlier else (),
        is_ours=earlier is not None and earlier.is_ours,
    )
    return replace(move, server=server, section={}, secrets={})


def _normalize(section: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entry as config.toml will have it."""
    from pydantic import ValidationError  # noqa: PLC0415 - not needed by most commands

    from handrail.config import McpServerSection  # noqa: PLC0415

    try:
        return McpServerSection.model_validate(section).model_dump(mode="json", exclude_defaults=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(each) for each in first["loc"])
        words = first["msg"].removeprefix("Value error, ")
        raise _Stays(f"Handrail cannot have it ({where + ': ' if where else ''}{words}).") from None


def _find_repository(path: Path) -> Path | None:
    return next((each for each in path.resolve().parents if (each / ".git").exists()), None)


def digest_entry(section: Mapping[str, Any]) -> str:
    """A digest that is equal for equal entries, whatever the order of their fields."""
    return hashlib.sha256(json.dumps(section, sort_keys=True, default=str).encode()).hexdigest()
