"""What events say of files: which call, or which undo, put what in place of what. Does not know contents."""

import json
from collections.abc import Iterable

from handrail.store.event import FilesRestored
from handrail.store.projection.statement import Statement
from handrail.store.value import FileChange


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
