"""A message in memory: parts are added, extended and replaced without waiting for the disk.

Owns the parts, and the thread's revision at which each of them changed. It reports changes to its thread:
`_persistence` writes them, `live_thread` sends them to followers. Text is cleaned first: a lone surrogate, valid in
JSON but not in UTF-8, is replaced.
"""

import time
from collections.abc import Callable

from pydantic import JsonValue

from handrail.store.threads.thread_records import MessagePart, MessageRecord
from handrail.store.values import Json, PartKind, Role, Stop


class Part:
    """A part of a message. Do not modify data after passing it in."""

    def __init__(self, message: "Message", n: int, kind: PartKind) -> None:
        self.n = n
        self.kind: PartKind = kind
        self.data: Json = {}
        self.length = 0
        """Length of the text in characters."""
        self.rev = 0
        """Revision of the last change."""
        self.data_rev = 0
        """Revision of the last change of the data."""
        self.text_rev = 0
        """Revision of the last replacement of the text; since then it was only extended."""
        self.safe: int | None = None
        """How many characters were queued for the disk; None when the part must be written as a whole."""
        self.grown = False
        """The stored text has extensions in the table `growths`."""
        self._message = message
        self._chunks: list[str] = []
        self._half = ""

    @property
    def text(self) -> str:
        if len(self._chunks) > 1:
            self._chunks = ["".join(self._chunks)]
        return self._chunks[0] if self._chunks else ""

    def grow(self, text: str) -> None:
        """Append to the text."""
        if text := self._whole(text):
            self._chunks.append(text)
            self.length += len(text)
            self.rev = self._message.touch()

    def put(self, data: Json, text: str | None = None) -> None:
        """Replace the data, and the text unless None."""
        self.data = clean_json(data)
        self.safe = None
        self.rev = self.data_rev = self._message.touch()
        if text is not None:
            self._half = ""
            self._chunks = [clean(text)]
            self.length = len(self._chunks[0])
            self.text_rev = self.rev

    def record(self) -> MessagePart:
        return MessagePart(n=self.n, kind=self.kind, text=self.text, data=self.data)

    def _whole(self, text: str) -> str:
        """Return the complete characters; hold back a high surrogate until its low surrogate comes."""
        text, self._half = self._half + text, ""
        if ends_in_half(text):
            text, self._half = text[:-1], text[-1]
        return clean(text)


class Message:
    """A message that is open, or ended recently."""

    def __init__(
        self,
        touched: Callable[["Message"], int],
        ended: Callable[["Message"], None],
        *,
        id: str,
        thread: str,
        n: int,
        role: Role,
        agent: str,
        operation: str | None = None,
        queued: bool = False,
        opened_at: int | None = None,
    ) -> None:
        self.id = id
        self.thread = thread
        self.n = n
        self.role: Role = role
        self.agent = agent
        self.operation = operation
        self.queued = queued
        self.opened_at = now() if opened_at is None else opened_at
        self.ended_at: int | None = None
        self.stop: Stop | None = None
        self.said_at: int | None = None
        self.parts: list[Part] = []
        self.rev = 0
        """Revision of the last change of the message or its parts."""
        self.head_rev = 0
        """Revision of the last change outside the parts."""
        self.safe_rev = 0
        """The revision that is on disk."""
        self._touched = touched
        self._ended = ended

    @classmethod
    def restored(
        cls, touched: Callable[["Message"], int], ended: Callable[["Message"], None], found: MessageRecord
    ) -> "Message":
        """Rebuild a message from its record."""
        message = cls(
            touched,
            ended,
            id=found.id,
            thread=found.thread,
            n=found.n,
            role=found.role,
            agent=found.agent,
            operation=found.operation,
            queued=found.queued,
            opened_at=found.opened_at,
        )
        for part in found.parts:
            message.add(part.kind, part.text, part.data)
        message.ended_at, message.stop = found.ended_at, found.stop
        return message

    def add(self, kind: PartKind, text: str = "", data: Json | None = None) -> Part:
        """Append a new part."""
        part = Part(self, self.parts[-1].n + 1 if self.parts else 0, kind)
        self.parts.append(part)
        part.put(data or {}, text)
        return part

    def end(self, stop: Stop, said_at: int | None = None) -> None:
        """End the message; only the first call counts. Parts added later are still stored.

        `said_at` is the original end, for a copied or imported message.
        """
        if self.stop is None:
            self.stop = stop
            self.said_at = said_at
            self.ended_at = now() if said_at is None else said_at
            self.touch()  # the whole text is written before the event: readers of the event read that text
            self._ended(self)
            self.changed()

    def touch(self) -> int:
        """Record a change of a part; return its revision."""
        self.rev = self._touched(self)
        return self.rev

    def changed(self) -> None:
        """Record a change outside the parts."""
        self.head_rev = self.touch()

    def lost(self) -> None:
        """Mark all parts as unwritten after a failed commit; each is written as a whole."""
        for part in self.parts:
            part.safe = None

    def head(self) -> MessageRecord:
        """Return the record without parts."""
        return self._record(())

    def record(self) -> MessageRecord:
        return self._record(tuple(part.record() for part in self.parts))

    def _record(self, parts: tuple[MessagePart, ...]) -> MessageRecord:
        return MessageRecord(
            id=self.id,
            thread=self.thread,
            n=self.n,
            role=self.role,
            agent=self.agent,
            operation=self.operation,
            queued=self.queued,
            opened_at=self.opened_at,
            ended_at=self.ended_at,
            stop=self.stop,
            parts=parts,
        )


def now() -> int:
    return time.time_ns() // 1_000_000


def clean(text: str) -> str:
    """Join surrogate pairs, and replace lone surrogates by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def ends_in_half(text: str) -> bool:
    """Whether the text ends in a high surrogate; its pair may come with the next chunk."""
    return "\ud800" <= text[-1:] <= "\udbff"


def clean_json(data: Json) -> Json:
    """Apply `clean` to every string and key of a JSON object."""
    return {clean(name): _cleaned(one) for name, one in data.items()}


def _cleaned(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return clean(value)
        case dict():
            return clean_json(value)
        case list():
            return [_cleaned(one) for one in value]
        case _:
            return value
