"""What is read is all there is, even when it leaves the memory for the disk while it is being read."""

import pytest
from tests.support.sample_events import JournalFiles
from tests.support.thread_store import ThreadStore, thread_store

from handrail.store.journal import open_journal
from handrail.store.query import Reader
from handrail.store.records import Records
from handrail.store.threads.queries import ThreadQueries
from handrail.store.threads.thread_records import MessageRecord
from handrail.store.threads.threads import Threads

pytestmark = pytest.mark.anyio


class LateThreads(ThreadQueries):
    """Queries whose first answer about messages comes after all of them were written."""

    threads_of: Threads | None = None

    async def messages(
        self, thread: str, *, after: int = 0, before: int | None = None, limit: int | None = None
    ) -> list[MessageRecord]:
        found = await super().messages(thread, after=after, before=before, limit=limit)
        if self.threads_of is not None:
            threads, self.threads_of = self.threads_of, None
            await threads.written()
            await threads.written()
        return found


async def test_what_leaves_the_memory_while_the_disk_is_read_is_not_missed(kept: JournalFiles) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        reader = Reader(kept.path)
        records, late = Records(reader), LateThreads(reader)
        records.threads = late
        threads = Threads(journal, records)
        talk = ThreadStore(journal, records, threads)
        thread = talk.open()
        await threads.written()
        for read in (threads.messages, threads.transcript):
            talk.say(thread, "hello")
            count = len(await threads.messages(thread))
            late.threads_of = threads
            assert len(await read(thread)) == count
            assert late.threads_of is None, "it was written meanwhile"
        talk.say(thread, "hello")
        late.threads_of = threads
        assert len((await threads.snapshot(thread)).messages) == 3
        records.close()


async def test_a_long_conversation_is_read_page_by_page(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        ids = [talk.say(thread, str(number)) for number in range(25)]
        newest = await talk.threads.snapshot(thread, limit=10)
        assert [message.id for message in newest.messages] == ids[15:]
        assert newest.more
        middle = await talk.threads.page(thread, newest.messages[0].n, limit=10)
        assert [message.id for message in middle.messages] == ids[5:15]
        assert middle.more
        oldest = await talk.threads.page(thread, middle.messages[0].n, limit=10)
        assert [message.id for message in oldest.messages] == ids[:5]
        assert not oldest.more


async def test_what_is_in_memory_and_on_disk_is_read_once_and_in_order(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        ids = [talk.say(thread, "one")]
        open_one = talk.threads.open_message(thread, "assistant")
        ids.append(open_one.id)
        await talk.threads.written()
        ids += [talk.say(thread, "three")]
        await talk.threads.written()
        open_one.add("text", "two")
        ids += [talk.say(thread, "four")]
        assert [message.id for message in await talk.threads.messages(thread)] == ids
        transcript = await talk.threads.transcript(thread, 1)
        assert [message.parts[0].text for message in transcript] == ["two", "three", "four"]


async def test_there_is_nothing_to_read_of_a_thread_that_is_not_there(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        with pytest.raises(LookupError, match="There is no thread h0"):
            await talk.threads.snapshot("h0")
