"""Old contents of files, kept for undo: small ones in the database, large ones as files.

A small content is written in the transaction of the event that precedes the change of the file (`add_contents`). That event
is awaited with a sync of the disk before the change, so the content is on disk by then without a sync of its own. A file needs
two or three: one for its content, one for its name in the folder, one for a new folder.
"""

import hashlib
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from handrail.store.blobs import Blobs, BlobUnavailable, StoredBlob
from handrail.store.database import Statement, open_reader
from handrail.store.debounce import soon_here
from handrail.store.writer import WriteQueue

SMALL = 64 * 1024
"""Bytes up to which a content is kept in the database. Bounds its growth, and the time of a commit."""
_RECENT_MS = 60_000
"""Age up to which `put` relies on a row. An older one may be pruned while its file is changed."""


def add_contents(contents: Iterable[bytes]) -> list[Statement]:
    """SQL that keeps the small ones among these contents; to be committed with an event."""
    now = _now_ms()
    small = (content for content in contents if len(content) <= SMALL)
    return [(_ADD, (_sha(content), now, len(content), content)) for content in small]


@asynccontextmanager
async def open_old_contents(root: Path, database: Path, queue: WriteQueue) -> AsyncGenerator["OldContents"]:
    """Open the contents in the folder `root` and in the database. A journal must have created the database before."""
    contents = OldContents(root, database, queue)
    try:
        yield contents
    finally:
        contents.close()


class OldContents(Blobs):
    """Both stores behind one interface. Create it in the event loop; its methods block and may run in any thread."""

    def __init__(self, root: Path, database: Path, queue: WriteQueue) -> None:
        super().__init__(root)
        self._queue = queue
        self._soon = soon_here()
        self._connection = open_reader(database)
        self._reading = threading.Lock()

    def put(self, content: bytes) -> str:
        """As `Blobs.put`; writes nothing if an event has just brought the content into the database.

        What the caller does next must still wait for that event, since it may be visible before it is on disk.
        """
        with suppress(sqlite3.Error):  # then it becomes a file
            sha = _sha(content)
            if len(content) <= SMALL and self._read(_RECENT, (sha, _now_ms() - _RECENT_MS)):
                return sha
        return super().put(content)

    def get(self, sha: str) -> bytes:
        is_damaged = False
        try:
            for row in self._read(_CONTENT, (sha,)):
                if _sha(row["content"]) == sha:
                    return row["content"]
                is_damaged = True
        except sqlite3.Error:
            is_damaged = True
        try:
            return super().get(sha)
        except BlobUnavailable as problem:
            raise BlobUnavailable(sha, damaged=problem.damaged or is_damaged) from None

    def close(self) -> None:
        with self._reading:
            self._connection.close()

    def _each(self) -> Iterator[StoredBlob]:
        yield from super()._each()
        for row in self._read(_ALL):
            yield StoredBlob(row["used_at"] / 1000, row["sha"], row["bytes"])

    def _remove(self, kept: StoredBlob) -> bool:
        """Remove the content from both stores, unless it was put again. Its row goes with the next commit."""
        used_at = round(kept.used_at * 1000)
        has_row = bool(self._read(_UNUSED_SINCE, (kept.sha, used_at)))
        if has_row:
            delete = (_DELETE, (kept.sha, used_at))
            self._soon(self._queue.write, [delete], len(kept.sha), _ignore)
        return super()._remove(kept) or has_row

    def _read(self, sql: str, values: tuple[str | int, ...] = ()) -> list[sqlite3.Row]:
        with self._reading:
            return self._connection.execute(sql, values).fetchall()


_ADD = """
INSERT INTO old_contents (sha, used_at, bytes, content) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET used_at = excluded.used_at, bytes = excluded.bytes, content = excluded.content"""
_RECENT = "SELECT 1 FROM old_contents WHERE sha = ? AND used_at > ?"
_CONTENT = "SELECT content FROM old_contents WHERE sha = ?"
_ALL = "SELECT sha, used_at, bytes FROM old_contents"
_UNUSED_SINCE = "SELECT 1 FROM old_contents WHERE sha = ? AND used_at <= ?"
_DELETE = "DELETE FROM old_contents WHERE sha = ? AND used_at <= ?"


def _ignore(_fate: object) -> None:
    """A row that could not be deleted is deleted by a later prune."""


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
