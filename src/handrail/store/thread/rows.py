"""Rows of the database as records of conversations.

Does not know any query.
"""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from handrail.store.thread.record import (
    ActivityRecord,
    MessagePart,
    MessageRecord,
    OperationRecord,
    SessionRecord,
    ThreadRecord,
)


def thread_of(row: sqlite3.Row) -> ThreadRecord:
    return ThreadRecord(**_columns(row, _THREAD_COLUMNS))


def operation_of(row: sqlite3.Row) -> OperationRecord:
    return OperationRecord(**_columns(row, _OPERATION_COLUMNS))


def activity_of(row: sqlite3.Row) -> ActivityRecord:
    return ActivityRecord(**_columns(row, _ACTIVITY_COLUMNS))


def session_of(row: sqlite3.Row) -> SessionRecord:
    return SessionRecord(session=row["session"], upto=row["upto"])


def message_of(row: sqlite3.Row, parts: Iterable[MessagePart]) -> MessageRecord:
    return MessageRecord(queued=bool(row["queued"]), parts=tuple(parts), **_columns(row, _MESSAGE_COLUMNS))


def part_of(row: sqlite3.Row) -> MessagePart:
    data = row["data"]
    return MessagePart(
        n=row["n"], kind=row["kind"], text=row["text"], data={} if data == "{}" else json.loads(data)
    )


def _columns(row: sqlite3.Row, names: Iterable[str]) -> dict[str, Any]:
    return {name: row[name] for name in names}


def _named(record: type, *apart: str) -> tuple[str, ...]:
    return tuple(field.name for field in fields(record) if field.name not in apart)


_THREAD_COLUMNS = _named(ThreadRecord)
_OPERATION_COLUMNS = _named(OperationRecord)
_ACTIVITY_COLUMNS = _named(ActivityRecord)
_MESSAGE_COLUMNS = _named(MessageRecord, "queued", "parts")
