"""Old contents in both stores: small ones come with an event into the database, the others are files."""

import hashlib
import os
import sqlite3
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from tests.support.sample_events import JournalFiles, daemon_stopped

from handrail.errors import Unwritable
from handrail.store.blobs import BlobRetention, Blobs, BlobUnavailable
from handrail.store.integrity import verify
from handrail.store.journal import Journal, open_journal
from handrail.store.old_contents import SMALL, OldContents, add_contents, open_old_contents

pytestmark = pytest.mark.anyio

DAY_MS = 86_400_000
WIDE = 1 << 40
"""More bytes than any test keeps."""


@dataclass(frozen=True, slots=True)
class Store:
    """The contents, and the journal that brings the small ones."""

    journal: Journal
    contents: OldContents
    root: Path
    path: Path

    async def add(self, *contents: bytes) -> list[str]:
        """Keep these with an event; return their names."""
        await self.journal.committed(self.journal.append(daemon_stopped(), along=add_contents(contents)))
        return [name(content) for content in contents]

    async def prune(self, keep_days: float = 30, keep_bytes: int = WIDE) -> int:
        gone = await anyio.to_thread.run_sync(partial(self.contents.prune, keep_days, keep_bytes))
        await self.journal.written()
        return gone

    def change(self, sql: str, *values: object) -> None:
        """Change the database as another program could."""
        with closing(sqlite3.connect(self.path)) as database, database:
            database.execute(sql, values)

    def age(self, sha: str, days: float) -> None:
        self.change("UPDATE old_contents SET used_at = used_at - ? WHERE sha = ?", int(days * DAY_MS), sha)

    @property
    def rows(self) -> set[str]:
        with closing(sqlite3.connect(self.path)) as database:
            return {row[0] for row in database.execute("SELECT sha FROM old_contents")}

    @property
    def files(self) -> set[str]:
        return {path.parent.name + path.name for path in self.root.glob("??/*")}


@pytest.fixture
async def store(kept: JournalFiles, tmp_path: Path) -> AsyncGenerator[Store]:
    async with open_store(kept, tmp_path) as opened:
        yield opened


@asynccontextmanager
async def open_store(kept: JournalFiles, folder: Path) -> AsyncGenerator[Store]:
    root = folder / "blobs"
    async with (
        open_journal(kept.path, kept.head) as journal,
        open_old_contents(root, kept.path, journal.queue) as contents,
    ):
        with anyio.fail_after(20):
            yield Store(journal, contents, root, kept.path)


def name(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def keep_long_ago(root: Path, content: bytes, days: float) -> str:
    """A content that an older Handrail stored as a file, so many days ago."""
    sha = Blobs(root).put(content)
    path = root / sha[:2] / sha[2:]
    then = path.stat().st_mtime - days * DAY_MS / 1000
    os.utime(path, (then, then))
    return sha


async def is_unavailable(contents: Blobs, sha: str, words: str) -> bool:
    with pytest.raises(BlobUnavailable, match=words):
        await anyio.to_thread.run_sync(contents.get, sha)
    return True


@pytest.mark.parametrize("content", [b"", b"text\n", bytes(range(256)) * (SMALL // 256)])
async def test_a_small_content_comes_with_an_event_and_needs_no_file(store: Store, content: bytes) -> None:
    (sha,) = await store.add(content)
    assert store.contents.get(sha) == content
    assert store.contents.put(content) == sha
    assert (store.rows, store.files, store.contents.size()) == ({sha}, set(), len(content))


async def test_a_large_content_and_one_without_an_event_become_files(store: Store) -> None:
    large = b"x" * (SMALL + 1)
    await store.add(large)
    assert store.rows == set()
    shas = {store.contents.put(large), store.contents.put(b"small")}
    assert (store.rows, store.files) == (set(), shas)
    assert store.contents.get(name(large)) == large


async def test_a_content_is_kept_together_with_its_event_or_not_at_all(store: Store) -> None:
    store.change("CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    with pytest.raises(Unwritable):
        await store.add(b"lost")
    store.change("DROP TRIGGER full")
    store.change(
        "CREATE TRIGGER full BEFORE INSERT ON old_contents BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    )
    with pytest.raises(Unwritable):
        await store.add(b"lost")
    assert store.rows == set()
    assert await store.journal.since(0) == []
    store.change("DROP TRIGGER full")
    assert await store.add(b"kept") == [name(b"kept")]
    assert verify(store.path, store.path.with_name("handrail.head")).ok


async def test_a_row_that_may_soon_be_pruned_is_not_relied_on(store: Store) -> None:
    (sha,) = await store.add(b"same")
    store.age(sha, 1)
    assert store.contents.put(b"same") == sha
    assert store.files == {sha}
    assert await store.prune(keep_days=0.5) == 1
    assert (store.rows, store.contents.get(sha)) == (set(), b"same")


async def test_a_content_that_comes_again_counts_as_new_and_heals_a_damaged_one(store: Store) -> None:
    (sha,) = await store.add(b"same")
    store.age(sha, 40)
    store.change("UPDATE old_contents SET content = ?", b"else")
    await store.add(b"same")
    assert await store.prune() == 0
    assert store.contents.get(sha) == b"same"


async def test_contents_of_an_older_handrail_are_read_counted_and_pruned(store: Store) -> None:
    old = keep_long_ago(store.root, b"of an old home", 20)
    assert store.contents.get(old) == b"of an old home"
    (new,) = await store.add(b"new")
    assert store.contents.size() == len(b"of an old home") + len(b"new")
    assert [kept.sha for kept in store.contents.kept()] == [old, new]
    assert await store.prune(keep_days=10) == 1
    assert await is_unavailable(store.contents, old, "no longer kept")
    assert store.contents.get(new) == b"new"


async def test_a_damaged_content_is_never_returned(store: Store) -> None:
    (sha,) = await store.add(b"right")
    store.change("UPDATE old_contents SET content = ?", b"wrong")
    assert await is_unavailable(store.contents, sha, "is damaged on disk")
    Blobs(store.root).put(b"right")
    assert store.contents.get(sha) == b"right", "the file has it too"


async def test_beyond_the_limit_the_oldest_of_both_stores_go_first(store: Store) -> None:
    shas = await store.add(b"1" * 10, b"3" * 10)
    for sha, days in zip(shas, (4, 2), strict=True):
        store.age(sha, days)
    files = [keep_long_ago(store.root, content, days) for content, days in ((b"2" * 10, 3), (b"4" * 10, 1))]
    assert await store.prune(keep_bytes=20) == 2
    assert (store.rows, store.files) == ({shas[1]}, {files[1]})
    await BlobRetention(store.contents, 0.5, WIDE).prune()
    await store.journal.written()
    assert (store.rows, store.files) == (set(), set())


async def test_a_content_that_comes_again_while_old_ones_go_stays(store: Store) -> None:
    (sha,) = await store.add(b"same")
    store.age(sha, 40)
    assert store.contents.prune(30, WIDE) == 1  # in the loop's thread: the row goes later
    await store.add(b"same")
    await store.journal.written()
    assert store.contents.get(sha) == b"same"


async def test_the_database_does_not_grow_while_as_much_is_pruned_as_comes(store: Store) -> None:
    def count_pages() -> int:
        with closing(sqlite3.connect(store.path)) as database:
            return int(database.execute("PRAGMA page_count").fetchone()[0])

    pages: list[int] = []
    for number in range(4):
        for sha in await store.add(*(f"{number} {each}".encode() * 5000 for each in range(10))):
            store.age(sha, 40)
        assert await store.prune() == 10
        pages.append(count_pages())
    assert pages[-1] < pages[0] + 20


async def test_nobody_else_can_read_the_contents(kept: JournalFiles, tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        async with open_store(kept, tmp_path) as store:
            await store.add(b"secret")
            files = [kept.path, kept.path.with_name("handrail.db-wal")]
            assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600, 0o600]
    finally:
        os.umask(old)


async def test_contents_outlive_the_daemon(kept: JournalFiles, tmp_path: Path) -> None:
    async with open_store(kept, tmp_path) as store:
        (sha,) = await store.add(b"old")
    async with open_store(kept, tmp_path) as store:
        assert store.contents.get(sha) == b"old"


async def test_a_pruned_content_is_gone_from_the_file(kept: JournalFiles, tmp_path: Path) -> None:
    async with open_store(kept, tmp_path) as store:
        (sha,) = await store.add(b"unmistakable content")
        store.age(sha, 40)
        await store.prune()
    assert b"unmistakable content" not in kept.path.read_bytes()


async def test_a_row_that_cannot_be_read_is_replaced_by_a_file(store: Store) -> None:
    (sha,) = await store.add(b"content")
    store.change("ALTER TABLE old_contents RENAME TO elsewhere")
    assert await is_unavailable(store.contents, sha, "is damaged on disk")
    assert store.contents.put(b"content") == sha
    assert store.files == {sha}
    assert store.contents.get(sha) == b"content"
