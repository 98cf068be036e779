"""Full-text search over messages, titles, and the inputs and outputs of calls.

The index follows the journal at its own pace, in its own file (`_search_file`), and never blocks a call. Hits are
checked against the records, so deleted content is not shown even before the index has removed it.
"""

import logging
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Never, cast

import anyio
import anyio.to_thread
from pydantic import with_config

from handrail.store._search_file import BEGIN, END, Place, SearchFile, Text, TextKind
from handrail.store.calls import CallOpened, CallPlace, CallSettled
from handrail.store.events import Entry
from handrail.store.journal import Journal
from handrail.store.journal_compaction import JournalCompacted
from handrail.store.records import Records
from handrail.store.threads.thread_records import (
    MessageEnded,
    MessagePart,
    MessageRecord,
    ThreadDeleted,
    ThreadOpened,
    ThreadRenamed,
)
from handrail.store.values import SERVED, Role

log = logging.getLogger(__name__)

APART = 0.2
"""Seconds between two batches: bounds how late a new text is found."""
AGAIN, AGAIN_MAX = 0.5, 30.0
"""Seconds before a retry after an error: the first delay, doubled each time, and its maximum."""


@with_config(SERVED)
@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """One search result."""

    kind: TextKind
    thread: str | None
    title: str
    """The title of the call, or of the thread."""
    message: str | None
    n: int | None
    """The message's position in its thread."""
    call: str | None
    role: Role | None
    at: int
    snippet: str
    marks: tuple[tuple[int, int], ...]
    """Begin and end of each matching word in the snippet, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """Search results, best first."""

    hits: tuple[SearchHit, ...]
    more: bool


@asynccontextmanager
async def open_index(path: Path, journal: Journal, records: Records) -> AsyncGenerator["SearchIndex"]:
    """Open the index in the file at `path`; a missing or unusable file is recreated."""
    file = await anyio.to_thread.run_sync(SearchFile, path)
    try:
        yield SearchIndex(file, journal, records)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(file.close)


class SearchIndex:
    """The search index."""

    def __init__(self, file: SearchFile, journal: Journal, records: Records) -> None:
        self._file = file
        self._journal = journal
        self._records = records
        self._reading = anyio.CapacityLimiter(1)
        self._upto = 0
        self._again = AGAIN
        self._compacted_before = 0
        """The time before which calls were compacted, if their texts may still be in the index."""
        self._moved = anyio.Event()

    async def run(self) -> Never:
        """Index the journal's events until cancelled. Errors are logged and retried."""
        while True:
            try:
                await self._journal.follow(await self._start(), self._take)
            except Exception:  # a failing index must not stop the daemon
                log.exception("indexing for search failed; it will be retried")
                await anyio.sleep(self._again)
                self._again = min(AGAIN_MAX, 2 * self._again)

    async def wait_indexed(self, seq: int) -> None:
        """Return when everything up to event `seq` is indexed."""
        while self._upto < seq:
            await self._moved.wait()

    async def search(self, q: str, workspace: str | None = None, limit: int = 50) -> Hits:
        """Find texts with all words of `q`, the last of which may be a prefix; in one workspace or in all."""
        places = await anyio.to_thread.run_sync(
            self._file.find, q, workspace, 2 * limit + 1, limiter=self._reading
        )
        firsts: dict[tuple[str | None, ...], Place] = {}
        for place in places:  # a long text has several rows
            firsts.setdefault((place.kind, place.thread, place.message, place.call), place)
        found = await self._shown([*firsts.values()])
        return Hits(hits=tuple(found[:limit]), more=len(found) > limit or len(places) > 2 * limit)

    async def _start(self) -> int:
        """Return the event to continue after; 0, with a cleared index, when the index is ahead of the journal."""
        upto = await anyio.to_thread.run_sync(self._file.upto)
        if upto > self._journal.durable:
            await anyio.to_thread.run_sync(self._file.clear)
            upto = 0
        self._reach(upto)
        return upto

    async def _take(self, entries: Sequence[Entry]) -> None:
        texts = await texts_of(entries, self._records)
        deleted = [entry.event.thread for entry in entries if isinstance(entry.event, ThreadDeleted)]
        if deleted:
            await anyio.to_thread.run_sync(self._file.erase, deleted, abandon_on_cancel=True)
        await anyio.to_thread.run_sync(self._file.fill, texts, entries[-1].seq, abandon_on_cancel=True)
        await self._forget_compacted(entries)
        self._reach(entries[-1].seq)
        self._again = AGAIN
        await anyio.sleep(APART)

    async def _forget_compacted(self, entries: Sequence[Entry]) -> None:
        """Remove the texts of compacted calls, once the last of a series of compactions was indexed."""
        befores = [entry.event.before for entry in entries if isinstance(entry.event, JournalCompacted)]
        if befores:
            self._compacted_before = befores[-1]
        elif self._compacted_before:
            await self._remove_compacted(self._compacted_before)
            self._compacted_before = 0

    async def _remove_compacted(self, before: int) -> None:
        last = 0
        while rows := await anyio.to_thread.run_sync(self._file.calls_before, before, last):
            known = await self._records.calls.titles({call for _, call in rows})
            gone = [text for text, call in rows if call not in known]
            await anyio.to_thread.run_sync(self._file.remove, gone, abandon_on_cancel=True)
            last = rows[-1][0]

    def _reach(self, seq: int) -> None:
        self._upto = seq
        self._moved.set()
        self._moved = anyio.Event()

    async def _shown(self, places: Sequence[Place]) -> list[SearchHit]:
        """Make hits with current titles and positions; drop deleted ones."""
        standing = await self._records.threads.message_positions(
            place.message for place in places if place.message
        )
        titles = await self._records.threads.titles(place.thread for place in places if place.thread)
        calls = await self._records.calls.titles(place.call for place in places if place.call)
        return [
            SearchHit(
                kind=place.kind,
                thread=place.thread if place.thread in titles else None,
                title=calls[place.call] if place.call else titles[place.thread or ""],
                message=place.message,
                n=standing[place.message].n if place.message else None,
                call=place.call,
                role=standing[place.message].role if place.message else None,
                at=place.at,
                snippet=place.excerpt.replace(BEGIN, "").replace(END, ""),
                marks=tuple(_marks(place.excerpt)),
            )
            for place in places
            if (place.call in calls if place.call else place.thread in titles)
            if place.message is None or place.message in standing
        ]


def _marks(excerpt: str) -> Iterator[tuple[int, int]]:
    """Return the ranges of the marked words in the excerpt without marks."""
    at, begin = 0, 0
    for run in re.split(f"([{BEGIN}{END}])", excerpt):
        if run == BEGIN:
            begin = at
        elif run == END:
            yield begin, at
        else:
            at += len(run)


async def texts_of(entries: Sequence[Entry], records: Records) -> list[Text]:
    """Return the texts to index, in event order, without those deleted since."""
    known = await _look_up(entries, records)
    return [text for entry in entries if (text := _text_of(entry, known)) is not None]


@dataclass(frozen=True, slots=True)
class _Known:
    """Records that a batch of events refers to, by id."""

    said: dict[str, MessageRecord]
    threads: dict[str, str | None]
    calls: dict[str, CallPlace]


async def _look_up(entries: Sequence[Entry], records: Records) -> _Known:
    events = [entry.event for entry in entries]
    said = await records.threads.messages_by_id(
        [event.message for event in events if isinstance(event, MessageEnded)]
    )
    titled = {event.thread for event in events if isinstance(event, ThreadOpened | ThreadRenamed)}
    return _Known(
        said,
        await records.threads.workspaces({message.thread for message in said.values()} | titled),
        await records.calls.places([event.call for event in events if isinstance(event, CallSettled)]),
    )


def _text_of(entry: Entry, known: _Known) -> Text | None:
    match entry.event:
        case CallOpened(call=call, caller=who):
            place = CallPlace(who.workspace, who.thread)
            return _of_call("input", entry, call, place, _words((entry.event.title, entry.event.input)))
        case CallSettled(call=call, result=result) if result is not None and call in known.calls:
            return _of_call("output", entry, call, known.calls[call], result.text)
        case MessageEnded(message=message) if message in known.said:
            said = known.said[message]
            return Text(
                kind="message",
                text="\n\n".join(filter(None, map(_of_part, said.parts))),
                at=said.opened_at,
                workspace=known.threads.get(said.thread),
                thread=said.thread,
                message=message,
            )
        case ThreadOpened(thread=id, title=title) | ThreadRenamed(thread=id, title=title) if (
            id in known.threads
        ):
            return Text(kind="title", text=title, at=entry.at, workspace=known.threads[id], thread=id)
        case _:
            return None


def _of_call(kind: Literal["input", "output"], entry: Entry, call: str, place: CallPlace, text: str) -> Text:
    return Text(kind=kind, text=text, at=entry.at, workspace=place.workspace, thread=place.thread, call=call)


def _of_part(part: MessagePart) -> str:
    """Return the readable text of a part. Handrail's own calls are indexed from their events."""
    if part.kind == "call":
        return _words([part.text, *(part.data.get(name) for name in ("title", "content", "output"))])
    if part.kind == "plan":
        return _words(part.data)
    return part.text


def _words(value: object) -> str:
    return "\n".join(_strings(value))


def _strings(value: object) -> Iterator[str]:
    """Return every string in a JSON value, without the keys."""
    match value:
        case str():
            if value:
                yield value
        case dict():
            for one in cast("dict[str, object]", value).values():
                yield from _strings(one)
        case list() | tuple():
            for one in cast("Sequence[object]", value):
                yield from _strings(one)
        case _:
            return
