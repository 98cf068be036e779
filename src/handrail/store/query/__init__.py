"""Questions to the store.

Owns the SQL that reads, and the one place where a call's status is derived. Does not know the journal: it sees
what is committed, through a connection of its own. rows.py makes the answers.
"""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from handrail.store.reader import Reader
from handrail.store.records import (
    ApprovalRecord,
    CallDetail,
    CallRecord,
    CredentialRecord,
    Status,
    TerminalRecord,
    TypedRecord,
)
from handrail.store.rows import approval_of, call_of, credential_of, detail_of, terminal_of, typed_of
from handrail.store.value import Caller, TerminalKind

Value = str | int


@asynccontextmanager
async def open_records(path: Path) -> AsyncGenerator["Records"]:
    """The records in the database at `path`, which a journal must have opened before."""
    records = Records(Reader(path))
    try:
        yield records
    finally:
        records.close()


class Records:
    """What is known of every noun, newest first unless said otherwise."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def calls(
        self,
        status: Status | None = None,
        tool: str | None = None,
        client: str | None = None,
        q: str | None = None,
        before: int | None = None,
        limit: int = 200,
        of: Caller | None = None,
        open_only: bool = False,
    ) -> list[CallRecord]:
        """Calls that meet every condition given.

        `before` is the `opened_seq` of the last one seen; `of` means made by this client, or in its workspace.
        """
        where = _Where()
        if of is not None:
            where.add("(calls.caller_key = ? OR calls.workspace = ?)", of.key, of.workspace)
        if open_only:
            where.plain("calls.ending IS NULL")
        where.add("calls.tool = ?", tool)
        where.add("calls.client = ?", client)
        where.add("calls.opened_seq < ?", before)
        if status is not None:
            where.add("status = ?", status)
            # Follows from the line above; said so that an index can serve it.
            where.plain("calls.ending IS NULL") if status in _OPEN else where.add("calls.ending = ?", status)
        if q:
            where.add(_TEXT, f"%{_escaped(q)}%")
        sql = f"{_CALLS}{where} ORDER BY calls.opened_seq DESC LIMIT ?"
        return await self._reader.read(
            lambda db: [call_of(row) for row in db.execute(sql, (*where.values, limit))]
        )

    async def call(self, id: str) -> CallDetail | None:
        details = await self._details("WHERE calls.id = ?", id)
        return details[0] if details else None

    async def open_calls(self) -> list[CallDetail]:
        """Calls without an outcome, oldest first: what a restart finds."""
        return await self._details("WHERE calls.ending IS NULL")

    async def interrupted_last(self) -> int:
        """How many calls were interrupted since a daemon last started."""
        return await self._reader.read(lambda db: int(db.execute(_INTERRUPTED).fetchone()[0]))

    async def unwinding_calls(self) -> list[CallDetail]:
        """Settled calls whose work was not seen to end, oldest first."""
        return await self._details("WHERE calls.ending IS NOT NULL AND calls.stopped_at IS NULL")

    async def approvals(self, open_only: bool) -> list[ApprovalRecord]:
        """Oldest first while they are open: who has waited longest stands on top."""
        if open_only:
            return await self._approvals(f"WHERE {_IS_OPEN} ORDER BY approvals.opened_seq")
        return await self._approvals(f"ORDER BY approvals.opened_seq DESC LIMIT {_APPROVALS_MAX}")

    async def approval(self, id: str) -> ApprovalRecord | None:
        found = await self._approvals("WHERE approvals.id = ?", id)
        return found[0] if found else None

    async def terminals(
        self,
        running_only: bool = False,
        of: tuple[TerminalKind, ...] | None = None,
        before: int | None = None,
        limit: int = 200,
    ) -> list[TerminalRecord]:
        """Those of these kinds; `before` is the `opened_seq` of the last one seen."""
        where = _Where()
        where.add("opened_seq < ?", before)
        where.among('"of"', of)
        if running_only:
            where.plain("ended_at IS NULL")
        return await self._terminals(f"{where} ORDER BY opened_seq DESC LIMIT ?", *where.values, limit)

    async def terminals_with_output(self, after: str = "", limit: int = 1000) -> list[TerminalRecord]:
        """Ended ones whose output is not forgotten, by their id."""
        rest = " WHERE ended_at IS NOT NULL AND forgotten_at IS NULL AND id > ? ORDER BY id LIMIT ?"
        return await self._terminals(rest, after, limit)

    async def terminal(self, id: str) -> TerminalRecord | None:
        found = await self._terminals(" WHERE id = ?", id)
        return found[0] if found else None

    async def typed(self, terminal: str, limit: int = 200) -> list[TypedRecord]:
        """What was typed into a terminal last, in the order it was typed."""
        sql = "SELECT * FROM typed WHERE terminal = ? ORDER BY seq DESC LIMIT ?"
        rows = await self._reader.read(lambda db: db.execute(sql, (terminal, limit)).fetchall())
        return [typed_of(row) for row in reversed(rows)]

    async def credentials(self) -> list[CredentialRecord]:
        """Every one ever issued, oldest first; the revoked ones say so."""
        sql = "SELECT * FROM credentials ORDER BY issued_at, id"
        return await self._reader.read(lambda db: [credential_of(row) for row in db.execute(sql)])

    def close(self) -> None:
        self._reader.close()

    async def _details(self, where: str, *values: Value) -> list[CallDetail]:
        sql = f"{_CALLS} {where} ORDER BY calls.opened_seq"

        def read(db: sqlite3.Connection) -> list[CallDetail]:
            return [_detail(db, row) for row in db.execute(sql, values).fetchall()]

        return await self._reader.read(read)

    async def _terminals(self, rest: str, *values: Value | None) -> list[TerminalRecord]:
        sql = f"SELECT *, {_TYPED_TO} AS typed_to FROM terminals{rest}"
        return await self._reader.read(lambda db: [terminal_of(row) for row in db.execute(sql, values)])

    async def _approvals(self, rest: str, *values: Value) -> list[ApprovalRecord]:
        sql = f"{_APPROVALS} {rest}"
        return await self._reader.read(lambda db: [approval_of(row) for row in db.execute(sql, values)])


class _Where:
    """The conditions of a query; one that is not asked for is left out."""

    def __init__(self) -> None:
        self.values: list[Value | None] = []
        self._conditions: list[str] = []

    def add(self, condition: str, value: Value | None, *more: Value | None) -> None:
        if value is not None:
            self._conditions.append(condition)
            self.values += (value, *more)

    def among(self, column: str, wanted: tuple[Value, ...] | None) -> None:
        if wanted is not None:
            self._conditions.append(f"{column} IN ({', '.join('?' * len(wanted))})")
            self.values += wanted

    def plain(self, condition: str) -> None:
        self._conditions.append(condition)

    def __str__(self) -> str:
        return f" WHERE {' AND '.join(self._conditions)}" if self._conditions else ""


def _detail(db: sqlite3.Connection, row: sqlite3.Row) -> CallDetail:
    asked = db.execute(f"{_APPROVALS} WHERE approvals.id = ?", (row["approval"],)).fetchone()
    seqs = (row["opened_seq"], row["started_seq"], row["settled_seq"], row["stopped_seq"])
    payloads = db.execute(_PAYLOADS, seqs).fetchall()
    return detail_of(call_of(row), None if asked is None else approval_of(asked), payloads)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


_INTERRUPTED = """
SELECT count(*) FROM calls WHERE ending = 'interrupted' AND settled_seq > (
    SELECT coalesce((SELECT seq FROM events WHERE kind = 'DaemonStarted' ORDER BY seq DESC LIMIT 1), 0)
)"""
_OPEN = ("waiting", "running")
_APPROVALS_MAX = 1000
"""Bounds what the list of all approvals, previews included, may hold in memory."""

_IS_OPEN = "approvals.answered_at IS NULL AND approvals.withdrawn_at IS NULL"
# A call's status is its ending; without one it waits while an approval of it is open, and else it runs.
_STATUS = f"""coalesce(calls.ending, CASE WHEN EXISTS (
    SELECT 1 FROM approvals WHERE approvals.call = calls.id AND {_IS_OPEN}
) THEN 'waiting' ELSE 'running' END)"""
_CALLS = f"SELECT calls.*, {_STATUS} AS status FROM calls"
_NAMES = "calls.id || ' ' || calls.tool || ' ' || calls.title || ' ' || calls.client"
_TEXT = rf"({_NAMES} || ' ' || coalesce(calls.message, '')) LIKE ? ESCAPE '\'"
_APPROVALS = """
SELECT approvals.*, calls.tool, calls.title, calls.door, calls.client, calls.caller_key, calls.workspace,
       calls.thread, calls.operation, events.payload
FROM approvals JOIN calls ON calls.id = approvals.call JOIN events ON events.seq = approvals.opened_seq"""
_PAYLOADS = "SELECT payload FROM events WHERE seq IN (?, ?, ?, ?) AND payload IS NOT NULL ORDER BY seq"
_TYPED_TO = '(SELECT max("offset") FROM typed WHERE typed.terminal = terminals.id)'
