"""Appending, waiting for the disk, and following, on both event loops."""

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from typing import TypeVar

import anyio
import pytest
from tests.support.sample_events import JournalFiles, call_opened, daemon_stopped

from handrail.errors import Unwritable
from handrail.store import writer
from handrail.store.database import open_files
from handrail.store.events import CallOpened, DaemonStopped, Entry, Event
from handrail.store.hash_chain import Link, read_head
from handrail.store.journal import Journal, open_journal
from handrail.store.query import Reader

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]

T = TypeVar("T")


def words(entries: Sequence[Entry]) -> list[str]:
    return [entry.event.why for entry in entries if isinstance(entry.event, DaemonStopped)]


async def append_all(journal: Journal, *why: str) -> int:
    """Append and wait until all is durable; the last number."""
    for word in why:
        journal.append(daemon_stopped(word))
    await journal.committed(journal.head)
    return journal.head


class Follower:
    """A reader that remembers what it was sent, and lets a test wait for a number."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.batches: list[int] = []
        self._grown = anyio.Event()

    async def send(self, entries: Sequence[Entry]) -> None:
        self.entries.extend(entries)
        self.batches.append(len(entries))
        self._grown.set()
        self._grown = anyio.Event()

    async def reached(self, count: int) -> None:
        with anyio.fail_after(10):
            while len(self.entries) < count:
                await self._grown.wait()


async def test_an_event_gets_the_next_number_at_once_and_is_durable_once_committed(
    kept: JournalFiles,
) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        assert (journal.head, journal.durable) == (0, 0)
        assert [journal.append(daemon_stopped("one")), journal.append(daemon_stopped("two"))] == [1, 2]
        assert (journal.head, journal.durable) == (2, 0)
        with anyio.fail_after(10):
            await journal.committed(2)
        assert journal.durable == 2
        with closing(sqlite3.connect(kept.path)) as other:
            assert other.execute("SELECT seq, kind FROM events").fetchall() == [
                (1, "DaemonStopped"),
                (2, "DaemonStopped"),
            ]


async def test_many_may_wait_for_one_number_and_for_numbers_long_past(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        seq = journal.append(daemon_stopped())
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(journal.committed, seq)
            await journal.committed(seq)


async def test_a_reopened_journal_goes_on_where_it_ended(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        await append_all(journal, "one", "two")
    async with open_journal(kept.path, kept.head) as journal:
        assert (journal.head, journal.durable) == (2, 2)
        assert await append_all(journal, "three") == 3
        assert words(await journal.since(0)) == ["one", "two", "three"]


async def test_leaving_the_journal_writes_what_nobody_waited_for(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        for number in range(100):
            journal.append(daemon_stopped(str(number)))
    async with open_journal(kept.path, kept.head) as journal:
        assert journal.durable == 100


async def test_since_gives_what_comes_after_a_number_up_to_the_limit(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        await append_all(journal, "one", "two", "three", "four")
        assert words(await journal.since(1, limit=2)) == ["two", "three"]
        assert await journal.since(4) == []
    async with open_journal(kept.path, kept.head) as journal:  # now from disk, not from memory
        assert words(await journal.since(1, limit=2)) == ["two", "three"]
        assert await journal.since(4) == []


async def test_events_that_nobody_waits_for_share_the_commit_of_one_that_somebody_does(
    kept: JournalFiles,
) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        for number in range(1, 4):
            await append_all(journal, "opened", "started", "settled")
            assert (journal.durable, journal.commits) == (3 * number, number)


async def test_an_event_that_nobody_waits_for_is_told_all_the_same(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal, anyio.create_task_group() as group:
        follower = Follower()
        group.start_soon(journal.follow, 0, follower.send)
        for count, word in enumerate(["one", "two"], 1):
            journal.append(daemon_stopped(word))
            await follower.reached(count)
        group.cancel_scope.cancel()


async def test_what_is_queued_behind_a_busy_disk_is_one_commit(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        with closing(sqlite3.connect(kept.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # the writer must wait for this lock, whatever it has taken
            for number in range(200):
                journal.append(daemon_stopped(str(number)))
            other.execute("ROLLBACK")
        with anyio.fail_after(10):
            await journal.committed(200)
        assert journal.commits <= 3
        assert journal.durable == 200


async def test_followers_see_nothing_before_it_is_committed(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal, anyio.create_task_group() as group:
        await append_all(journal, "one")
        follower = Follower()
        group.start_soon(journal.follow, 0, follower.send)
        await follower.reached(1)
        with closing(sqlite3.connect(kept.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            seq = journal.append(daemon_stopped("two"))
            await anyio.wait_all_tasks_blocked()
            assert words(follower.entries) == ["one"]
            assert await journal.since(0) == follower.entries
            other.execute("ROLLBACK")
        await follower.reached(2)
        assert journal.durable == seq
        group.cancel_scope.cancel()


async def test_a_follower_gets_the_past_and_then_the_present_each_once_and_in_order(
    kept: JournalFiles,
) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        await append_all(journal, *"abc")
    async with open_journal(kept.path, kept.head) as journal, anyio.create_task_group() as group:
        follower = Follower()
        group.start_soon(journal.follow, 1, follower.send)
        for letter in "defgh":
            await append_all(journal, letter)
        await follower.reached(7)
        assert words(follower.entries) == list("bcdefgh")
        assert [entry.seq for entry in follower.entries] == list(range(2, 9))
        group.cancel_scope.cancel()


class LateReader(Reader):
    """A reader whose first answer comes after something else has happened."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        found = await super().read(query)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return found


async def test_what_lands_between_reading_and_sleeping_still_wakes_the_follower(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        await append_all(journal, "one")
    with closing(sqlite3.connect(kept.path)) as other:
        other.execute("UPDATE events SET payload = NULL")  # so that there is nothing to read, but a read
        other.commit()
    reader = LateReader(kept.path)
    with closing(Journal(open_files(kept.path, kept.head), reader)) as journal:

        async def land() -> None:
            await append_all(journal, "two")

        reader.meanwhile = land
        follower = Follower()
        async with anyio.create_task_group() as group:
            group.start_soon(journal.follow, 0, follower.send)
            await follower.reached(1)
            group.cancel_scope.cancel()
        assert words(follower.entries) == ["two"]


def wants(word: str) -> Callable[[Event], bool]:
    return lambda event: event == daemon_stopped(word)


async def test_a_follower_is_woken_only_by_the_events_it_wants(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal, anyio.create_task_group() as group:
        follower = Follower()
        await append_all(journal, "past")
        group.start_soon(journal.follow, 1, follower.send, wants("wanted"))
        await anyio.wait_all_tasks_blocked()
        await append_all(journal, "other", "other")
        await anyio.wait_all_tasks_blocked()
        assert follower.entries == []
        await append_all(journal, "other", "wanted", "other")
        await follower.reached(3)
        await append_all(journal, "other")
        await append_all(journal, "wanted")
        await follower.reached(4)
        assert words(follower.entries) == ["other", "wanted", "other", "wanted"]
        group.cancel_scope.cancel()


async def test_a_follower_gets_what_it_wants_from_a_commit_during_its_read(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        await append_all(journal, "one")
    with closing(sqlite3.connect(kept.path)) as other:
        other.execute("UPDATE events SET payload = NULL")
        other.commit()
    reader = LateReader(kept.path)
    with closing(Journal(open_files(kept.path, kept.head), reader)) as journal:

        async def land() -> None:
            await append_all(journal, "two")
            await append_all(journal, "three")

        reader.meanwhile = land
        follower = Follower()
        async with anyio.create_task_group() as group:
            group.start_soon(journal.follow, 0, follower.send, wants("two"))
            await follower.reached(1)
            group.cancel_scope.cancel()
        assert words(follower.entries)[0] == "two"


async def test_reconnecting_is_connecting_again_with_the_last_number_seen(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        follower = Follower()
        for turn in range(5):
            await append_all(journal, f"{turn} while nobody follows")
            async with anyio.create_task_group() as group:
                seen = follower.entries[-1].seq if follower.entries else 0
                group.start_soon(journal.follow, seen, follower.send)
                await append_all(journal, f"{turn} while followed")
                await follower.reached(2 * turn + 2)
                group.cancel_scope.cancel()
        assert [entry.seq for entry in follower.entries] == list(range(1, 11))


async def test_a_follower_that_hangs_holds_up_nobody_and_later_loses_nothing(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal, anyio.create_task_group() as group:
        free, slow, quick = anyio.Event(), Follower(), Follower()

        async def hang(entries: Sequence[Entry]) -> None:
            await free.wait()
            await slow.send(entries)

        group.start_soon(journal.follow, 0, hang)
        group.start_soon(journal.follow, 0, quick.send)
        total = 6000  # more than is kept in memory, so that the slow one must be served from disk
        for number in range(total):
            journal.append(daemon_stopped(str(number)))
        with anyio.fail_after(30):
            await journal.committed(total)
        await quick.reached(total)
        assert slow.entries == []
        free.set()
        await slow.reached(total)
        assert slow.entries == quick.entries
        assert [entry.seq for entry in slow.entries] == list(range(1, total + 1))
        assert max(slow.batches) <= 500
        group.cancel_scope.cancel()


async def test_large_events_are_read_from_disk_in_small_batches(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        for number in range(20):
            journal.append(call_opened(call=f"c{number}", input={"text": "x" * 1_000_000}))
    async with open_journal(kept.path, kept.head) as journal:
        first = await journal.since(0)
        assert 1 <= len(first) <= 5
        seen = first
        while more := await journal.since(seen[-1].seq):
            seen = [*seen, *more]
        assert [entry.event.call for entry in seen if isinstance(entry.event, CallOpened)] == [
            f"c{number}" for number in range(20)
        ]


async def test_an_erased_payload_is_passed_over_by_followers(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        await append_all(journal, "one", "two", "three")
    with closing(sqlite3.connect(kept.path)) as other:
        other.execute("UPDATE events SET payload = NULL WHERE seq = 2")
        other.commit()
    async with open_journal(kept.path, kept.head) as journal:
        assert words(await journal.since(0)) == ["one", "three"]


async def test_a_disk_that_hangs_refuses_more_than_memory_may_hold(
    kept: JournalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PENDING_BYTES", 10_000)
    async with open_journal(kept.path, kept.head) as journal:
        with closing(sqlite3.connect(kept.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            first = journal.append(daemon_stopped("x" * 9_000))
            with pytest.raises(Unwritable, match="does not keep up"):
                journal.append(daemon_stopped("x" * 9_000))
            other.execute("ROLLBACK")
        with anyio.fail_after(10):
            await journal.committed(first)
            await journal.committed(journal.append(daemon_stopped("x" * 9_000)))
        assert journal.durable == 2


async def test_a_commit_without_a_sync_is_followed_and_synced_soon_after(
    kept: JournalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SYNC_SECONDS", 0.2)
    async with open_journal(kept.path, kept.head) as journal, anyio.create_task_group() as group:
        follower = Follower()
        group.start_soon(journal.follow, 0, follower.send)

        seq = journal.append(daemon_stopped("a read"))
        await journal.committed(seq, sync=False)

        assert (journal.durable, journal.synced) == (seq, 0)
        await follower.reached(1)
        with closing(sqlite3.connect(kept.path)) as other:
            assert other.execute("SELECT count(*) FROM events").fetchone() == (1,)
        with anyio.fail_after(10):
            while journal.synced < seq:  # noqa: ASYNC110 - nothing announces a sync
                await anyio.sleep(0.01)
        group.cancel_scope.cancel()


async def test_waiting_for_a_sync_syncs_what_was_committed_without_one(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        seq = journal.append(daemon_stopped("a read"))
        await journal.committed(seq, sync=False)
        assert journal.synced == 0

        await journal.committed(seq)

        assert journal.synced == seq
        other = journal.append(daemon_stopped("an effect"))
        await journal.committed(other)
        assert journal.synced == other


async def test_the_head_file_is_never_ahead_of_what_was_synced(kept: JournalFiles) -> None:
    """After a power loss a head that is ahead of the database would look like a journal whose end was cut off."""
    async with open_journal(kept.path, kept.head) as journal:
        effect = await append_all(journal, "an effect")
        read = journal.append(daemon_stopped("a read"))
        await journal.committed(read, sync=False)
        assert newest(kept) == effect
    assert newest(kept) == read


def newest(kept: JournalFiles) -> int:
    """The number in the head file."""
    link = read_head(kept.head)
    assert isinstance(link, Link)
    return link.seq


async def test_after_a_cut_tail_nothing_waits_for_the_numbers_that_are_gone(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        await append_all(journal, "one", "two", "three")
    with closing(sqlite3.connect(kept.path)) as other:
        other.execute("DELETE FROM events WHERE seq > 1")
        other.commit()
    async with open_journal(kept.path, kept.head) as journal:
        with anyio.fail_after(10):
            await journal.committed(journal.head)
            assert await append_all(journal, "four") == 4
        assert words(await journal.since(0)) == ["one", "four"]
