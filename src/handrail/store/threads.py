"""Conversations: begun, spoken in, read, followed, deleted.

Owns how they begin and end. What is said in them (thread/) is seen at once by whoever reads or follows, and is on disk
100 ms later at the latest. It does not know agents, nor what a part means.
"""

import secrets
from collections.abc import Awaitable, Callable, Iterable

import anyio

from handrail.store.actor import HANDRAIL, Actor
from handrail.store.event import OperationEnded, SessionBound, ThreadDeleted, ThreadOpened, ThreadRenamed
from handrail.store.journal import Journal
from handrail.store.query import Records
from handrail.store.thread.follow import Flow, Follower
from handrail.store.thread.reading import Reading
from handrail.store.thread.record import MessageRecord, Page, SessionRecord, Snapshot
from handrail.store.thread.speaking import Speaking
from handrail.store.thread.thread import Thread
from handrail.store.thread.writing import Writing
from handrail.store.value import Handover

NEWEST = 60
"""Messages in a snapshot, unless it is said otherwise: a few screens full."""
TOGETHER = 50
"""Messages that are copied at a time: so long others wait, and so many are in memory until they are on disk."""


class Threads(Speaking):
    """All conversations. Those of old are known once `restore` has returned."""

    def __init__(self, journal: Journal, records: Records) -> None:
        super().__init__(Writing(journal))
        self._journal = journal
        self._records = records
        self._reading = Reading(records)
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
        """Begin a conversation; its id."""
        thread = f"h{secrets.token_hex(5)}"
        self._threads[thread] = Thread(thread)
        self._writing.tell(
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
        """The conversation of a workspace that was updated last; a new one, "Default", where there is none."""
        async with self._default:
            await self.written()
            newest = await self._records.threads(workspace, limit=1)
            if newest:
                return newest[0].id
            return self.open(workspace=workspace, title="Default", agent=agent, by=by)

    def rename(self, thread: str, title: str, by: Actor) -> None:
        self._thread(thread)
        self._writing.tell(ThreadRenamed(thread=thread, title=title, by=str(by)))

    async def fork(self, thread: str, message: str, before: bool, title: str, by: Actor) -> str:
        """A conversation that goes on from a message of another: with it, or just `before` it; its id.

        Raises `LookupError` when the message is not one of the thread's.
        """
        await self.written()
        said = await self.transcript(thread)
        found = await self._records.thread(thread)
        places = [place for place, one in enumerate(said) if one.id == message]
        if not places or found is None:
            raise LookupError(f"There is no message {message} in thread {thread}.")
        shared = said[: places[0] + (0 if before else 1)]
        fork = self.open(
            workspace=found.workspace,
            title=title or found.title,
            agent=found.agent,
            by=by,
            forked_from=thread,
            forked_at=shared[-1].id if shared else None,
        )
        await self.retell(fork, shared)
        return fork

    async def retell(self, thread: str, messages: Iterable[MessageRecord]) -> None:
        """Say what was said elsewhere again, under ids of its own and with its times; returns when it is on disk."""
        for place, said in enumerate(messages, 1):
            message = self.open_message(thread, said.role, agent=said.agent, said_at=said.opened_at)
            for part in said.parts:
                message.add(part.kind, part.text, part.data)
            message.end(said.stop or "interrupted", said.ended_at)
            if place % TOGETHER == 0:
                await self.written()
        await self.written()

    async def delete(self, thread: str, by: Actor) -> None:
        """Nothing that was said remains in the database when this returns; whoever followed it is let go."""
        self._thread(thread).delete()
        del self._threads[thread]
        self._writing.tell(ThreadDeleted(thread=thread, by=str(by)))
        await self.written()

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
        """All that was ever said, and is queued."""
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
            message = self._restored(found)
            if not message.queued:
                message.end("interrupted")
        for operation in await self._records.open_operations():
            self._writing.tell(OperationEnded(operation=operation.id, cancelled_by=None, stop="interrupted"))
        await self.written()
