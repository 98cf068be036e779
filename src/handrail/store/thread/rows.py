"""Rows of the database as records of conversations.

Does not know any query.
"""

import json
import sqlite3
from collections.abc import Iterable

from handrail.store.rows import column_names, columns_of
from handrail.store.thread.record import (
    ActivityRecord,
    MessagePart,
    MessageRecord,
    OperationRecord,
    SessionRecord,
    ThreadRecord,
)


def thread_of(row: sqlite3.Row) -> ThreadRecord:
    return ThreadRecord(**columns_of(row, _THREAD_COLUMNS))


def operation_of(row: sqlite3.Row) -> OperationRecord:
    return OperationRecord(**columns_of(row, _OPERATION_COLUMNS))


def activity_of(row: sqlite3.Row) -> ActivityRecord:
    return ActivityRecord(**columns_of(row, _ACTIVITY_COLUMNS))


def session_of(row: sqlite3.Row) -> SessionRecord:
    return SessionRecord(session=row["session"], upto=row["upto"])


def message_of(row: sqlite3.Row, parts: Iterable[MessagePart]) -> MessageRecord:
    return MessageRecord(queued=bool(row["queued"]), parts=tuple(parts), **columns_of(row, _MESSAGE_COLUMNS))


def part_of(row: sqlite3.Row) -> MessagePart:
    data = row["data"]
    return MessagePart(
        n=row["n"], kind=row["kind"], text=row["text"], data={} if data == "{}" else json.loads(data)
    )


_THREAD_COLUMNS = column_names(ThreadRecord)
_OPERATION_COLUMNS = column_names(OperationRecord)
_ACTIVITY_COLUMNS = column_names(ActivityRecord)
_MESSAGE_COLUMNS = column_names(MessageRecord, "queued", "parts")
