"""Questions about operations, and about what they were busy with."""

import json
import sqlite3
from typing import Any

from handrail.store.query.asking import Asking
from handrail.store.thread.record import OperationDetail, OperationRecord
from handrail.store.thread.rows import activity_of, operation_of


class Operations(Asking):
    """What is known of operations."""

    async def open_operations(self) -> list[OperationRecord]:
        """Those that did not end, oldest first: what a restart finds."""
        sql = "SELECT * FROM operations WHERE ended_at IS NULL ORDER BY opened_seq"
        return await self._all(operation_of, sql)

    async def operation(self, id: str) -> OperationRecord | None:
        found = await self._all(operation_of, "SELECT * FROM operations WHERE id = ?", (id,))
        return found[0] if found else None

    async def operation_detail(self, id: str) -> OperationDetail | None:
        """One with all that it was busy with."""
        return await self._reader.read(lambda db: _detail(db, id))


def _detail(db: sqlite3.Connection, id: str) -> OperationDetail | None:
    row = db.execute(_WITH_ENDING, (id,)).fetchone()
    if row is None:
        return None
    ended: dict[str, Any] = json.loads(row["payload"] or "{}")
    return OperationDetail(
        operation=operation_of(row),
        cancelled_calls=tuple(ended.get("cancelled_calls", ())),
        cancelled_activities=tuple(ended.get("cancelled_activities", ())),
        activities=tuple(activity_of(each) for each in db.execute(_ACTIVITIES, (id, id))),
    )


_WITH_ENDING = """
SELECT operations.*, events.payload FROM operations LEFT JOIN events ON events.seq = operations.ended_seq
WHERE operations.id = ?"""
# Which of our calls an agent's call is, only the conversation knows.
_ACTIVITIES = """
WITH shown AS (
    SELECT json_extract(parts.data, '$.id') AS tool_call, max(json_extract(parts.data, '$.call')) AS call
    FROM operations JOIN messages ON messages.thread = operations.thread AND messages.operation = operations.id
    JOIN parts ON parts.message = messages.id AND parts.kind = 'call'
    WHERE operations.id = ? GROUP BY 1
)
SELECT activities.*, shown.call FROM activities
LEFT JOIN shown ON activities.tool_call != '' AND shown.tool_call = activities.tool_call
WHERE activities.operation = ? ORDER BY activities.rowid"""
