"""Rebuild rules, trusted folders and the accepted tools of MCP servers from their events, and compare the tables that
are derived from these events.

The tables are not evidence: a process with the user's rights can write to them. Each event that is used must match its
payload hash and follow from the event before it. Whether the whole chain was recomputed is not checked here.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from pydantic import ValidationError

from handrail.lazy_dataclass import dataclass
from handrail.store.database import Statement, lenient_text, migrate, open_reader, shipped
from handrail.store.events import decode
from handrail.store.hash_chain import GENESIS, chained, payload_hash
from handrail.store.journal_compaction import find_gap_before
from handrail.store.mcp_servers import PinnedServer, ServerToolsPinned, server_of
from handrail.store.mcp_servers import statement as pin_statement
from handrail.store.pauses import PauseRecord, find_pause
from handrail.store.rules import (
    RULE_KINDS,
    FolderRecord,
    RuleEvent,
    RuleRecord,
    folder_of,
    rule_of,
    statement,
)

Cells = tuple[str | int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleReplay:
    """Rules and trusted folders as their events have them."""

    rules: tuple[RuleRecord, ...]
    """Rules in force, oldest first."""
    folders: tuple[FolderRecord, ...]
    faults: tuple[str, ...]
    """Events that were altered, and tables that differ from the events, each as a sentence."""
    repair: tuple[Statement, ...]
    """Statements that rebuild the tables; empty if they match."""
    pause: PauseRecord | None
    """The pause of all agents that goes on."""
    servers: tuple[PinnedServer, ...]
    """The accepted tools of each MCP server."""


def replay_rules(path: Path) -> RuleReplay:
    """Replay the events in the database at `path`. Reads only, also while a daemon writes. Blocks.

    Raises `sqlite3.Error` if the events cannot be read.
    """
    with closing(open_reader(path)) as connection, closing(_new_tables()) as replayed:
        connection.text_factory = lenient_text
        rows = connection.execute(RULE_EVENTS).fetchall()
        pauses = connection.execute(PAUSE_EVENTS).fetchall()
        pins = connection.execute(PIN_EVENTS).fetchall()
        faults = [
            fault
            for row in (*rows, *pauses, *pins)
            if (fault := _replay(replayed, row, _chain_before(connection, row)))
        ]
        tables = [(name, _cells(replayed, name), _cells(connection, name)) for name in _NOUNS]
        differences = [each for table in tables for each in _compare(*table)]
        return RuleReplay(
            rules=tuple(rule_of(row) for row in replayed.execute(_IN_FORCE)),
            folders=tuple(folder_of(row) for row in replayed.execute(_FOLDERS)),
            faults=(*faults, *differences),
            repair=tuple(_rebuild(tables)) if differences else (),
            pause=find_pause(pauses),
            servers=tuple(server_of(row) for row in replayed.execute(_SERVERS)),
        )


_EVENTS = """
SELECT *, (SELECT before.chain FROM events AS before WHERE before.seq < events.seq
           ORDER BY before.seq DESC LIMIT 1) AS before_chain,
          (SELECT max(before.seq) FROM events AS before WHERE before.seq < events.seq) AS before_seq
FROM events WHERE kind IN ({}) ORDER BY seq"""
RULE_EVENTS = _EVENTS.format(", ".join(f"'{kind}'" for kind in RULE_KINDS))
PAUSE_EVENTS = _EVENTS.format("'AgentsPaused', 'AgentsResumed'")
PIN_EVENTS = _EVENTS.format("'ServerToolsPinned'")
_IN_FORCE = "SELECT * FROM rules WHERE removed_at IS NULL ORDER BY added_seq"
_FOLDERS = "SELECT * FROM folders ORDER BY folder"
_SERVERS = "SELECT * FROM mcp_servers ORDER BY name"
_NOUNS = {"rules": "rule", "folders": "trusted folder", "mcp_servers": "list of accepted tools of"}
"""The derived tables, each with the words in front of the name of one row."""


def _new_tables() -> sqlite3.Connection:
    """An empty database in memory with this version's tables, whatever the schema in the file is."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.row_factory = sqlite3.Row
    migrate(connection, shipped())
    return connection


def _replay(tables: sqlite3.Connection, row: sqlite3.Row, before: bytes) -> str:
    """Apply an event that follows `before` to the tables; returns a sentence if it cannot be used."""
    if row["payload"] is None or payload_hash(row["payload"]) != row["payload_hash"]:
        return f"Event {row['seq']} ({row['kind']}) was altered, so it is not used."
    if chained(before, row["seq"], row["at"], row["kind"], row["payload_hash"]) != row["chain"]:
        return (
            f"Event {row['seq']} ({row['kind']}) does not follow from the one before it, so it is not used."
        )
    try:
        event = decode(row["payload"])
    except ValidationError:
        return f"Event {row['seq']} ({row['kind']}) cannot be read, so it is not used."
    if isinstance(event, RuleEvent):
        tables.execute(*statement(row["seq"], row["at"], event))
    elif isinstance(event, ServerToolsPinned):
        tables.execute(*pin_statement(row["seq"], event))
    return ""


def _chain_before(connection: sqlite3.Connection, row: sqlite3.Row) -> bytes:
    """The hash of the event before this one, which may have been removed by a compaction."""
    gap = find_gap_before(connection, row["seq"])
    if gap is not None and gap.last > (row["before_seq"] or 0):
        return bytes.fromhex(gap.chain)
    return row["before_chain"] or GENESIS


def _cells(connection: sqlite3.Connection, table: str) -> dict[str, Cells]:
    """Every row by its key, which is the first column. A table that cannot be read counts as empty."""
    try:
        return {str(row[0]): tuple(row) for row in connection.execute(f"SELECT * FROM {table}")}
    except sqlite3.Error:
        return {}


def _compare(table: str, replayed: Mapping[str, Cells], stored: Mapping[str, Cells]) -> Iterator[str]:
    noun = _NOUNS[table]
    for key in sorted({*replayed, *stored}):
        if key not in replayed:
            yield f"The database has a {noun} {key} that no event added."
        elif key not in stored:
            yield f"The {noun} {key} is missing in the database, though an event added it."
        elif replayed[key] != stored[key]:
            yield f"The {noun} {key} in the database is not as its events have it."


def _rebuild(tables: list[tuple[str, dict[str, Cells], dict[str, Cells]]]) -> Iterator[Statement]:
    for table, replayed, _ in tables:
        yield f"DELETE FROM {table}", ()
        for cells in replayed.values():
            yield f"INSERT INTO {table} VALUES ({', '.join('?' * len(cells))})", cells
