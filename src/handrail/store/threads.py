"""Conversations: begun, spoken in, followed, deleted.

Owns which of them are in memory (thread/): what is being said, and what is not yet on disk. Verbs that do not wait are
plain functions: what they do is seen at once by whoever reads or follows, and is on disk 100 ms later at the latest. It
does not know agents, nor what a part means.
"""

import secrets
from collections.abc import Awaitable, Callable

from anyio import Lock

from handrail.store.event import (
    MessageEnded,
    MessageOpened,
    OperationEnded,
    PromptDropped,
    PromptSent,
    SessionBound,
    ThreadDeleted,
    ThreadOpened,
    ThreadRenamed,
)
from handrail.store.journal import Journal
from handrail.store.query import Records
from handrail.store.thread.clean import clean_json
from handrail.store.thread.follow import Flow, Follower
from handrail.store.thread.message import Message
from handrail.store.thread.reading import Reading
from handrail.store.thread.record import MessageRecord, Page, SessionRecord, Snapshot
from handrail.store.thread.thread import Thread
from handrail.store.thread.writing import Writing
from handrail.store.value import Handover, Json, Role

NEWEST = 60
"""Messages in a snapshot, unless it is said otherwise: a few screens full."""


class Threads:
    """All conversations. Before any verb is used, `restore` (thread/restore.py) tells it those of old."""

    def __init__(self, journal: Journal, records: Records) -> None:
        self._journal = journal
        self._records = records
        self._reading = Reading(records)
        self._writing = Writing(journal)
        self._threads: dict[str, Thread] = {}
        self._default = Lock()

    def open(
        self,
        *,
        workspace: str | None,
        title: str,
        agent: str,
        by: str,
        forked_from: str | None = None,
        forked_at: str | None = None,
        imported: bool = False,
    ) -> str:
        """Begin a conversation; its id."""
        thread = f"h{secrets.token_hex(5)}"
        self._threads[thread] = Thread(thread)
        self._writing.tell(
            ThreadOpened(
                thread=thread,
                workspace=workspace,
                title=title,
                agent=agent,
                by=by,
                forked_from=forked_from,
                forked_at=forked_at,
                imported=imported,
            )
        )
        return thread

    async def default(self, workspace: str | None, agent: str, by: str = "handrail") -> str:
        """The conversation of a workspace that was updated last; a new one where there is none."""
        async with self._default:
            await self.written()
            newest = await self._records.threads(workspace, limit=1)
            if newest:
                return newest[0].id
            return self.open(workspace=workspace, title="Default", agent=agent, by=by)

    def rename(self, thread: str, title: str, by: str) -> None:
        self._thread(thread)
        self._writing.tell(ThreadRenamed(thread=thread, title=title, by=by))

    async def delete(self, thread: str, by: str) -> None:
        """Nothing that was said remains when this returns; whoever followed it is let go."""
        self._thread(thread).delete()
        del self._threads[thread]
        self._writing.tell(ThreadDeleted(thread=thread, by=by))
        await self._journal.written(truncate=True)

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
        """Somebody begins to speak. `said_at` is when they did, where it is told again (fork, import)."""
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
        self._writing.tell(
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
        """Prompts that wait for their turn, in their order."""
        return [message for message in self._thread(thread).messages.values() if message.queued]

    def sent(self, message: str, operation: str) -> Message:
        """A queued prompt's turn has come: from now on it stands behind all that was said while it waited.

        Raises `LookupError` when it is not queued, or no longer.
        """
        thread, prompt = self._queued(message)
        thread.last += 1
        prompt.queued, prompt.operation, prompt.n = False, operation, thread.last
        self._writing.tell(PromptSent(thread=thread.id, message=message, operation=operation, n=prompt.n))
        prompt.changed()
        return prompt

    def dropped(self, message: str, by: str) -> None:
        """A queued prompt is taken back. Raises `LookupError` as `sent` does."""
        thread, prompt = self._queued(message)
        thread.drop(prompt)
        self._writing.tell(PromptDropped(thread=thread.id, message=message, by=by))

    def put_state(self, thread: str, name: str, data: Json) -> None:
        """What an agent says of the conversation as a whole; the newest of each name holds."""
        kept = self._thread(thread)
        kept.put_state(name, clean_json(data))
        self._writing.flows(kept)

    def bind(self, thread: str, agent: str, session: str, how: Handover, upto: int) -> None:
        """An agent keeps the conversation under this id, and knows it up to the message at this place."""
        self._thread(thread)
        self._writing.tell(SessionBound(thread=thread, agent=agent, session=session, how=how, upto=upto))

    async def sessions(self, thread: str) -> dict[str, SessionRecord]:
        """By agent."""
        await self.written()
        return await self._records.sessions(thread)

    async def snapshot(self, thread: str, limit: int = NEWEST) -> Snapshot:
        """The newest messages, what is being said included, and the revision to follow from."""
        return await self._reading.snapshot(self._thread(thread), limit)

    async def page(self, thread: str, before: int, limit: int = NEWEST) -> Page:
        """The newest messages before the one at this place."""
        return await self._reading.page(self._thread(thread), before, limit)

    async def messages(self, thread: str) -> list[MessageRecord]:
        """All that was ever said."""
        return await self._reading.messages(self._thread(thread))

    async def transcript(self, thread: str, after_n: int = 0) -> list[MessageRecord]:
        """What was said behind a place, without what is queued."""
        messages = await self._reading.messages(self._thread(thread), after_n)
        return [message for message in messages if not message.queued]

    async def follow(self, thread: str, after_rev: int, send: Callable[[Flow], Awaitable[None]]) -> None:
        """Send what is newer than `after_rev`, put together, at the pace of `send`; until the conversation is deleted."""
        kept = self._thread(thread)
        await Follower(kept, after_rev, lambda: self._reading.snapshot(kept, NEWEST)).run(send)

    async def written(self) -> None:
        """Return when all that was said and told by now is on disk. Raises `Unwritable`."""
        await self._journal.written()

    async def restore(self) -> None:
        """Load what is known, and end what a crash left open. Queued prompts stay queued."""
        for thread, last in (await self._records.places()).items():
            self._threads[thread] = Thread(thread, last)
        for found in await self._records.open_messages():
            message = Message.restored(self._touched, self._ended, found)
            self._thread(found.thread).messages[message.id] = message
            if not message.queued:
                message.end("interrupted")
        for operation in await self._records.open_operations():
            self._writing.tell(OperationEnded(operation=operation.id, cancelled_by=None, stop="interrupted"))
        await self.written()

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
        if thread is None:  # deleted while somebody still spoke
            return message.rev + 1
        self._writing.flows(thread)
        return thread.touch(message)

    def _ended(self, message: Message) -> None:
        if message.thread in self._threads:
            assert message.stop is not None
            self._writing.tell(
                MessageEnded(
                    thread=message.thread, message=message.id, stop=message.stop, said_at=message.said_at
                )
            )
