"""Blobs: file contents and images stored once each under their SHA-256, and the retention of both.

Writes are durable and atomic; a damaged blob is detected on read. Which file had which content is in `file_changes`.
`Blobs` blocks: call it in a thread. Replaced contents are kept for a number of days and a total size; images as long
as a thread refers to them.
"""

import hashlib
import logging
import os
import re
import secrets
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread

from handrail.store.records import Records

_NAME = re.compile(r"[0-9a-f]{64}")
_TEMPORARY = ".new-"
_ABANDONED = 3600.0
"""Seconds after which a temporary file counts as left by a crash."""


class BlobUnavailable(Exception):
    """A blob is missing or damaged."""

    def __init__(self, sha: str, damaged: bool) -> None:
        self.sha = sha
        self.damaged = damaged
        super().__init__(
            f"its old content ({sha[:12]}…) is damaged on disk, so it is not used"
            if damaged
            else f"its old content ({sha[:12]}…) is no longer kept"
        )


_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def image_mime(content: bytes) -> str | None:
    """The MIME type of an image, by its first bytes. None if it is not a type that the page and models take."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for begin, mime in _SIGNATURES.items() if content.startswith(begin)), None)


class StoredBlob(NamedTuple):
    """One blob on disk. Sorts in the order of removal."""

    used_at: float
    """When it was last put, in seconds since 1970."""
    sha: str
    bytes: int


class Blobs:
    """Content-addressed store in the folder `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        # Prevents a race: a blob that is put again must not be pruned as old.
        self._one = threading.Lock()

    def put(self, content: bytes) -> str:
        """Store the content; return its SHA-256 once it is on disk. For an existing blob, only reset its age."""
        sha = hashlib.sha256(content).hexdigest()
        path = self._path(sha)
        with self._one:
            if not _renewed(path, len(content)):
                self._write(path, content)
        return sha

    def get(self, sha: str) -> bytes:
        """Return the content. Raises `BlobUnavailable`."""
        if not _NAME.fullmatch(sha):
            raise BlobUnavailable(sha, damaged=False)
        try:
            content = self._path(sha).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise BlobUnavailable(sha, damaged=False) from None
        except OSError:
            raise BlobUnavailable(sha, damaged=True) from None
        if hashlib.sha256(content).hexdigest() != sha:
            raise BlobUnavailable(sha, damaged=True)
        return content

    def kept(self) -> list[StoredBlob]:
        """List all blobs, oldest first."""
        return sorted(self._each())

    def size(self) -> int:
        """Total size in bytes."""
        return sum(kept.bytes for kept in self._each())

    def prune(self, keep_days: float, keep_bytes: int, keep: Callable[[str], bool] = lambda _: False) -> int:
        """Remove blobs older than `keep_days`, then the oldest until the rest fits `keep_bytes`; return how many.

        Blobs for which `keep` returns True stay, and count towards `keep_bytes`.
        """
        oldest, contents, gone = time.time() - keep_days * 86_400, self.kept(), 0
        total = sum(kept.bytes for kept in contents)
        for kept in contents:
            if kept.used_at >= oldest and total <= keep_bytes:
                break
            if not keep(kept.sha) and self._remove(kept):
                total -= kept.bytes
                gone += 1
        self._sweep()
        return gone

    def _path(self, sha: str) -> Path:
        return self._root / sha[:2] / sha[2:]

    def _each(self) -> Iterator[StoredBlob]:
        for folder in self._root.iterdir() if self._root.is_dir() else ():
            for path in folder.iterdir() if folder.is_dir() else ():
                if _NAME.fullmatch(sha := folder.name + path.name):
                    with suppress(FileNotFoundError):
                        found = path.stat(follow_symlinks=False)
                        yield StoredBlob(found.st_mtime, sha, found.st_size)

    def _write(self, path: Path, content: bytes) -> None:
        """Write and sync a temporary file, rename it, and sync the folder."""
        for folder in (self._root, path.parent):
            if not folder.is_dir():
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                _sync(folder.parent)
        temporary = path.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")
        try:
            _fill(temporary, content)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync(path.parent)

    def _remove(self, kept: StoredBlob) -> bool:
        """Remove the blob unless it was put again since `kept` was read; return whether it was removed."""
        path = self._path(kept.sha)
        with self._one, suppress(FileNotFoundError):
            if path.stat().st_mtime <= kept.used_at:
                path.unlink()
                return True
        return False

    def _sweep(self) -> None:
        """Remove temporary files left by a crash."""
        for path in self._root.glob(f"??/{_TEMPORARY}*"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < time.time() - _ABANDONED:
                    path.unlink()


def _renewed(path: Path, size: int) -> bool:
    """Reset the age of an existing blob of this size; return whether there was one."""
    try:
        if path.stat(follow_symlinks=False).st_size != size:
            return False
        os.utime(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _fill(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


log = logging.getLogger(__name__)

APART = 3600.0
"""Seconds between two prunes."""
YOUNG = 10.0
"""Minimum age in seconds before an image is pruned: it is stored before its message refers to it."""
_DAY = 86_400
_NO_LIMIT = 1 << 62


class _Retention(ABC):
    """Prunes a blob store periodically."""

    async def run(self) -> None:
        """Prune now and every hour, until cancelled."""
        while True:
            try:
                await self.prune()
            except (OSError, sqlite3.Error) as problem:
                log.warning("old contents could not be let go: %s", problem)
            await anyio.sleep(APART)

    @abstractmethod
    async def prune(self) -> int:
        """Prune once; return how many blobs were removed."""


class BlobRetention(_Retention):
    """Keeps the contents for undo within the configured limits."""

    def __init__(self, blobs: Blobs, keep_days: float, keep_bytes: int) -> None:
        self._blobs = blobs
        self.keep_days = keep_days
        self.keep_bytes = keep_bytes

    async def prune(self) -> int:
        return await anyio.to_thread.run_sync(self._blobs.prune, self.keep_days, self.keep_bytes)


class ImageRetention(_Retention):
    """Removes images that no thread refers to."""

    def __init__(self, images: Blobs, records: Records) -> None:
        self._images = images
        self._records = records

    async def prune(self) -> int:
        shown = await self._records.threads.images()
        return await anyio.to_thread.run_sync(self._images.prune, YOUNG / _DAY, _NO_LIMIT, shown.__contains__)
