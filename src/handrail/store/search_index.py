"""Full-text search over messages, titles, terminals, and the inputs and outputs of calls.

The index follows the journal at its own pace, in its own file (`_search_file`), and never blocks a call. Hits are
checked against the records, so deleted content is not shown even before the index has removed it.
"""

import json
import logging
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, NamedTuple, Never, cast

import anyio
import anyio.to_thread
from pydantic import with_config

from handrail.lazy_dataclass import dataclass
from handrail.store._search_file import BEGIN, END, Narrow, Place, SearchFile, Text, TextKind
from handrail.store.call_filter import add_field
from handrail.store.calls import CallOpened, CallPlace, CallSettled
from handrail.store.events import Entry
from handrail.store.journal import Journal
from handrail.store.journal_compaction import JournalCompacted
from handrail.store.query import Where
from handrail.store.records import Records
from handrail.store.search_query import PLACES, SearchQuery, Term, parse_query
from handrail.store.terminals import TerminalOpened
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
FIELDS_MAX = 2000
"""Texts that are looked at when a search has fields too: bounds its cost."""
AGAIN, AGAIN_MAX = 0.5, 30.0
"""Seconds before a retry after an error: the first delay, doubled each time, and its maximum."""


@with_config(SERVED)
@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """One search result."""

    kind: TextKind
    thread: str | None
    title: str
    """The title of the call or of the thread, or the name of the terminal."""
    message: str | None
    n: int | None
    """The message's position in its thread."""
    call: str | None
    terminal: str | None
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


class CallsWithWord(NamedTuple):
    """Calls that have a word in a text. If only the newest texts were looked at, those opened after a time."""

    calls: Sequence[str]
    after: int | None = None


NO_CALLS = CallsWithWord(())


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
        self._counting = anyio.CapacityLimiter(1)
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
        """Find texts that match a query of the search language, in one workspace or in all. Raises BadQuery.

        The last word may be a prefix. A query without words finds calls by their fields.
        """
        query = parse_query(q)
        narrowed = [term for term in query.fields if term.key not in ("since", "before")]
        if not query.words:
            return await self._by_fields(query, workspace, limit) if narrowed else Hits(hits=(), more=False)
        most = FIELDS_MAX if narrowed else 2 * limit + 1
        places = await anyio.to_thread.run_sync(
            self._file.find, _plain_words(query), workspace, most, _narrow(query), limiter=self._reading
        )
        firsts: dict[tuple[str | None, ...], Place] = {}
        for place in places:  # a long text has several rows
            firsts.setdefault((place.kind, place.thread, place.message, place.call, place.terminal), place)
        kept = await self._with_fields([*firsts.values()], narrowed) if narrowed else [*firsts.values()]
        found = await self._shown(kept)
        return Hits(hits=tuple(found[:limit]), more=len(found) > limit or len(places) >= most)

    async def calls_with(
        self, term: Term, places: frozenset[str], most: int | None = None
    ) -> "CallsWithWord":
        """Return the calls that have this word or phrase in their input or output; with `most`, of that many texts."""
        kinds = sorted(places & {"input", "output"})
        if not kinds:
            return NO_CALLS
        texts = await anyio.to_thread.run_sync(
            self._file.calls_with,
            term.text,
            term.quoted,
            kinds,
            most,
            limiter=self._counting if most is None else self._reading,
        )
        after = texts[-1][1] if most is not None and len(texts) == most else None
        return CallsWithWord([call for call, _ in texts], after)

    async def _by_fields(self, query: SearchQuery, workspace: str | None, limit: int) -> Hits:
        where = Where()
        for term in query.fields:
            add_field(where, term)
        where.add("calls.workspace = ?", workspace)
        calls = await self._records.calls.slice(where, "calls.opened_seq DESC", 0, limit + 1)
        hits = [
            SearchHit(
                kind="input",
                thread=call.caller.thread,
                title=call.title,
                message=None,
                n=None,
                call=call.id,
                terminal=None,
                role=None,
                at=call.opened_at,
                snippet=call.title,
                marks=(),
            )
            for call in calls[:limit]
        ]
        return Hits(hits=tuple(hits), more=len(calls) > limit)

    async def _with_fields(self, places: list[Place], fields: Sequence[Term]) -> list[Place]:
        """Keep the calls to which the fields apply; and texts of threads, if the fields are about threads."""
        where = Where()
        where.given(
            "calls.id IN (SELECT value FROM json_each(?))",
            [json.dumps([place.call for place in places if place.call])],
        )
        for term in fields:
            add_field(where, term)
        calls = {
            call.id for call in await self._records.calls.slice(where, "calls.opened_seq", 0, FIELDS_MAX)
        }
        threads = await self._threads_with(places, fields)
        return [
            place
            for place in places
            if (place.call or "") in calls or (not place.call and place.thread in threads)
        ]

    async def _threads_with(self, places: list[Place], fields: Sequence[Term]) -> set[str]:
        if any(term.key not in ("thread", "folder") for term in fields):
            return set()
        ids = {place.thread for place in places if place.thread and not place.call}
        titles, folders = await self._records.threads.titles(ids), await self._records.threads.workspaces(ids)

        def fits(id: str, term: Term) -> bool:
            texts = (folders.get(id) or "",) if term.key == "folder" else (id, titles[id])
            return term.negated != any(
                value.lower() in text.lower() for value in term.values for text in texts
            )

        return {thread for thread in titles if all(fits(thread, term) for term in fields)}

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
                title=_title_of(place, calls, titles),
                message=place.message,
                n=standing[place.message].n if place.message else None,
                call=place.call,
                terminal=place.terminal,
                role=standing[place.message].role if place.message else None,
                at=place.at,
                snippet=place.excerpt.replace(BEGIN, "").replace(END, ""),
                marks=tuple(_marks(place.excerpt)),
            )
            for place in places
            if place.terminal or (place.call in calls if place.call else place.thread in titles)
            if place.message is None or place.message in standing
        ]


def _plain_words(query: SearchQuery) -> str:
    return " ".join(term.text for term in query.words if not term.negated and not term.quoted)


def _narrow(query: SearchQuery) -> Narrow:
    times = {term.key: int(term.text) for term in query.fields if term.key in ("since", "before")}
    return Narrow(
        phrases=tuple(term.text for term in query.words if term.quoted and not term.negated),
        excluded=tuple(term.text for term in query.words if term.negated),
        kinds=tuple(sorted(query.places)) if query.places != frozenset(PLACES) else (),
        **times,
    )


def _title_of(place: Place, calls: dict[str, str], titles: dict[str, str]) -> str:
    if place.terminal:
        return place.excerpt.replace(BEGIN, "").replace(END, "").partition("\n")[0]
    return calls[place.call] if place.call else titles[place.thread or ""]


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
        case CallSettled(call=call, message=message, result=result) if call in known.calls:
            text = "\n".join(filter(None, (message, result.text if result else "")))
            return _of_call("output", entry, call, known.calls[call], text) if text else None
        case TerminalOpened(terminal=id, call=None, name=name, cwd=cwd, argv=argv, owner=owner):
            return Text(
                kind="terminal",
                text=_words((name, " ".join(argv), cwd)),
                at=entry.at,
                workspace=owner.workspace if owner else None,
                terminal=id,
            )
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
