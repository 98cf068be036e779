"""Reading a conversation: what is on disk, with what is in memory over it, as of one moment.

It does not know who reads.
"""

from collections.abc import Iterable

from handrail.store.query import Records
from handrail.store.thread.record import MessageRecord, Page, Snapshot
from handrail.store.thread.thread import Thread
from handrail.store.value import Json


class Reading:
    """Conversations as they are now."""

    def __init__(self, records: Records) -> None:
        self._records = records

    async def snapshot(self, thread: Thread, limit: int) -> Snapshot:
        """Its newest messages, and the revision that they are of."""
        page, state = await self._read(thread, None, limit)
        newer = {name: one.data for name, one in thread.state.items()}
        return Snapshot(rev=thread.rev, messages=page.messages, more=page.more, state={**state, **newer})

    async def page(self, thread: Thread, before: int | None, limit: int) -> Page:
        """The newest messages before a place."""
        page, _ = await self._read(thread, before, limit)
        return page

    async def messages(self, thread: Thread, after: int = 0) -> list[MessageRecord]:
        """All messages behind a place."""
        left = -1
        stored: list[MessageRecord] = []
        while left != thread.left:
            left = thread.left
            stored = await self._records.messages(thread.id, after=after)
        return _merged(thread, stored, after, None)

    async def _read(self, thread: Thread, before: int | None, limit: int) -> tuple[Page, dict[str, Json]]:
        left = -1
        stored: list[MessageRecord] = []
        state: dict[str, Json] = {}
        while left != thread.left:  # what left the memory while the disk was read may be in neither
            left = thread.left
            stored = await self._records.messages(thread.id, before=before, limit=limit + 1)
            state = await self._records.state(thread.id)
        messages = _merged(thread, stored, 0, before)
        return Page(messages=tuple(messages[-limit:]), more=len(messages) > limit), state


def _merged(
    thread: Thread, stored: Iterable[MessageRecord], after: int, before: int | None
) -> list[MessageRecord]:
    found = {message.id: message for message in stored if message.id not in thread.dropped}
    for message in thread.messages.values():
        found.pop(message.id, None)  # it may have moved
        if message.n > after and (before is None or message.n < before):
            found[message.id] = message.record()
    return sorted(found.values(), key=lambda message: message.n)
