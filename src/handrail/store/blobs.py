"""Contents that were replaced, each kept once under its SHA-256.

Owns the files below one folder: how they are written so that they last, how they are read so that a damaged one is
never taken for the content, and how old ones go. It does not know which file held what (query/changes.py). All of it
blocks: call it in a thread.

How long contents are kept: those that were replaced, so many days and so many bytes of all together;
pictures, for as long as a conversation points to them.
"""

import hashlib
import logging
import os
import re
import secrets
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
"""Seconds after which a half-written file is one that nobody writes any more."""


class NotKept(Exception):
    """A content is not there any more, or is not what it was."""

    def __init__(self, sha: str, damaged: bool) -> None:
        self.sha = sha
        self.damaged = damaged
        super().__init__(
            f"its old content ({sha[:12]}…) is damaged on disk, so it is not used"
            if damaged
            else f"its old content ({sha[:12]}…) is no longer kept"
        )


class Kept(NamedTuple):
    """One content on disk. In the order in which they go."""

    used_at: float
    """When it was last put there, seconds since 1970."""
    sha: str
    bytes: int


class Blobs:
    """A store of contents below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        # A content that is put again must not be let go as an old one in the same moment.
        self._one = threading.Lock()

    def put(self, content: bytes) -> str:
        """Keep it; returns its name when it is safe on disk. What is there already is not written again."""
        sha = hashlib.sha256(content).hexdigest()
        path = self._path(sha)
        with self._one:
            if not _renewed(path, len(content)):
                self._write(path, content)
        return sha

    def get(self, sha: str) -> bytes:
        """Exactly what was put. Raises `NotKept`."""
        if not _NAME.fullmatch(sha):
            raise NotKept(sha, damaged=False)
        try:
            content = self._path(sha).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise NotKept(sha, damaged=False) from None
        except OSError:
            raise NotKept(sha, damaged=True) from None
        if hashlib.sha256(content).hexdigest() != sha:
            raise NotKept(sha, damaged=True)
        return content

    def kept(self) -> list[Kept]:
        """All there is, oldest first."""
        return sorted(self._each())

    def size(self) -> int:
        """Bytes of all together."""
        return sum(kept.bytes for kept in self._each())

    def prune(self, keep_days: float, keep_bytes: int, keep: Callable[[str], bool] = lambda _: False) -> int:
        """Let go of what is too old, then of the oldest until the rest is within `keep_bytes`; how many went.

        What `keep` says yes to stays, and counts.
        """
        oldest, total, gone = time.time() - keep_days * 86_400, self.size(), 0
        for kept in self.kept():
            if kept.used_at >= oldest and total <= keep_bytes:
                break
            if not keep(kept.sha) and self._remove(kept):
                total -= kept.bytes
                gone += 1
        self._sweep()
        return gone

    def _path(self, sha: str) -> Path:
        return self._root / sha[:2] / sha[2:]

    def _each(self) -> Iterator[Kept]:
        for folder in self._root.iterdir() if self._root.is_dir() else ():
            for path in folder.iterdir() if folder.is_dir() else ():
                if _NAME.fullmatch(sha := folder.name + path.name):
                    with suppress(FileNotFoundError):
                        found = path.stat(follow_symlinks=False)
                        yield Kept(found.st_mtime, sha, found.st_size)

    def _write(self, path: Path, content: bytes) -> None:
        """A file of its own, on disk, before it gets its name; then the name, on disk too."""
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

    def _remove(self, kept: Kept) -> bool:
        """Whether it went; not when it was put again since it was looked at."""
        path = self._path(kept.sha)
        with self._one, suppress(FileNotFoundError):
            if path.stat().st_mtime <= kept.used_at:
                path.unlink()
                return True
        return False

    def _sweep(self) -> None:
        """What a crash left half-written."""
        for path in self._root.glob(f"??/{_TEMPORARY}*"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < time.time() - _ABANDONED:
                    path.unlink()


def _renewed(path: Path, size: int) -> bool:
    """Whether it is there, whole as far as its size tells; its age begins anew."""
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
"""Seconds between two looks at what is kept."""
YOUNG = 10.0
"""Seconds that a picture is kept in any case: it is kept before it is said."""
_DAY = 86_400
_NO_LIMIT = 1 << 62


class _Retention(ABC):
    """Looks now and then."""

    async def run(self) -> None:
        """Now, and every hour; until cancelled."""
        while True:
            try:
                await self.prune()
            except OSError as problem:
                log.warning("old contents could not be let go: %s", problem)
            await anyio.sleep(APART)

    @abstractmethod
    async def prune(self) -> int:
        """How many went."""


class BlobRetention(_Retention):
    """Keeps what is kept for undo within the person's limits."""

    def __init__(self, blobs: Blobs, keep_days: float, keep_bytes: int) -> None:
        self._blobs = blobs
        self._keep_days = keep_days
        self._keep_bytes = keep_bytes

    async def prune(self) -> int:
        return await anyio.to_thread.run_sync(self._blobs.prune, self._keep_days, self._keep_bytes)


class PictureRetention(_Retention):
    """Lets go of pictures that no conversation shows any more."""

    def __init__(self, images: Blobs, records: Records) -> None:
        self._images = images
        self._records = records

    async def prune(self) -> int:
        shown = await self._records.threads.images()
        return await anyio.to_thread.run_sync(self._images.prune, YOUNG / _DAY, _NO_LIMIT, shown.__contains__)
