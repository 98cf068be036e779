"""Messages begin, wait for their turn, and end."""

import pytest
from tests.support.actors import ANN
from tests.support.sample_events import JournalFiles
from tests.support.thread_store import ThreadStore, thread_store

from handrail.store.events import Entry, MessageOpened, PromptDropped, PromptSent
from handrail.store.threads.thread_records import MessageRecord

pytestmark = pytest.mark.anyio


def texts(messages: list[MessageRecord]) -> list[str]:
    return [" ".join(part.text for part in message.parts) for message in messages]


def queue(talk: ThreadStore, thread: str, text: str) -> str:
    message = talk.threads.open_message(thread, "user", agent="demo", queued=True)
    message.add("text", text)
    message.end("end_turn")
    return message.id


async def test_a_queued_prompt_moves_behind_what_was_said_while_it_waited(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        talk.say(thread, "first")
        waiting = queue(talk, thread, "later")
        talk.say(thread, "meanwhile")
        assert [message.id for message in talk.threads.queued(thread)] == [waiting]
        assert texts(await talk.threads.transcript(thread)) == ["first", "meanwhile"]
        sent = talk.threads.sent(waiting, "o1")
        assert (sent.operation, sent.queued) == ("o1", False)
        assert talk.threads.queued(thread) == []
        assert texts(await talk.threads.messages(thread)) == ["first", "meanwhile", "later"]
    async with thread_store(kept) as talk:
        assert texts(await talk.threads.messages(thread)) == ["first", "meanwhile", "later"]
        assert talk.threads.queued(thread) == []
        record = await talk.records.threads.get(thread)
        assert record is not None
        assert (record.messages, record.queued) == (3, 0)


async def test_a_prompt_that_is_taken_back_was_never_said(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        waiting, other = queue(talk, thread, "no"), queue(talk, thread, "yes")
        await talk.threads.written()
        talk.threads.dropped(waiting, ANN)
        assert texts(await talk.threads.messages(thread)) == ["yes"]
        with pytest.raises(LookupError, match="is not waiting any more"):
            talk.threads.sent(waiting, "o1")
        await talk.threads.written()
        record = await talk.records.threads.get(thread)
        assert record is not None
        assert record.queued == 1
        assert [message.id for message in await talk.records.threads.messages(thread)] == [other]
        kinds = [type(entry.event) for entry in await talk.journal.since(0)]
        assert PromptDropped in kinds
        assert PromptSent not in kinds


async def test_only_the_first_of_two_who_send_a_prompt_does(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        waiting = queue(talk, thread, "once")
        talk.threads.sent(waiting, "o1")
        with pytest.raises(LookupError):
            talk.threads.sent(waiting, "o2")
        with pytest.raises(LookupError):
            talk.threads.dropped(waiting, ANN)


async def test_what_is_said_is_in_no_fact(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        talk.say(thread, "a secret")
        await talk.threads.written()
        entries: list[Entry] = await talk.journal.since(0)
        assert [type(entry.event).__name__ for entry in entries] == [
            "ThreadOpened",
            "MessageOpened",
            "MessageEnded",
        ]
        assert all("secret" not in str(entry.event) for entry in entries)
        assert [entry.event.n for entry in entries if isinstance(entry.event, MessageOpened)] == [1]


async def test_the_first_end_of_a_message_holds_and_what_comes_late_is_kept(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        message = talk.threads.open_message(thread, "assistant", agent="demo")
        text = message.add("text", "so far")
        message.end("cancelled")
        message.end("end_turn")
        await talk.threads.written()
        await talk.threads.written()
        text.grow(", and a late word")
        message.add("note", "late")
        assert texts(await talk.threads.messages(thread)) == ["so far, and a late word late"]
    async with thread_store(kept) as talk:
        (found,) = await talk.threads.messages(thread)
        assert texts([found]) == ["so far, and a late word late"]
        assert found.stop == "cancelled"
