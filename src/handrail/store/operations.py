"""Operations: events, records, queries and SQL for the work on one prompt, and the activities within it.

Activities form a tree whose root is the operation; only some agents report them. Their titles are deleted with
their thread, also from the journal.
"""

import json
import sqlite3
from typing import Any, Literal

from handrail.lazy_dataclass import dataclass
from handrail.store.database import Statement
from handrail.store.query import Queries, column_names, columns_of
from handrail.store.values import ActivityEnding, ActivityKind, Caller, Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationOpened:
    """The work on one prompt began."""

    kind: Literal["OperationOpened"] = "OperationOpened"
    operation: str
    caller: Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationEnded:
    """The work on one prompt ended, and all its calls with it."""

    kind: Literal["OperationEnded"] = "OperationEnded"
    operation: str
    cancelled_by: str | None
    cancelled_calls: tuple[str, ...] = ()
    cancelled_activities: tuple[str, ...] = ()
    """Titles of the activities running at that time: "asking the model", "Run pytest"."""
    stop: Stop | None = None
    """Why it ended, as reported by the agent or known to Handrail; None for work without an agent."""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityStarted:
    """An activity began: a model request, thinking, a call, a sub-agent, a compaction."""

    kind: Literal["ActivityStarted"] = "ActivityStarted"
    thread: str
    operation: str
    activity: str
    parent: str | None
    sort: ActivityKind
    title: str
    tool_call: str = ""
    """The agent's id of the tool call, if the activity is a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityEnded:
    """An activity ended or was cancelled."""

    kind: Literal["ActivityEnded"] = "ActivityEnded"
    thread: str
    operation: str
    activity: str
    sort: ActivityKind
    how: ActivityEnding
    by: str = ""
    """Who cancelled it, or cancelled its parent; empty if its agent did, or it was not cancelled."""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRecord:
    """The work on one prompt; running while `ended_at` is None."""

    id: str
    thread: str | None
    client: str
    workspace: str | None
    opened_at: int
    ended_at: int | None
    cancelled_by: str | None
    stop: Stop | None
    error: str
    opened_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityRecord:
    """One activity of an operation; running while `ended_at` is None."""

    id: str
    parent: str | None
    sort: ActivityKind
    title: str
    tool_call: str
    """The agent's id of the tool call, if the activity is a call."""
    call: str | None
    """The id of Handrail's call, if a message in the thread links it."""
    started_at: int
    ended_at: int | None
    how: ActivityEnding | None
    by: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationHistory:
    """One operation with its activities, in start order."""

    operation: OperationRecord
    cancelled_calls: tuple[str, ...]
    cancelled_activities: tuple[str, ...]
    activities: tuple[ActivityRecord, ...]


class OperationQueries(Queries):
    """Queries for operations."""

    async def still_open(self) -> list[OperationRecord]:
        """Return operations that did not end, oldest first; used at a restart."""
        sql = "SELECT * FROM operations WHERE ended_at IS NULL ORDER BY opened_seq"
        return await self._all(operation_of, sql)

    async def get(self, id: str) -> OperationRecord | None:
        found = await self._all(operation_of, "SELECT * FROM operations WHERE id = ?", (id,))
        return found[0] if found else None

    async def history(self, id: str) -> OperationHistory | None:
        """Return one operation with its activities."""
        return await self._reader.read(lambda db: _detail(db, id))


def _detail(db: sqlite3.Connection, id: str) -> OperationHistory | None:
    row = db.execute(_WITH_ENDING, (id,)).fetchone()
    if row is None:
        return None
    ended: dict[str, Any] = json.loads(row["payload"] or "{}")
    return OperationHistory(
        operation=operation_of(row),
        cancelled_calls=tuple(ended.get("cancelled_calls", ())),
        cancelled_activities=tuple(ended.get("cancelled_activities", ())),
        activities=tuple(activity_of(each) for each in db.execute(_ACTIVITIES, (id, id))),
    )


_WITH_ENDING = """
SELECT operations.*, events.payload FROM operations LEFT JOIN events ON events.seq = operations.ended_seq
WHERE operations.id = ?"""
# Only message parts map an agent's tool call to a call of ours.
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


def operation_of(row: sqlite3.Row) -> OperationRecord:
    return OperationRecord(**columns_of(row, _OPERATION_COLUMNS))


def activity_of(row: sqlite3.Row) -> ActivityRecord:
    return ActivityRecord(**columns_of(row, _ACTIVITY_COLUMNS))


_OPERATION_COLUMNS = column_names(OperationRecord)
_ACTIVITY_COLUMNS = column_names(ActivityRecord)


def statements(seq: int, at: int, event: OperationOpened | OperationEnded) -> list[Statement]:
    match event:
        case OperationOpened(operation=id, caller=who):
            return [(_OPENED, (id, who.thread, who.client, who.workspace, at, seq))]
        case OperationEnded(operation=id, cancelled_by=by, stop=stop, error=error):
            return [(_ENDED, (at, by, stop, error, seq, id)), *closed(seq, at, event)]


_OPENED = """
INSERT INTO operations (id, thread, client, workspace, opened_at, opened_seq)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_ENDED = """
UPDATE operations SET ended_at = ?, cancelled_by = ?, stop = ?, error = ?, ended_seq = ?
WHERE id = ? AND ended_at IS NULL"""


def activity_statements(seq: int, at: int, event: ActivityStarted | ActivityEnded) -> list[Statement]:
    match event:
        case ActivityStarted(thread=thread):
            named = (event.operation, event.activity, thread, event.parent, event.sort, event.title)
            return [(_STARTED, (*named, event.tool_call, at, thread)), (_WORDS, (thread, seq))]
        case ActivityEnded(thread=thread, operation=operation, activity=id):
            ended = (_ACTIVITY_ENDED, (at, event.how, event.by, event.detail, operation, id))
            return [ended, (_WORDS, (thread, seq))] if event.detail else [ended]


def closed(seq: int, at: int, event: OperationEnded) -> list[Statement]:
    """End the activities of an ended operation that its agent did not report as ended."""
    how = "cancelled" if event.stop == "cancelled" or event.cancelled_by is not None else "interrupted"
    words = [(_WORDS_OF, (seq, event.operation))] if event.cancelled_activities else []
    return [(_CLOSED, (at, how, event.operation)), *words]


_STARTED = """
INSERT INTO activities (operation, id, thread, parent, sort, title, tool_call, started_at)
SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM threads WHERE id = ?) ON CONFLICT DO NOTHING"""
_ACTIVITY_ENDED = """
UPDATE activities SET ended_at = ?, how = ?, "by" = ?, detail = ?
WHERE operation = ? AND id = ? AND ended_at IS NULL"""
_CLOSED = "UPDATE activities SET ended_at = ?, how = ? WHERE operation = ? AND ended_at IS NULL"
_WORDS = "INSERT INTO titles (thread, seq) VALUES (?, ?) ON CONFLICT DO NOTHING"
_WORDS_OF = """
INSERT INTO titles (thread, seq) SELECT thread, ? FROM operations WHERE id = ? AND thread IS NOT NULL
ON CONFLICT DO NOTHING"""
