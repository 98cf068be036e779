"""A conversation that is deleted is gone: from every table, from the journal, and from every byte of the files."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from tests.support.actors import ANN
from tests.support.sample_events import JournalFiles
from tests.support.thread_store import ThreadReader, ThreadStore, thread_store

from handrail.store import writer
from handrail.store.integrity import verify

pytestmark = pytest.mark.anyio

SECRET = b"zyxwv"


def secrets_in(folder: Path) -> dict[str, int]:
    """How often the word stands in each file."""
    return {path.name: count for path in folder.iterdir() if (count := path.read_bytes().count(SECRET))}


def free_pages(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA freelist_count").fetchone()[0])


def word(chance: random.Random) -> str:
    return f"{SECRET.decode()}{chance.randrange(1 << 40):x} "


async def stream(talk: ThreadStore, threads: list[str], chance: random.Random, steps: int) -> None:
    """Secret and other conversations grow side by side, in pieces of every size, written down in between."""
    said = {thread: talk.threads.open_message(thread, "assistant") for thread in threads}
    for _ in range(steps):
        thread = chance.choice(threads)
        text = word(chance) if thread == threads[0] else "other "
        message = said[thread]
        match chance.randrange(8):
            case 0:
                message.end("end_turn")
                said[thread] = talk.threads.open_message(thread, "assistant")
            case 1:
                message.add("text", text * chance.choice((1, 40, 900)))
            case 2 if message.parts:
                chance.choice(message.parts).put({"title": text * chance.choice((1, 300))}, text)
            case 3:
                talk.threads.put_state(thread, chance.choice(("plan", "modes")), {"entries": [text * 20]})
            case 4:
                talk.threads.rename(thread, text, ANN)
            case 5:
                await talk.threads.written()
            case _ if message.parts:
                chance.choice(message.parts).grow(text * chance.choice((1, 5, 200)))
            case _:
                pass
    await talk.threads.written()


async def files_without_secrets(folder: Path) -> None:
    with anyio.fail_after(20):
        while await anyio.to_thread.run_sync(secrets_in, folder):
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize(("seed", "steps"), [(0, 8000), (1, 800), (15, 1500)])
async def test_no_word_of_a_deleted_conversation_is_left_in_the_files(
    kept: JournalFiles, seed: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "QUIET_SECONDS", 0.05)
    async with thread_store(kept) as talk:
        threads = [talk.open(title=SECRET.decode()), *(talk.open() for _ in range(3))]
        await stream(talk, threads, random.Random(seed), steps)
        others = [await talk.threads.messages(thread) for thread in threads[1:]]
        assert secrets_in(kept.path.parent), "it was there"
        await talk.threads.delete(threads[0], ANN)
        assert "handrail.db-wal" not in secrets_in(kept.path.parent)
        await files_without_secrets(kept.path.parent)
        assert [await talk.threads.messages(thread) for thread in threads[1:]] == others
        assert threads[0] not in [one.id for one in await talk.records.threads.find()]
    verdict = verify(kept.path, kept.head)
    assert verdict.ok
    assert verdict.erased > 0
    with closing(sqlite3.connect(kept.path)) as connection:
        for table in ("messages", "thread_state", "sessions", "titles"):
            rows = connection.execute(f"SELECT count(*) FROM {table} WHERE thread = ?", (threads[0],))
            assert rows.fetchone()[0] == 0


async def test_what_is_still_to_be_erased_is_erased_after_a_restart(
    kept: JournalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open(title=SECRET.decode())
        await stream(talk, [thread, talk.open()], random.Random(0), 400)
        await talk.threads.delete(thread, ANN)
    assert free_pages(kept.path), "the file was not written anew yet"
    monkeypatch.setattr(writer, "QUIET_SECONDS", 0.05)
    async with thread_store(kept):
        with anyio.fail_after(20):
            while await anyio.to_thread.run_sync(free_pages, kept.path):
                await anyio.lowlevel.checkpoint()
        await files_without_secrets(kept.path.parent)


async def test_nothing_can_be_said_in_a_conversation_that_is_deleted(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        message = talk.threads.open_message(thread, "assistant")
        part = message.add("text", "so far")
        await talk.threads.delete(thread, ANN)
        part.grow(SECRET.decode())
        message.add("text", SECRET.decode())
        message.end("cancelled")
        await talk.threads.written()
        with pytest.raises(LookupError, match="There is no thread"):
            talk.threads.open_message(thread, "user")
    assert secrets_in(kept.path.parent) == {}


async def test_whoever_follows_a_conversation_is_let_go_when_it_is_deleted(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        talk.say(thread, "hello")
        reader = ThreadReader()
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(talk.threads.follow, thread, reader.rev, reader.take)
                await reader.until(lambda: bool(reader.texts))
                await talk.threads.delete(thread, ANN)
