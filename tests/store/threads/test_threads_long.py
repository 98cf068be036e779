"""A conversation of 5,000 messages. How fast it opens is measured in the bench."""

import anyio
import pytest
from tests.support.actors import ANN
from tests.support.sample_events import JournalFiles
from tests.support.thread_store import ThreadStore, thread_store

from handrail.store.threads.thread_records import MessagePart, MessageRecord

pytestmark = pytest.mark.anyio

LONG = 5_000


def said(number: int) -> MessageRecord:
    texts = (f"A thought about {number}. " * 5, f"Message {number} says this and that. " * 20)
    return MessageRecord(
        id="",
        thread="",
        n=0,
        role="assistant" if number % 2 else "user",
        agent="demo",
        operation=None,
        queued=False,
        opened_at=number,
        ended_at=number + 1,
        stop="end_turn",
        parts=(
            MessagePart(n=0, kind="thought", text=texts[0], data={}),
            MessagePart(n=1, kind="text", text=texts[1], data={}),
            MessagePart(n=2, kind="call", text="", data={"id": str(number), "title": "Read a.py"}),
        ),
    )


async def a_long_talk(talk: ThreadStore) -> str:
    thread = talk.open("Long")
    with anyio.fail_after(120):
        await talk.threads.append_copies(thread, (said(number) for number in range(LONG)))
    return thread


@pytest.mark.timeout(180)
async def test_a_thread_of_five_thousand_messages_is_opened_by_its_end_and_read_page_by_page(
    kept: JournalFiles,
) -> None:
    async with thread_store(kept) as talk:
        thread = await a_long_talk(talk)
    async with thread_store(kept) as talk:
        assert len((await talk.threads.snapshot(thread)).messages) == 60
        page = await talk.threads.page(thread, LONG // 2)
        assert [message.n for message in page.messages] == [*range(LONG // 2 - 60, LONG // 2)]
        assert len(await talk.threads.messages(thread)) == LONG
        assert (await talk.threads.snapshot(thread)).messages[-1].n == LONG
        await talk.threads.delete(thread, ANN)
