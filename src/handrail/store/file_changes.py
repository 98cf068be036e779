"""File changes: events, records, queries and SQL for files changed by calls, and undos of them.

Contents are only named here, by hash; they are stored in `blobs`.
"""

import json
import sqlite3
from collections.abc import Iterable
from typing import Literal

from handrail.lazy_dataclass import dataclass
from handrail.store.database import Statement
from handrail.store.query import Queries, column_names, columns_of
from handrail.store.values import (
    Ending,
    FileChange,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesRestored:
    """A person undid file changes of calls. Recorded before the files are written."""

    kind: Literal["FilesRestored"] = "FilesRestored"
    undo: str
    calls: tuple[str, ...]
    files: tuple[FileChange, ...]
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRecord:
    """A planned change of one file, by a call or an undo."""

    seq: int
    call: str
    """The id of the call, or of the undo."""
    at: int
    change: FileChange
    title: str | None
    """The call's title; None for an undo."""
    ending: Ending | None
    """The call's ending; only `done` guarantees that the file was written. None while it runs, and for an undo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoRecord:
    """An undo by a person."""

    id: str
    calls: tuple[str, ...]
    """The ids of the undone calls or earlier undos."""
    by: str
    at: int


class ChangeQueries(Queries):
    """Queries for file changes and undos, oldest first."""

    async def of_calls(self, calls: Iterable[str]) -> list[ChangeRecord]:
        """Return the planned changes of these calls or undos."""
        return await self._all(change_of, f"{_CHANGES} WHERE {_NAMED} {_IN_ORDER}", (json.dumps([*calls]),))

    async def of_path(self, path: str, since: int = 0) -> list[ChangeRecord]:
        """Return the changes of one file after event `since`."""
        return await self._all(
            change_of,
            f"{_CHANGES} WHERE file_changes.path = ? AND file_changes.seq > ? {_IN_ORDER}",
            (path, since),
        )

    async def undo(self, id: str) -> UndoRecord | None:
        found = await self._all(undo_of, "SELECT * FROM undos WHERE id = ?", (id,))
        return found[0] if found else None

    async def undos(self, ids: Iterable[str]) -> list[UndoRecord]:
        """Return the undos among these ids."""
        return await self._all(
            undo_of,
            "SELECT * FROM undos WHERE id IN (SELECT value FROM json_each(?)) ORDER BY seq",
            (json.dumps([*ids]),),
        )


_CHANGES = """
SELECT file_changes.*, calls.title, calls.ending FROM file_changes LEFT JOIN calls ON calls.id = file_changes.call"""
_NAMED = "file_changes.call IN (SELECT value FROM json_each(?))"
_IN_ORDER = "ORDER BY file_changes.seq, file_changes.place"


def change_of(row: sqlite3.Row) -> ChangeRecord:
    change = FileChange(made=tuple(json.loads(row["made"])), **columns_of(row, _FILE_COLUMNS))
    return ChangeRecord(change=change, **columns_of(row, _CHANGE_COLUMNS))


def undo_of(row: sqlite3.Row) -> UndoRecord:
    return UndoRecord(calls=tuple(json.loads(row["calls"])), **columns_of(row, ("id", "by", "at")))


_FILE_COLUMNS = column_names(FileChange, "made")
_CHANGE_COLUMNS = column_names(ChangeRecord, "change")


def changes(seq: int, at: int, call: str, files: Iterable[FileChange]) -> list[Statement]:
    return [(_CHANGED, (seq, place, call, *_change_values(change), at)) for place, change in enumerate(files)]


def restored(seq: int, at: int, event: FilesRestored) -> list[Statement]:
    undone = (event.undo, json.dumps(event.calls), event.by, at, seq)
    return [(_UNDONE, undone), *changes(seq, at, event.undo, event.files)]


def _change_values(change: FileChange) -> tuple[str | int | None, ...]:
    return (change.path, change.before, change.after, change.mode, json.dumps(change.made))


_CHANGED = """
INSERT INTO file_changes (seq, place, call, path, "before", "after", mode, made, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_UNDONE = 'INSERT INTO undos (id, calls, "by", at, seq) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING'
