"""A message while it is in memory: parts that are added, grow and are replaced, without ever waiting for anything.

Owns what is in a message and at which revision of the thread each piece of it changed. It does not know disks
(statements.py), nor who follows (follow.py): it tells its thread that it was touched.

Text that can be kept and sent: half of a character, which JSON can hold and UTF-8 cannot, is replaced.
"""

import time
from collections.abc import Callable

from pydantic import JsonValue

from handrail.store.threads.thread_records import MessagePart, MessageRecord
from handrail.store.values import Json, PartKind, Role, Stop


class Part:
    """A piece of a message. What it is given must not be changed afterwards."""

    def __init__(self, message: "Message", n: int, kind: PartKind) -> None:
        self.n = n
        self.kind: PartKind = kind
        self.data: Json = {}
        self.length = 0
        """Of its text, in characters."""
        self.rev = 0
        """When it changed last."""
        self.data_rev = 0
        """When its data changed last."""
        self.text_rev = 0
        """Since when its text has only grown."""
        self.safe: int | None = None
        """How much of its text was given to the disk; None when it has to be written whole."""
        self.grown = False
        """What was given to the disk is in pieces."""
        self._message = message
        self._chunks: list[str] = []
        self._half = ""

    @property
    def text(self) -> str:
        if len(self._chunks) > 1:
            self._chunks = ["".join(self._chunks)]
        return self._chunks[0] if self._chunks else ""

    def grow(self, text: str) -> None:
        """Add to its text."""
        if text := self._whole(text):
            self._chunks.append(text)
            self.length += len(text)
            self.rev = self._message.touch()

    def put(self, data: Json, text: str | None = None) -> None:
        """Replace its data, and its text where one is given."""
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
        """What can be shown of it now: a character comes whole, even when its halves come apart."""
        text, self._half = self._half + text, ""
        if ends_in_half(text):
            text, self._half = text[:-1], text[-1]
        return clean(text)


class Message:
    """Something that is being said, or was lately."""

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
        """When anything of it changed last."""
        self.head_rev = 0
        """When something but its parts changed last."""
        self.safe_rev = 0
        """What is on disk."""
        self._touched = touched
        self._ended = ended

    @classmethod
    def restored(
        cls, touched: Callable[["Message"], int], ended: Callable[["Message"], None], found: MessageRecord
    ) -> "Message":
        """As it was written down."""
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
        """A new part, after all the others."""
        part = Part(self, self.parts[-1].n + 1 if self.parts else 0, kind)
        self.parts.append(part)
        part.put(data or {}, text)
        return part

    def end(self, stop: Stop, said_at: int | None = None) -> None:
        """Nothing more is to come; the first end holds. What comes all the same is kept as well.

        `said_at` is when it ended, where it is told again.
        """
        if self.stop is None:
            self.stop = stop
            self.said_at = said_at
            self.ended_at = now() if said_at is None else said_at
            self._ended(self)
            self.changed()

    def touch(self) -> int:
        """A part of it changes: the revision it has from now on."""
        self.rev = self._touched(self)
        return self.rev

    def changed(self) -> None:
        """Something but its parts changes."""
        self.head_rev = self.touch()

    def lost(self) -> None:
        """What was given to the disk is not there: it has to be given again, whole."""
        for part in self.parts:
            part.safe = None

    def head(self) -> MessageRecord:
        """All but its parts."""
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
    """The text; halves of one character that stand side by side are joined, a lone half becomes U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def ends_in_half(text: str) -> bool:
    """The other half of its last character may come with the next text."""
    return "\ud800" <= text[-1:] <= "\udbff"


def clean_json(data: Json) -> Json:
    """The same, of every text in it."""
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
