"""What an operation was busy with, as the store keeps it: the first fact wins, all ends with the operation, and goes with
the thread."""

from dataclasses import replace

import pytest
from tests.support.actors import ANN
from tests.support.sample_events import JournalFiles, caller
from tests.support.thread_store import ThreadStore, thread_store

from handrail.store.events import ActivityEnded, ActivityStarted, OperationEnded, OperationOpened
from handrail.store.operations import ActivityRecord
from handrail.store.values import ActivityEnding

pytestmark = pytest.mark.anyio


def operating(talk: ThreadStore) -> str:
    """A thread whose operation o1 has begun."""
    thread = talk.open()
    talk.journal.append(OperationOpened(operation="o1", caller=replace(caller(), thread=thread)))
    return thread


def begin(talk: ThreadStore, thread: str, id: str, title: str = "Step 1", tool_call: str = "") -> None:
    talk.journal.append(
        ActivityStarted(
            thread=thread,
            operation="o1",
            activity=id,
            parent=None,
            sort="step",
            title=title,
            tool_call=tool_call,
        )
    )


def end(talk: ThreadStore, thread: str, id: str, how: ActivityEnding = "done", detail: str = "") -> None:
    talk.journal.append(
        ActivityEnded(thread=thread, operation="o1", activity=id, sort="step", how=how, detail=detail)
    )


async def activities(talk: ThreadStore) -> list[ActivityRecord]:
    await talk.threads.written()
    found = await talk.records.operations.history("o1")
    assert found is not None
    return list(found.activities)


async def test_they_stand_in_the_order_in_which_they_began_with_their_first_end(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = operating(talk)
        for id in ("b", "a", "b"):  # noqa: A001 - as everywhere
            begin(talk, thread, id)
        end(talk, thread, "a", "failed", "no such file")
        end(talk, thread, "a")
        end(talk, thread, "nobody")
        first, second = await activities(talk)
        assert (first.id, first.how, first.ended_at) == ("b", None, None)
        assert (second.id, second.how, second.detail) == ("a", "failed", "no such file")


async def test_an_operation_that_is_cancelled_closes_them_and_says_what_was_cut_off(
    kept: JournalFiles,
) -> None:
    async with thread_store(kept) as talk:
        thread = operating(talk)
        begin(talk, thread, "a")
        begin(talk, thread, "b")
        end(talk, thread, "a")
        words = ("asking the model",)
        talk.journal.append(
            OperationEnded(
                operation="o1",
                cancelled_by="ann",
                stop="cancelled",
                cancelled_calls=("c1",),
                cancelled_activities=words,
            )
        )
        end(talk, thread, "b")
        assert [each.how for each in await activities(talk)] == ["done", "cancelled"]
        found = await talk.records.operations.history("o1")
        assert found is not None
        assert (found.cancelled_calls, found.cancelled_activities) == (("c1",), words)
        assert found.operation.thread == thread


async def test_those_that_a_crash_left_open_are_interrupted(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        begin(talk, operating(talk), "a")
        await talk.threads.written()
    async with thread_store(kept) as talk:
        (found,) = await activities(talk)
        assert found.how == "interrupted"
        assert found.ended_at is not None


async def test_one_that_is_a_call_names_the_call_of_ours_that_the_message_shows(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = operating(talk)
        answer = talk.threads.open_message(thread, "assistant", agent="demo", operation="o1")
        answer.add("call", data={"id": "t1", "call": "c9"})
        answer.add("call", data={"id": "t2", "call": None})
        for id, tool_call in (("a", "t1"), ("b", "t2"), ("c", "t3"), ("d", "")):  # noqa: A001
            begin(talk, thread, id, tool_call=tool_call)
        assert [each.call for each in await activities(talk)] == ["c9", None, None, None]


async def test_they_go_with_their_thread_out_of_the_journal_too(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = operating(talk)
        begin(talk, thread, "a", "Run secret.sh")
        end(talk, thread, "a", "failed", "secret.sh is gone")
        talk.journal.append(
            OperationEnded(operation="o1", cancelled_by="ann", cancelled_activities=("Run secret.sh",))
        )
        await talk.threads.written()
        assert "secret" in "".join(map(repr, await talk.journal.since(0)))
        await talk.threads.delete(thread, ANN)
    async with thread_store(kept) as talk:
        assert await activities(talk) == []
        assert "secret" not in "".join(map(repr, await talk.journal.since(0)))
        found = await talk.records.operations.history("o1")
        assert found is not None
        assert (found.operation.cancelled_by, found.cancelled_activities) == ("ann", ())


async def test_there_is_nothing_to_say_of_an_operation_that_never_was(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        assert await talk.records.operations.history("o1") is None
