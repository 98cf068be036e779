"""Threads: open, write to, read, follow, fork and delete conversations.

Changes are visible to readers and followers immediately, and on disk after at most 100 ms. Reads combine disk and
memory, consistent as of one moment. Does not know agents, nor what parts mean.
"""

import secrets
from collections.abc import Awaitable, Callable, Iterable

import anyio

from handrail.store.actor import HANDRAIL, Actor
from handrail.store.journal import Journal
from handrail.store.operations import OperationEnded
from handrail.store.records import Records
from handrail.store.threads._persistence import ThreadWriter
from handrail.store.threads.live_thread import Follower, Thread, ThreadChanges
from handrail.store.threads.message import Message, clean_json
from handrail.store.threads.thread_records import (
    MessageEnded,
    MessageOpened,
    MessageRecord,
    Page,
    PromptDropped,
    PromptSent,
    SessionBound,
    SessionRecord,
    Snapshot,
    ThreadDeleted,
    ThreadOpened,
    ThreadRenamed,
)
from handrail.store.values import Handover, Json, Role


class ThreadMessages:
    """The threads in memory, and writing messages to them."""

    def __init__(self, writer: ThreadWriter) -> None:
        self._writer = writer
        self._threads: dict[str, Thread] = {}

    def open_message(
        self,
        thread: str,
        role: Role,
        *,
        agent: str = "",
        operation: str | None = None,
        queued: bool = False,
        said_at: int | None = None,
    ) -> Message:
        """Open a message at the end of a thread. `said_at` is the original time of a copied one (fork, import)."""
        kept = self._thread(thread)
        kept.last += 1
        message = Message(
            self._touched,
            self._ended,
            id=f"m{secrets.token_hex(6)}",
            thread=thread,
            n=kept.last,
            role=role,
            agent=agent,
            operation=operation,
            queued=queued,
            opened_at=said_at,
        )
        self._writer.append(
            MessageOpened(
                thread=thread,
                message=message.id,
                n=message.n,
                role=role,
                agent=agent,
                operation=operation,
                queued=queued,
                said_at=said_at,
            )
        )
        message.changed()
        return message

    def queued(self, thread: str) -> list[Message]:
        """Return the queued prompts, in order."""
        waiting = [message for message in self._thread(thread).messages.values() if message.queued]
        return sorted(waiting, key=lambda message: message.n)

    def sent(self, message: str, operation: str) -> Message:
        """Mark a queued prompt as sent, and move it behind the messages that came while it waited.

        Raises `LookupError` when it is not queued.
        """
        thread, prompt = self._queued(message)
        thread.last += 1
        prompt.queued, prompt.operation, prompt.n = False, operation, thread.last
        self._writer.append(PromptSent(thread=thread.id, message=message, operation=operation, n=prompt.n))
        prompt.changed()
        return prompt

    def dropped(self, message: str, by: Actor) -> None:
        """Remove a queued prompt. Raises `LookupError` when it is not queued."""
        thread, prompt = self._queued(message)
        self._writer.append(PromptDropped(thread=thread.id, message=message, by=str(by)))
        thread.drop(prompt)

    def put_state(self, thread: str, name: str, data: Json) -> None:
        """Set a named value of the thread as a whole, replacing the old one."""
        kept = self._thread(thread)
        kept.put_state(name, clean_json(data))
        self._writer.mark_dirty(kept)

    def _restored(self, found: MessageRecord) -> Message:
        """Rebuild a message that was open when the daemon ended."""
        return Message.restored(self._touched, self._ended, found)

    def _thread(self, id: str) -> Thread:
        try:
            return self._threads[id]
        except KeyError:
            raise LookupError(f"There is no thread {id}.") from None

    def _queued(self, message: str) -> tuple[Thread, Message]:
        for thread in self._threads.values():
            found = thread.messages.get(message)
            if found is not None and found.queued:
                return thread, found
        raise LookupError(f"The prompt {message} is not waiting any more.")

    def _touched(self, message: Message) -> int:
        thread = self._threads.get(message.thread)
        if thread is None or message.id in thread.dropped:  # removed while a writer still held the message
            return message.rev + 1
        self._writer.mark_dirty(thread)
        return thread.touch(message)

    def _ended(self, message: Message) -> None:
        if message.thread in self._threads and message.stop is not None:
            self._writer.append(
                MessageEnded(
                    thread=message.thread, message=message.id, stop=message.stop, said_at=message.said_at
                )
            )


NEWEST = 60
"""Default number of messages in a snapshot: a few screens."""
TOGETHER = 50
"""Messages copied per batch: bounds how long other tasks wait, and the memory until they are on disk."""


class Threads(ThreadMessages):
    """All threads. Stored ones are known once `restore` has returned."""

    def __init__(self, journal: Journal, records: Records) -> None:
        super().__init__(ThreadWriter(journal))
        self._journal = journal
        self._records = records
        self._reader = ThreadReader(records)
        self._default = anyio.Lock()

    def open(
        self,
        *,
        workspace: str | None,
        title: str,
        agent: str,
        by: Actor,
        forked_from: str | None = None,
        forked_at: str | None = None,
        imported: bool = False,
    ) -> str:
        """Open a thread; return its id."""
        thread = f"h{secrets.token_hex(5)}"
        self._threads[thread] = Thread(thread)
        self._writer.append(
            ThreadOpened(
                thread=thread,
                workspace=workspace,
                title=title,
                agent=agent,
                by=str(by),
                forked_from=forked_from,
                forked_at=forked_at,
                imported=imported,
            )
        )
        return thread

    async def default(self, workspace: str | None, agent: str, by: Actor = HANDRAIL) -> str:
        """Return the most recently updated thread of a workspace; if it has none, open one with the title "Default"."""
        async with self._default:
            await self.written()
            newest = await self._records.threads.find(workspace, limit=1)
            if newest:
                return newest[0].id
            return self.open(workspace=workspace, title="Default", agent=agent, by=by)

    def rename(self, thread: str, title: str, by: Actor) -> None:
        self._thread(thread)
        self._writer.append(ThreadRenamed(thread=thread, title=title, by=str(by)))

    async def fork(self, thread: str, message: str | None, before: bool, title: str, by: Actor) -> str:
        """Copy a thread up to a message, without the message itself if `before`; return the new id.

        Without a message, all of it. Raises `LookupError` when the message is not in the thread.
        """
        await self.written()
        said = await self.transcript(thread)
        found = await self._records.threads.get(thread)
        places = [place for place, one in enumerate(said) if message in (None, one.id)][-1:]
        if found is None or (message is not None and not places):
            raise LookupError(f"There is no message {message} in thread {thread}.")
        shared = said[: places[0] + (0 if before and message is not None else 1)] if places else []
        fork = self.open(
            workspace=found.workspace,
            title=title or found.title,
            agent=found.agent,
            by=by,
            forked_from=thread,
            forked_at=shared[-1].id if shared else None,
        )
        await self.append_copies(fork, shared)
        return fork

    async def append_copies(self, thread: str, messages: Iterable[MessageRecord]) -> None:
        """Append copies of messages, with new ids and their original times; return when they are on disk."""
        for place, said in enumerate(messages, 1):
            message = self.open_message(thread, said.role, agent=said.agent, said_at=said.opened_at)
            for part in said.parts:
                message.add(part.kind, part.text, part.data)
            message.end(said.stop or "interrupted", said.ended_at)
            if place % TOGETHER == 0:
                await self.written()
        await self.written()

    async def delete(self, thread: str, by: Actor) -> None:
        """Delete a thread. On return, its messages are gone from the database. Ends all followers."""
        self._thread(thread).delete()
        del self._threads[thread]
        self._writer.append(ThreadDeleted(thread=thread, by=str(by)))
        await self.written()

    def bind(self, thread: str, agent: str, session: str, how: Handover, upto: int) -> None:
        """Record the agent's session id for a thread, and the position `upto` which the agent knows."""
        self._thread(thread)
        self._writer.append(SessionBound(thread=thread, agent=agent, session=session, how=how, upto=upto))

    async def sessions(self, thread: str) -> dict[str, SessionRecord]:
        """Return the sessions of a thread by agent."""
        await self.written()
        return await self._records.threads.sessions(thread)

    async def snapshot(self, thread: str, limit: int = NEWEST) -> Snapshot:
        """Return the newest messages, open ones included, and the revision to follow from."""
        return await self._reader.snapshot(self._thread(thread), limit)

    async def page(self, thread: str, before: int, limit: int = NEWEST) -> Page:
        """Return the newest messages before position `before`."""
        return await self._reader.page(self._thread(thread), before, limit)

    async def messages(self, thread: str) -> list[MessageRecord]:
        """Return all messages, queued ones included."""
        return await self._reader.messages(self._thread(thread))

    async def transcript(self, thread: str, after_n: int = 0) -> list[MessageRecord]:
        """Return the messages after position `after_n`, without queued ones."""
        messages = await self._reader.messages(self._thread(thread), after_n)
        return [message for message in messages if not message.queued]

    async def follow(
        self, thread: str, after_rev: int, send: Callable[[ThreadChanges], Awaitable[None]]
    ) -> None:
        """Send combined changes after `after_rev`, at the pace of `send`, until the thread is deleted."""
        kept = self._thread(thread)
        await Follower(kept, after_rev, lambda: self._reader.snapshot(kept, NEWEST)).run(send)

    async def written(self) -> None:
        """Return when every change so far is on disk. Raises `Unwritable`."""
        await self._journal.written()

    async def restore(self) -> None:
        """Load all threads, and end messages and operations that a crash left open. Queued prompts stay queued."""
        for thread, last in (await self._records.threads.last_positions()).items():
            self._threads[thread] = Thread(thread, last)
        for found in await self._records.threads.open_messages():
            message = self._restored(found)
            if not message.queued:
                message.end("interrupted")
        for operation in await self._records.operations.still_open():
            self._writer.append(OperationEnded(operation=operation.id, cancelled_by=None, stop="interrupted"))
        await self.written()


class ThreadReader:
    """Reads a thread: stored messages, overlaid with those in memory."""

    def __init__(self, records: Records) -> None:
        self._records = records

    async def snapshot(self, thread: Thread, limit: int) -> Snapshot:
        """Return the newest messages, and their revision."""
        page, state = await self._read(thread, None, limit)
        newer = {name: one.data for name, one in thread.state.items()}
        return Snapshot(rev=thread.rev, messages=page.messages, more=page.more, state={**state, **newer})

    async def page(self, thread: Thread, before: int | None, limit: int) -> Page:
        """Return the newest messages before a position."""
        page, _ = await self._read(thread, before, limit)
        return page

    async def messages(self, thread: Thread, after: int = 0) -> list[MessageRecord]:
        """Return all messages after a position."""
        left = -1
        stored: list[MessageRecord] = []
        while left != thread.left:
            left = thread.left
            stored = await self._records.threads.messages(thread.id, after=after)
        return _merged(thread, stored, after, None)

    async def _read(self, thread: Thread, before: int | None, limit: int) -> tuple[Page, dict[str, Json]]:
        left = -1
        stored: list[MessageRecord] = []
        state: dict[str, Json] = {}
        while left != thread.left:  # data that left memory during the disk read may be missing in both
            left = thread.left
            stored = await self._records.threads.messages(thread.id, before=before, limit=limit + 1)
            state = await self._records.threads.state(thread.id)
        messages = _merged(thread, stored, 0, before)
        return Page(messages=tuple(messages[-limit:]), more=len(messages) > limit), state


def _merged(
    thread: Thread, stored: Iterable[MessageRecord], after: int, before: int | None
) -> list[MessageRecord]:
    found = {message.id: message for message in stored if message.id not in thread.dropped}
    for message in thread.messages.values():
        found.pop(message.id, None)  # its position may have changed
        if message.n > after and (before is None or message.n < before):
            found[message.id] = message.record()
    return sorted(found.values(), key=lambda message: message.n)
