"""After a crash, what was open is ended, what was said is there, and what waited still waits."""

import shutil

import pytest
from tests.support.actors import ANN
from tests.support.sample_events import JournalFiles, caller
from tests.support.thread_store import ThreadStore, thread_store

from handrail.store.events import OperationOpened

pytestmark = pytest.mark.anyio


async def crash(talk: ThreadStore, kept: JournalFiles) -> JournalFiles:
    """The files as they are while the daemon still runs: what a crash would leave."""
    await talk.threads.written()
    for end in ("", "-wal"):
        shutil.copyfile(kept.path.with_name(kept.path.name + end), kept.path.with_name(f"crashed.db{end}"))
    return JournalFiles(kept.path.with_name("crashed.db"), kept.path.with_name("crashed.head"))


async def test_an_answer_that_a_crash_cut_off_is_whole_up_to_there_and_interrupted(
    kept: JournalFiles,
) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        talk.say(thread, "go")
        answer = talk.threads.open_message(thread, "assistant", agent="demo", operation="o1")
        first, second = answer.add("thought", "a"), answer.add("text", "b")
        for number in range(12):
            (first if number % 3 else second).grow(str(number))
            await talk.threads.written()
        second.put({"is": "replaced"}, "anew")
        second.grow("er")
        crashed = await crash(talk, kept)
    for _ in range(2):  # once restored, it stays as it is
        async with thread_store(crashed) as talk:
            messages = await talk.threads.messages(thread)
            assert [one.stop for one in messages] == ["end_turn", "interrupted"]
            assert [(part.kind, part.text, part.data) for part in messages[1].parts] == [
                ("thought", "a12457810" + "11", {}),
                ("text", "anewer", {"is": "replaced"}),
            ]
            assert messages[1].ended_at is not None


async def test_the_conversation_goes_on_after_a_crash(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        cut = talk.threads.open_message(thread, "assistant")
        cut.add("text", "cut off")
        crashed = await crash(talk, kept)
    async with thread_store(crashed) as talk:
        talk.say(thread, "go on")
        assert [one.n for one in await talk.threads.messages(thread)] == [1, 2]


async def test_operations_that_a_crash_ended_say_so(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        talk.journal.append(OperationOpened(operation="o1", caller=caller()))
        assert await talk.records.operations.still_open() == []
        await talk.threads.written()
        assert [one.id for one in await talk.records.operations.still_open()] == ["o1"]
        crashed = await crash(talk, kept)
    async with thread_store(crashed) as talk:
        assert await talk.records.operations.still_open() == []
        operation = await talk.records.operations.get("o1")
        assert operation is not None
        assert (operation.thread, operation.stop, operation.cancelled_by) == ("t1", "interrupted", None)


async def test_queued_prompts_stay_queued_and_can_still_be_sent_or_dropped(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        ids: list[str] = []
        for text in ("first", "second", "not ended yet"):
            message = talk.threads.open_message(thread, "user", queued=True)
            message.add("text", text)
            ids.append(message.id)
            if text != "not ended yet":
                message.end("end_turn")
        crashed = await crash(talk, kept)
    async with thread_store(crashed) as talk:
        assert [one.id for one in talk.threads.queued(thread)] == ids
        talk.threads.dropped(ids[0], ANN)
        assert talk.threads.sent(ids[1], "o2").parts[0].text == "second"
        assert [one.id for one in talk.threads.queued(thread)] == [ids[2]]
        assert [one.parts[0].text for one in await talk.threads.transcript(thread)] == ["second"]
