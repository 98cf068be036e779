"""Search finds what was said, asked for and printed, soon, in plain words; and nothing that was deleted."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from tests.support.actors import ANN
from tests.support.sample_events import JournalFiles, call_opened, call_settled, caller
from tests.support.thread_store import ThreadStore, thread_store

from handrail.store import search_index
from handrail.store.search_index import Hits, SearchIndex, open_index
from handrail.store.values import Result

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "APART", 0.0)


def words_beside(kept: JournalFiles) -> Path:
    return kept.path.with_name("words.db")


@asynccontextmanager
async def indexing(kept: JournalFiles) -> AsyncGenerator[tuple[ThreadStore, SearchIndex]]:
    async with (
        thread_store(kept) as talk,
        open_index(words_beside(kept), talk.journal, talk.records) as index,
        anyio.create_task_group() as group,
    ):
        group.start_soon(index.run)
        yield talk, index
        group.cancel_scope.cancel()


async def caught_up(talk: ThreadStore, index: SearchIndex) -> None:
    with anyio.fail_after(20):
        await talk.threads.written()
        await index.wait_indexed(talk.journal.head)


async def find(
    talk: ThreadStore, index: SearchIndex, q: str, workspace: str | None = None, limit: int = 50
) -> Hits:
    await caught_up(talk, index)
    return await index.search(q, workspace, limit)


def shown(hits: Hits) -> list[tuple[str, list[str]]]:
    """Each hit's kind, and what is marked in it."""
    return [(hit.kind, [hit.snippet[begin:end] for begin, end in hit.marks]) for hit in hits.hits]


async def test_a_message_is_found_by_its_words_and_says_where_it_stands(kept: JournalFiles) -> None:
    async with indexing(kept) as (talk, index):
        thread = talk.open(title="About herons")
        talk.say(thread, "What is that bird?")
        answer = talk.threads.open_message(thread, "assistant", agent="demo")
        answer.add("thought", "Grey, tall: ")
        answer.add("text", "It is a ").grow("Kingfisher, I think.")
        answer.end("end_turn")
        (hit,) = (await find(talk, index, "kingfisher")).hits
        assert (hit.kind, hit.thread, hit.title) == ("message", thread, "About herons")
        assert (hit.message, hit.n, hit.role) == (answer.id, 2, "assistant")
        assert hit.snippet == "Grey, tall: \n\nIt is a Kingfisher, I think."
        assert [hit.snippet[begin:end] for begin, end in hit.marks] == ["Kingfisher"]
        assert shown(await find(talk, index, "grey tall")) == [("message", ["Grey, tall"])]
        assert shown(await find(talk, index, "herons")) == [("title", ["herons"])]


async def test_calls_are_found_by_what_was_asked_for_and_by_what_came_of_it(kept: JournalFiles) -> None:
    async with indexing(kept) as (talk, index):
        talk.journal.append(call_opened("c1", title="run the mill", input={"command": "mill --grind wheat"}))
        done = replace(call_settled("c1"), result=Result(text="two sacks of flour", data={}))
        talk.journal.append(done)
        (asked,) = (await find(talk, index, "grind")).hits
        assert (asked.kind, asked.call, asked.title, asked.thread) == ("input", "c1", "run the mill", None)
        assert shown(await find(talk, index, "flour")) == [("output", ["flour"])]
        assert shown(await find(talk, index, "mill", "/elsewhere")) == []
        assert shown(await find(talk, index, "mill", caller().workspace)) == [("input", ["mill", "mill"])]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("herring", True),
        ("HERRING", True),
        ("herr", True),
        ("red herr", True),
        ("herring red", True),
        ("naive", True),
        ("read_file", True),
        ("herr red", False),
        ("h", False),
        ("whale", False),
        ('"red AND', False),
        ("red NOT herring*", False),
        ("red - herring", True),
        ("(red) [herring];", True),
        ('text : "red" OR', False),
        ("' OR 1=1 --", False),
        ("*", False),
        ("", False),
    ],
)
async def test_people_type_plain_words_and_the_last_may_be_unfinished(
    kept: JournalFiles, typed: str, found: bool
) -> None:
    async with indexing(kept) as (talk, index):
        talk.say(talk.open(), "A naïve red herring, said read_file()")
        assert bool((await find(talk, index, typed)).hits) is found


async def test_titles_come_first_then_words_side_by_side_then_the_newest(kept: JournalFiles) -> None:
    async with indexing(kept) as (talk, index):
        thread = talk.open(title="Green tea")
        exact = talk.say(thread, "green tea, please")
        older = talk.say(thread, "tea that is green")
        newer = talk.say(thread, "green is not my cup of tea")
        found = await find(talk, index, "green tea")
        assert [hit.message for hit in found.hits] == [None, exact, newer, older]
        assert not found.more
        two = await find(talk, index, "green tea", limit=2)
        assert [hit.message for hit in two.hits] == [None, exact]
        assert two.more


async def test_a_long_text_is_found_to_its_end_and_once(kept: JournalFiles) -> None:
    async with indexing(kept) as (talk, index):
        text = "\n".join(f"line {number} of common words" for number in range(5000)) + "\nthe last word"
        message = talk.say(talk.open(), text)
        assert [hit.message for hit in (await find(talk, index, "the last word")).hits] == [message]
        assert [hit.message for hit in (await find(talk, index, "common words")).hits] == [message]


async def test_a_title_is_found_as_it_is_now(kept: JournalFiles) -> None:
    async with indexing(kept) as (talk, index):
        thread = talk.open(title="Oaks")
        await caught_up(talk, index)
        talk.threads.rename(thread, "Elms", ANN)
        assert shown(await find(talk, index, "oaks")) == []
        assert shown(await find(talk, index, "elms")) == [("title", ["Elms"])]


async def test_of_a_deleted_conversation_nothing_is_found_and_no_byte_is_left(kept: JournalFiles) -> None:
    async with indexing(kept) as (talk, index):
        thread, other = talk.open(title="Zyxwv title"), talk.open(title="Other")
        for number in range(200):
            talk.say(thread, f"zyxwvsecret{number} " * 30)
            talk.say(other, f"ordinary{number} " * 30)
        talk.journal.append(call_opened("c1", title="about plovers"))
        await caught_up(talk, index)
        assert any(b"zyxwv" in path.read_bytes() for path in kept.path.parent.glob("words.db*"))
        await talk.threads.delete(thread, ANN)
        assert shown(await index.search("zyxwvsecret7")) == []
        assert shown(await find(talk, index, "zyxwv")) == []
        for path in kept.path.parent.glob("words.db*"):
            assert b"zyxwv" not in path.read_bytes().lower(), path.name
        assert len((await index.search("ordinary7")).hits) == 11
        assert shown(await index.search("plovers")) == [("input", ["plovers"])]


async def test_what_came_while_nobody_indexed_is_found_later(kept: JournalFiles) -> None:
    async with indexing(kept) as (talk, index):
        thread = talk.open(title="T")
        talk.say(thread, "before")
        await caught_up(talk, index)
    async with thread_store(kept) as talk:
        talk.say(thread, "meanwhile")
    async with indexing(kept) as (talk, index):
        talk.say(thread, "afterwards")
        for word in ("before", "meanwhile", "afterwards"):
            assert len((await find(talk, index, word)).hits) == 1, word


@pytest.mark.parametrize("damage", [b"", b"no database at all" * 1000])
async def test_a_damaged_or_missing_file_is_made_again(kept: JournalFiles, damage: bytes) -> None:
    async with indexing(kept) as (talk, index):
        talk.say(talk.open(), "albatross")
        await caught_up(talk, index)
    words_beside(kept).write_bytes(damage)
    async with indexing(kept) as (talk, index):
        assert len((await find(talk, index, "albatross")).hits) == 1


async def test_the_words_of_another_journal_are_forgotten(kept: JournalFiles, tmp_path: Path) -> None:
    async with indexing(kept) as (talk, index):
        thread = talk.open()
        for _ in range(20):
            talk.say(thread, "albatross")
        await caught_up(talk, index)
    kept.path.unlink()
    kept.head.unlink()
    async with indexing(kept) as (talk, index):
        talk.say(talk.open(), "cormorant")
        assert len((await find(talk, index, "cormorant")).hits) == 1
        assert (await index.search("albatross")).hits == ()
