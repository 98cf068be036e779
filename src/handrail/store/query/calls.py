"""Questions about calls. Owns the one place where a call's status is derived."""

import sqlite3

from handrail.store.query.approvals import APPROVALS, IS_OPEN
from handrail.store.query.asking import Asking, Value, Where
from handrail.store.records import CallDetail, CallRecord, Status, Usual
from handrail.store.rows import approval_of, call_of, detail_of
from handrail.store.value import Caller

_ALIKE_MAX, _ALIKE_MIN = 50, 3
"""How many calls alike are looked at, and below how many nothing can be said of what is usual."""


class Calls(Asking):
    """What is known of calls."""

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
        where = Where()
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
        return await self._all(call_of, sql, (*where.values, limit))

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

    async def calls_of_operation(self, operation: str) -> list[CallRecord]:
        """Oldest first."""
        return await self._all(
            call_of, f"{_CALLS} WHERE calls.operation = ? ORDER BY calls.opened_seq", (operation,)
        )

    async def calls_of_thread(self, thread: str) -> list[CallRecord]:
        """Oldest first."""
        return await self._all(
            call_of, f"{_CALLS} WHERE calls.thread = ? ORDER BY calls.opened_seq", (thread,)
        )

    async def usual(self, tool: str, title: str) -> Usual | None:
        """How long the last calls alike took from their start, without the time they waited for a person.

        None when there were too few to tell.
        """
        took = sorted(await self._all(lambda row: int(row[0]), _ALIKE, (tool, title, _ALIKE_MAX)))
        if len(took) < _ALIKE_MIN:
            return None
        return Usual(median_ms=took[len(took) // 2], p95_ms=took[len(took) * 95 // 100], of=len(took))

    async def _details(self, where: str, *values: Value) -> list[CallDetail]:
        sql = f"{_CALLS} {where} ORDER BY calls.opened_seq"

        def read(db: sqlite3.Connection) -> list[CallDetail]:
            return [_detail(db, row) for row in db.execute(sql, values).fetchall()]

        return await self._reader.read(read)


def _detail(db: sqlite3.Connection, row: sqlite3.Row) -> CallDetail:
    asked = db.execute(f"{APPROVALS} WHERE approvals.id = ?", (row["approval"],)).fetchone()
    edited = asked["answered_seq"] if asked is not None and asked["edited"] else None
    seqs = (row["opened_seq"], edited, row["started_seq"], row["settled_seq"], row["stopped_seq"])
    payloads = db.execute(_PAYLOADS, seqs).fetchall()
    return detail_of(call_of(row), None if asked is None else approval_of(asked), payloads)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


_INTERRUPTED = """
SELECT count(*) FROM calls WHERE ending = 'interrupted' AND settled_seq > (
    SELECT coalesce((SELECT seq FROM events WHERE kind = 'DaemonStarted' ORDER BY seq DESC LIMIT 1), 0)
)"""
_OPEN = ("waiting", "running")

# A call's status is its ending; without one it waits while an approval of it is open, and else it runs.
_STATUS = f"""coalesce(calls.ending, CASE WHEN EXISTS (
    SELECT 1 FROM approvals WHERE approvals.call = calls.id AND {IS_OPEN}
) THEN 'waiting' ELSE 'running' END)"""
_CALLS = f"SELECT calls.*, {_STATUS} AS status FROM calls"
_NAMES = "calls.id || ' ' || calls.tool || ' ' || calls.title || ' ' || calls.client"
_TEXT = rf"({_NAMES} || ' ' || coalesce(calls.message, '')) LIKE ? ESCAPE '\'"
_PAYLOADS = "SELECT payload FROM events WHERE seq IN (?, ?, ?, ?, ?) AND payload IS NOT NULL ORDER BY seq"
_ALIKE = """
SELECT max(0, settled_at - started_at) FROM calls
WHERE tool = ? AND title = ? AND ending = 'done' AND started_at IS NOT NULL
ORDER BY opened_seq DESC LIMIT ?"""
