"""Conversations: begun, spoken in, read, followed and deleted."""

from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest
from tests.support.actors import ANN
from tests.support.sample_events import JournalFiles, caller
from tests.support.thread_store import ThreadReader, follow_thread, thread_store

from handrail.store.actor import actor_from_text
from handrail.store.events import OperationEnded, OperationOpened
from handrail.store.threads.thread_records import SessionRecord

pytestmark = pytest.mark.anyio


async def test_what_is_said_is_read_at_once_and_again_after_a_restart(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        talk.say(thread, "Hello")
        answer = talk.threads.open_message(thread, "assistant", agent="demo", operation="o1")
        thought = answer.add("thought", "Let me")
        thought.grow(" think")
        call = answer.add("call", data={"id": "1", "status": "pending"})
        call.put({"id": "1", "status": "completed"})
        text = answer.add("text")
        for word in ("Hi", ", ", "you"):
            text.grow(word)
        before = await talk.threads.snapshot(thread)
        assert [[part.text for part in one.parts] for one in before.messages] == [
            ["Hello"],
            ["Let me think", "", "Hi, you"],
        ]
        assert before.messages[1].stop is None
        answer.end("end_turn")
        said = await talk.threads.messages(thread)
    async with thread_store(kept) as talk:
        after = await talk.threads.snapshot(thread)
        assert [(one.id, one.n, one.role, one.parts) for one in after.messages] == [
            (one.id, one.n, one.role, one.parts) for one in said
        ]
        assert after.messages[1].stop == "end_turn"
        assert after.messages[1].parts[1].data == {"id": "1", "status": "completed"}
        assert not after.more


async def test_a_reader_sees_text_grow_from_where_it_has_it(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        reader = ThreadReader()
        reader.load(await talk.threads.snapshot(thread))
        async with follow_thread(talk, thread, reader):
            answer = talk.threads.open_message(thread, "assistant", agent="demo")
            text = answer.add("text", "One")
            await reader.until(lambda: reader.texts == {(answer.id, 0): "One"})
            text.grow(" two")
            text.grow(" three")
            await reader.until(lambda: reader.texts == {(answer.id, 0): "One two three"})
            assert [(one.at, one.text) for flow in reader.flows for one in flow.growths] == [
                (0, "One"),
                (3, " two three"),
            ]
            answer.end("end_turn")
            await reader.until(lambda: reader.stops == {answer.id: "end_turn"})


async def test_what_flows_is_on_disk_soon_though_nobody_asks(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        answer = talk.threads.open_message(thread, "assistant")
        answer.add("text", "so far").grow(" so good")
        with anyio.fail_after(5):
            while not (found := await talk.records.threads.open_messages()) or not found[0].parts:
                await anyio.lowlevel.checkpoint()
        assert found[0].parts[0].text == "so far so good"


async def test_threads_are_listed_by_what_was_said_last(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        first, second = talk.open("First"), talk.open("Second")
        elsewhere = talk.open("Elsewhere", workspace="/elsewhere")
        await talk.threads.written()
        await anyio.sleep(0.002)
        talk.say(first, "hello")
        await talk.threads.written()
        assert [one.id for one in await talk.records.threads.find()] == [first, elsewhere, second]
        newest, oldest = await talk.records.threads.find("/w")
        assert [one.id for one in (newest, oldest)] == [first, second]
        assert [one.id for one in await talk.records.threads.find("/w", before=newest.updated_at)] == [second]
        assert [one.id for one in await talk.records.threads.find(limit=1)] == [first]
        assert (newest.title, newest.agent, newest.messages, newest.stop) == ("First", "demo", 1, "end_turn")
        assert (oldest.messages, oldest.stop, oldest.operation) == (0, None, None)


async def test_a_thread_says_what_runs_for_it_and_what_waits(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        who = replace(caller(), thread=thread)
        talk.journal.append(OperationOpened(operation="o1", caller=who))
        talk.say(thread, "go")
        talk.threads.open_message(thread, "assistant", agent="demo", operation="o1")
        talk.threads.open_message(thread, "user", queued=True)
        await talk.threads.written()
        found = await talk.records.threads.get(thread)
        assert found is not None
        assert (found.operation, found.queued, found.messages, found.stop) == ("o1", 1, 3, None)
        talk.journal.append(OperationEnded(operation="o1", cancelled_by="ann", stop="cancelled", error="!"))
        await talk.threads.written()
        found = await talk.records.threads.get(thread)
        assert found is not None
        assert found.operation is None
        operation = await talk.records.operations.get("o1")
        assert operation is not None
        assert (operation.thread, operation.cancelled_by, operation.stop, operation.error) == (
            thread,
            "ann",
            "cancelled",
            "!",
        )


async def test_a_workspace_without_a_thread_gets_one_and_only_one(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        found: list[str] = []

        async def ask() -> None:
            found.append(await talk.threads.default("/w", "demo"))

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(ask)
        assert len(set(found)) == 1
        assert [one.title for one in await talk.records.threads.find("/w")] == ["Default"]
        assert await talk.threads.default("/other", "demo") != found[0]


async def test_a_thread_that_is_renamed_says_by_whom(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open("Old")
        talk.threads.rename(thread, "New", actor_from_text("agent demo"))
        await talk.threads.written()
        found = await talk.records.threads.get(thread)
        assert found is not None
        assert (found.title, found.titled_by) == ("New", "agent demo")


async def test_an_agents_own_session_is_remembered_with_how_far_it_knows_the_thread(
    kept: JournalFiles,
) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        talk.threads.bind(thread, "demo", "s1", "new", 2)
        talk.threads.bind(thread, "other", "x1", "transcript", 4)
        talk.threads.bind(thread, "demo", "s2", "resumed", 6)
    async with thread_store(kept) as talk:
        assert await talk.threads.sessions(thread) == {
            "demo": SessionRecord(session="s2", upto=6),
            "other": SessionRecord(session="x1", upto=4),
        }


@pytest.mark.parametrize(("before", "shared"), [(False, ["one", "two"]), (True, ["one"])])
async def test_a_fork_shares_what_was_said_up_to_a_message(
    kept: JournalFiles, before: bool, shared: list[str]
) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open("Trunk")
        ids = [talk.say(thread, text) for text in ("one", "two", "three")]
        fork = await talk.threads.fork(thread, ids[1], before, "", ANN)
        talk.say(fork, "another end")
        told = await talk.threads.messages(fork)
        assert [one.parts[0].text for one in told] == [*shared, "another end"]
        said = await talk.threads.messages(thread)
        assert [one.parts[0].text for one in said] == ["one", "two", "three"]
        assert told[0].opened_at == said[0].opened_at
        assert told[0].id != said[0].id
        found = await talk.records.threads.get(fork)
        assert found is not None
        assert (found.title, found.workspace, found.forked_from) == ("Trunk", "/w", thread)
        assert found.forked_at == ids[len(shared) - 1]
        await talk.threads.delete(thread, ANN)
        assert len(await talk.threads.messages(fork)) == len(shared) + 1


async def test_a_fork_at_a_message_of_another_thread_is_refused(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        other = talk.say(talk.open(), "elsewhere")
        with pytest.raises(LookupError, match=f"There is no message {other} in thread {thread}"):
            await talk.threads.fork(thread, other, before=False, title="", by=ANN)
