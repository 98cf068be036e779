"""A disk that refuses for a while takes nothing of what was said, and what was said takes no fact with it."""

import os
import sqlite3
import time
from contextlib import closing

import anyio
import anyio.lowlevel
import pytest
from tests.store.test_journal_unwritable import files_no_larger_than, refused
from tests.support.actors import ANN
from tests.support.sample_events import JournalFiles, call_opened, daemon_stopped
from tests.support.thread_store import ThreadReader, ThreadStore, follow_thread, thread_store

from handrail.errors import Unwritable
from handrail.store import writer
from handrail.store.events import DaemonStopped
from handrail.store.integrity import verify
from handrail.store.threads import _persistence
from handrail.store.writer import Fate

pytestmark = pytest.mark.anyio

LARGE = "x" * 400_000
FULL = 200_000


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_persistence, "AGAIN_SECONDS", 0.05)


async def on_disk(talk: ThreadStore, thread: str, *texts: str) -> None:
    """Wait, without asking for it, until these are the messages on disk, whole."""
    with anyio.fail_after(20):
        while True:
            messages = await talk.records.threads.messages(thread)
            if [" ".join(part.text for part in one.parts) for one in messages] == [*texts]:
                return
            await anyio.lowlevel.checkpoint()


async def test_what_is_said_while_the_disk_is_full_is_there_once_it_is_not(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        await talk.threads.written()
        reader = ThreadReader()
        async with follow_thread(talk, thread, reader):
            answer = talk.threads.open_message(thread, "assistant")
            text = answer.add("text", "one")
            await talk.threads.written()
            with files_no_larger_than(FULL):
                text.grow(LARGE)
                with pytest.raises(Unwritable):
                    await talk.threads.written()
                text.grow(" two")
                answer.end("end_turn")
                talk.say(thread, "and another")
                with pytest.raises(Unwritable):
                    await talk.threads.written()
                assert len((await talk.threads.snapshot(thread)).messages) == 2
                await reader.until(lambda: len(reader.stops) == 2)
            await on_disk(talk, thread, f"one{LARGE} two", "and another")
    async with thread_store(kept) as talk:
        assert [one.stop for one in await talk.threads.messages(thread)] == ["end_turn", "end_turn"]
    assert verify(kept.path, kept.head).ok


async def test_a_thread_that_could_not_be_written_is_written_later_with_all_that_is_in_it(
    kept: JournalFiles,
) -> None:
    async with thread_store(kept) as talk:
        with files_no_larger_than(FULL):
            thread = talk.open()
            talk.say(thread, LARGE)
            talk.threads.put_state(thread, "modes", {"is": "ask"})
            talk.threads.bind(thread, "demo", "s1", "new", 1)
            with pytest.raises(Unwritable):
                await talk.threads.written()
            waiting = talk.threads.open_message(thread, "user", queued=True)
            talk.threads.dropped(waiting.id, ANN)
        await on_disk(talk, thread, LARGE)
        await talk.threads.written()
        assert await talk.records.threads.state(thread) == {"modes": {"is": "ask"}}
        assert (await talk.threads.sessions(thread))["demo"].upto == 1
        kinds = [type(entry.event).__name__ for entry in await talk.journal.since(0)]
        assert kinds == [
            "ThreadOpened",
            "MessageOpened",
            "MessageEnded",
            "SessionBound",
            "MessageOpened",
            "PromptDropped",
        ]


async def test_whoever_waits_for_a_fact_is_told_when_what_was_said_takes_it_along(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        await talk.threads.written()
        with files_no_larger_than(FULL):
            talk.threads.open_message(thread, "assistant").add("text", LARGE)
            await refused(talk.journal, talk.journal.append(call_opened("c1")))
        with anyio.fail_after(20):
            await talk.journal.committed(talk.journal.append(call_opened("c2")))
        await talk.threads.written()
        assert [call.id for call in await talk.records.calls.find()] == ["c2"]
        assert [one.parts[0].text for one in await talk.records.threads.messages(thread)] == [LARGE]


async def test_what_the_database_will_never_take_is_refused_alone(kept: JournalFiles) -> None:
    fates: list[Fate] = []
    async with thread_store(kept) as talk:
        talk.journal.append(daemon_stopped("before"))
        talk.journal.queue.write([("INSERT INTO threads VALUES (1)", ())], 0, fates.append)
        talk.journal.queue.write([("INSERT INTO upkeep VALUES (?)", ("no number",))], 0, fates.append)
        talk.journal.queue.write([("INSERT INTO upkeep VALUES (?)", (2**70,))], 0, fates.append)
        talk.journal.queue.write([("UPDATE upkeep SET due = 0", ())], 0, fates.append)
        await talk.journal.committed(talk.journal.append(daemon_stopped("after")))
        with anyio.fail_after(10):
            while len(fates) < 4:
                await anyio.lowlevel.checkpoint()
        assert fates == ["refused", "refused", "refused", "landed"]
        told = [one.event.why for one in await talk.journal.since(0) if isinstance(one.event, DaemonStopped)]
        assert told == ["before", "after"]


async def test_a_disk_that_hangs_holds_what_is_said_in_memory_once(
    kept: JournalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PENDING_BYTES", 50_000)
    monkeypatch.setattr(writer, "FLOW_SECONDS", 0.01)
    async with thread_store(kept) as talk:
        thread = talk.open()
        await talk.threads.written()
        with closing(sqlite3.connect(kept.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            answer = talk.threads.open_message(thread, "assistant")
            text = answer.add("text")
            for _ in range(30):
                text.grow("x" * 10_000)
                await anyio.sleep(0.011)
            answer.end("end_turn")
            talk.say(thread, "still here")
            assert len(await talk.threads.messages(thread)) == 2
            other.execute("ROLLBACK")
        await on_disk(talk, thread, "x" * 300_000, "still here")


async def test_a_message_that_has_ended_on_disk_is_there_with_its_whole_text(kept: JournalFiles) -> None:
    """The writer may take the end of a message with an earlier order, before the loop flushes the next one."""
    async with thread_store(kept) as talk:
        thread = talk.open()
        answer = talk.threads.open_message(thread, "assistant")
        text = answer.add("text", "one ")
        await talk.threads.written()
        text.grow("two")
        await talk.threads.written()
        with closing(sqlite3.connect(kept.path, isolation_level=None)) as other:
            other.execute(
                "BEGIN IMMEDIATE"
            )  # the writer waits with the first order, so the second stays queued
            for why in ("first", "second"):
                talk.journal.append(daemon_stopped(why))
                talk.journal.queue.order_commit()
            answer.end("end_turn")
            other.execute("ROLLBACK")
            facts_on_disk(other, "DaemonStopped", 2)
            stored = other.execute("SELECT stop, text FROM messages JOIN parts ON message = id").fetchall()
            assert stored == [("end_turn", "one two")]
        await on_disk(talk, thread, "one two")


def facts_on_disk(connection: sqlite3.Connection, kind: str, count: int) -> None:
    """Wait for events on disk without letting the event loop run."""
    until = time.monotonic() + 20
    while connection.execute("SELECT count(*) FROM events WHERE kind = ?", (kind,)).fetchone() != (count,):
        assert time.monotonic() < until
        os.sched_yield()


async def test_streaming_costs_a_commit_each_tenth_of_a_second_and_none_when_nothing_is_said(
    kept: JournalFiles,
) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        text = talk.threads.open_message(thread, "assistant").add("text")
        await talk.threads.written()
        before = talk.journal.commits
        with anyio.fail_after(10):
            began = anyio.current_time()
            while anyio.current_time() < began + 1:
                text.grow("word ")
                await anyio.sleep(0.002)
        assert 1 <= talk.journal.commits - before <= 11
        await talk.threads.written()
        before = talk.journal.commits
        for number in range(20):
            await talk.journal.committed(talk.journal.append(call_opened(f"c{number}")))
        assert talk.journal.commits - before == 20
