"""Questions about changed files: what calls and undos put in place of what, oldest first.

Does not know what is in the files now, nor the contents that were kept (blobs.py).
"""

import json
from collections.abc import Iterable

from handrail.store.query.asking import Asking
from handrail.store.records import ChangeRecord, UndoRecord
from handrail.store.rows import change_of, undo_of


class Changes(Asking):
    """What is known of changed files."""

    async def changes_of(self, calls: Iterable[str]) -> list[ChangeRecord]:
        """What these calls, or undos, set out to change."""
        return await self._all(change_of, f"{_CHANGES} WHERE {_NAMED} {_IN_ORDER}", (json.dumps([*calls]),))

    async def changes_of_path(self, path: str, since: int = 0) -> list[ChangeRecord]:
        """All that was done to one file after the event with the number `since`."""
        return await self._all(
            change_of,
            f"{_CHANGES} WHERE file_changes.path = ? AND file_changes.seq > ? {_IN_ORDER}",
            (path, since),
        )

    async def undo(self, id: str) -> UndoRecord | None:
        found = await self._all(undo_of, "SELECT * FROM undos WHERE id = ?", (id,))
        return found[0] if found else None

    async def undos(self, ids: Iterable[str]) -> list[UndoRecord]:
        """Those of these ids that are undos."""
        return await self._all(
            undo_of,
            "SELECT * FROM undos WHERE id IN (SELECT value FROM json_each(?)) ORDER BY seq",
            (json.dumps([*ids]),),
        )


_CHANGES = """
SELECT file_changes.*, calls.title, calls.ending FROM file_changes LEFT JOIN calls ON calls.id = file_changes.call"""
_NAMED = "file_changes.call IN (SELECT value FROM json_each(?))"
_IN_ORDER = "ORDER BY file_changes.seq, file_changes.place"
