"""Threads on a real database, and a follower that assembles their messages."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from tests.support.actors import ANN
from tests.support.sample_events import JournalFiles

from handrail.store.journal import Journal, open_journal
from handrail.store.records import Records, open_records
from handrail.store.threads.live_thread import ThreadChanges
from handrail.store.threads.thread_records import Snapshot
from handrail.store.threads.threads import Threads
from handrail.store.values import Json


@dataclass(frozen=True, slots=True)
class ThreadStore:
    """A journal, its records and threads."""

    journal: Journal
    records: Records
    threads: Threads

    def open(self, title: str = "A talk", workspace: str | None = "/w") -> str:
        return self.threads.open(workspace=workspace, title=title, agent="demo", by=ANN)

    def say(self, thread: str, text: str) -> str:
        """A person's message, whole."""
        message = self.threads.open_message(thread, "user")
        message.add("text", text)
        message.end("end_turn")
        return message.id


@asynccontextmanager
async def thread_store(kept: JournalFiles) -> AsyncGenerator[ThreadStore]:
    async with open_journal(kept.path, kept.head) as journal, open_records(kept.path) as records:
        threads = Threads(journal, records)
        await threads.restore()
        yield ThreadStore(journal, records, threads)


@dataclass
class ThreadReader:
    """A follower of a thread, as the page is."""

    rev: int = -1
    texts: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    data: dict[tuple[str, int], Json] = field(default_factory=dict[tuple[str, int], Json])
    stops: dict[str, str | None] = field(default_factory=dict[str, str | None])
    state: dict[str, Json] = field(default_factory=dict[str, Json])
    flows: list[ThreadChanges] = field(default_factory=list[ThreadChanges])
    _grown: anyio.Event = field(default_factory=anyio.Event)

    def load(self, snapshot: Snapshot) -> None:
        self.rev = snapshot.rev
        self.texts = {(one.id, part.n): part.text for one in snapshot.messages for part in one.parts}
        self.data = {(one.id, part.n): part.data for one in snapshot.messages for part in one.parts}
        self.stops = {one.id: one.stop for one in snapshot.messages}
        self.state = snapshot.state

    async def take(self, flow: ThreadChanges) -> None:
        if flow.reset:
            self.texts, self.data, self.stops, self.state = {}, {}, {}, {}
        for message in flow.messages:
            self.stops[message.id] = message.stop
        for growth in flow.growths:
            key = (growth.message, growth.n)
            assert growth.at in {0, len(self.texts.get(key, ""))}, "text goes on from where the reader has it"
            self.texts[key] = (self.texts[key] if growth.at else "") + growth.text
            if growth.data is not None:
                self.data[key] = growth.data
        for message in flow.dropped:
            self.stops.pop(message, None)
            for key in [key for key in self.texts if key[0] == message]:
                del self.texts[key], self.data[key]
        self.state = {**self.state, **flow.state}
        self.rev = flow.rev
        self.flows.append(flow)
        self._grown.set()
        self._grown = anyio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        with anyio.fail_after(10):
            while not condition():
                await self._grown.wait()

    def same_as(self, snapshot: Snapshot) -> bool:
        other = ThreadReader()
        other.load(snapshot)
        return (self.texts, self.data, self.stops, self.state) == (
            other.texts,
            other.data,
            other.stops,
            other.state,
        )


@asynccontextmanager
async def follow_thread(talk: ThreadStore, thread: str, reader: ThreadReader) -> AsyncGenerator[ThreadReader]:
    """Follow a thread while the block runs."""
    send: Callable[[ThreadChanges], Awaitable[None]] = reader.take
    async with anyio.create_task_group() as group:
        group.start_soon(talk.threads.follow, thread, reader.rev, send)
        yield reader
        group.cancel_scope.cancel()
