"""From facts to texts: what of an event is to be found by its words.

Owns which words those are. It does not know the index; what was said it reads where that is kept.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from handrail.store.calls import CallOpened, CallSettled
from handrail.store.events import Entry
from handrail.store.records import Records
from handrail.store.search_file import Text
from handrail.store.threads.queries import Place
from handrail.store.threads.thread_records import (
    MessageEnded,
    MessagePart,
    MessageRecord,
    ThreadOpened,
    ThreadRenamed,
)


async def texts_of(entries: Sequence[Entry], records: Records) -> list[Text]:
    """In the order of the facts. Of what is deleted by now there is nothing."""
    known = await _look_up(entries, records)
    return [text for entry in entries if (text := _text_of(entry, known)) is not None]


@dataclass(frozen=True, slots=True)
class _Known:
    """What the events refer to."""

    said: dict[str, MessageRecord]
    threads: dict[str, str | None]
    calls: dict[str, Place]


async def _look_up(entries: Sequence[Entry], records: Records) -> _Known:
    events = [entry.event for entry in entries]
    said = await records.said([event.message for event in events if isinstance(event, MessageEnded)])
    titled = {event.thread for event in events if isinstance(event, ThreadOpened | ThreadRenamed)}
    return _Known(
        said,
        await records.workspaces_of({message.thread for message in said.values()} | titled),
        await records.places_of([event.call for event in events if isinstance(event, CallSettled)]),
    )


def _text_of(entry: Entry, known: _Known) -> Text | None:
    match entry.event:
        case CallOpened(call=call, caller=who):
            place = Place(who.workspace, who.thread)
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


def _of_call(kind: Literal["input", "output"], entry: Entry, call: str, place: Place, text: str) -> Text:
    return Text(kind=kind, text=text, at=entry.at, workspace=place.workspace, thread=place.thread, call=call)


def _of_part(part: MessagePart) -> str:
    """What a person reads of it. Calls of ours are found by themselves."""
    if part.kind == "call":
        return _words([part.text, *(part.data.get(name) for name in ("title", "content", "output"))])
    if part.kind == "plan":
        return _words(part.data)
    return part.text


def _words(value: object) -> str:
    return "\n".join(_strings(value))


def _strings(value: object) -> Iterator[str]:
    """Every text in it, without the names of fields."""
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
