"""MCP servers behind the gate: events, records and SQL for the tools that were accepted from each."""

import json
import sqlite3
from dataclasses import asdict
from typing import Literal, cast

from handrail.lazy_dataclass import dataclass
from handrail.store.database import Statement
from handrail.store.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerToolsPinned:
    """The definitions of a server's tools that count as known. A tool with another definition asks a person."""

    kind: Literal["ServerToolsPinned"] = "ServerToolsPinned"
    server: str
    tools: tuple[Json, ...]
    """The definitions as the server sent them."""
    capabilities: Json
    """The server's capabilities, as it sent them."""
    why: str
    """`first listing`, or the approval of a call: `approval:ID`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStarted:
    """An MCP server was started for a client."""

    kind: Literal["ServerStarted"] = "ServerStarted"
    server: str
    client: str
    terminal: str
    """Empty for a server over HTTP."""
    pid: int
    version: str
    """The server's name and version, as it reports them."""
    protocol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEnded:
    """An MCP server ended, or could not be started."""

    kind: Literal["ServerEnded"] = "ServerEnded"
    server: str
    client: str
    terminal: str
    why: str
    said: tuple[str, ...] = ()
    """The last lines of its standard error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedServer:
    """The stored state of a server."""

    name: str
    tools: tuple[Json, ...]
    capabilities: Json


def server_of(row: sqlite3.Row) -> PinnedServer:
    return PinnedServer(
        name=str(row["name"]),
        tools=tuple(cast("list[Json]", json.loads(row["tools"]))),
        capabilities=cast("Json", json.loads(row["capabilities"])),
    )


def statement(seq: int, event: ServerToolsPinned) -> Statement:
    fields = asdict(event)
    tools, capabilities = (json.dumps(fields[name]) for name in ("tools", "capabilities"))
    return _PINNED, (event.server, tools, capabilities, seq)


_PINNED = "INSERT OR REPLACE INTO mcp_servers (name, tools, capabilities, seq) VALUES (?, ?, ?, ?)"
