"""A thread in memory: open messages, data not yet on disk, recent messages for followers; and its followers.

Owns the revision, which grows with every change, and the bell that wakes followers. Ended messages leave memory once
they are on disk; every change after revision `floor` is still in memory. A follower holds a revision as its cursor and
gets newer changes combined. Does not know SQL.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from anyio import Event as Bell
from pydantic import with_config

from handrail.lazy_dataclass import dataclass
from handrail.store.threads.message import Message, Part
from handrail.store.threads.thread_records import MessageRecord, Snapshot
from handrail.store.values import SERVED, Json, PartKind, Position

KEPT = 8
"""Ended messages kept in memory while there are followers, so that a slow one does not need a new snapshot."""


@dataclass(slots=True)
class State:
    """A named value of the thread as a whole: modes, commands, usage."""

    data: Json
    rev: int
    given: bool = False
    """It is queued for the disk."""
    safe: bool = False
    """It is on disk."""


class Thread:
    """A thread in memory."""

    def __init__(self, id: str, last: int = 0) -> None:
        self.id = id
        self.last = last
        """The position of its newest message."""
        # Starts at the time of loading, so that it never equals a revision of an earlier daemon, which may have sent
        # data that a crash then lost. Fits a JavaScript number for two centuries.
        self.rev = time.time_ns() // 1_000
        self.floor = self.rev
        self.left = 0
        """Counts removals from memory: a reader that saw it change during a disk read must read again."""
        self.messages: dict[str, Message] = {}
        self.state: dict[str, State] = {}
        self.dropped: dict[str, int] = {}
        """Dropped prompts, with the revision of the drop."""
        self.dirty: dict[str, Message] = {}
        self.bell = Bell()
        self.followers = 0
        self.deleted = False

    def touch(self, message: Message | None = None) -> int:
        """Record a change; return its revision."""
        self.rev += 1
        if message is not None and not self.deleted:
            self.messages[message.id] = message
            self.dirty[message.id] = message
        self.ring()
        return self.rev

    def ring(self) -> None:
        if self.followers:
            self.bell.set()
            self.bell = Bell()

    def put_state(self, name: str, data: Json) -> None:
        self.state[name] = State(data, self.touch())

    def drop(self, message: Message) -> None:
        """Remove a queued prompt."""
        self.messages.pop(message.id, None)
        self.dirty.pop(message.id, None)
        self.dropped[message.id] = self.touch()

    def delete(self) -> None:
        self.deleted = True
        self.dirty.clear()
        self.messages.clear()
        self.state.clear()
        self.ring()

    def settle(self) -> None:
        """Remove ended messages from memory that are on disk."""
        over = [message for message in self.messages.values() if _is_over(message)]
        for message in sorted(over, key=lambda one: one.rev)[: -KEPT if self.followers else None]:
            self.floor = max(self.floor, message.rev)
            self.left += 1
            del self.messages[message.id]
        if not self.followers:
            self._settle_state()

    def _settle_state(self) -> None:
        for name in [name for name, state in self.state.items() if state.safe]:
            self.floor = max(self.floor, self.state.pop(name).rev)
            self.left += 1


def _is_over(message: Message) -> bool:
    return message.stop is not None and not message.queued and message.safe_rev == message.rev


@with_config(SERVED)
@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """A new, extended or changed part."""

    message: str
    n: int
    kind: PartKind
    at: Position
    """0: `text` is the whole text. Otherwise `text` continues the text sent before, which has this many characters."""
    text: str
    data: Json | None
    """None if unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadChanges:
    """The changes of a thread since a revision."""

    rev: int
    messages: tuple[MessageRecord, ...]
    """Messages that were opened, ended or moved; without parts."""
    growths: tuple[Growth, ...]
    state: dict[str, Json]
    dropped: tuple[str, ...] = ()
    """Ids of removed messages."""
    reset: bool = False
    """These are the newest messages in full: discard everything sent before."""


class Follower:
    """One follower of a thread."""

    def __init__(self, thread: Thread, after: int, snapshot: Callable[[], Awaitable[Snapshot]]) -> None:
        self._thread = thread
        self._rev = after
        self._snapshot = snapshot
        self._have: dict[tuple[str, int], tuple[int, int]] = {}
        """For each part sent: its `text_rev`, and the number of characters sent."""

    async def run(self, send: Callable[[ThreadChanges], Awaitable[None]]) -> None:
        """Send changes at the pace of `send`, until the thread is deleted."""
        self._thread.followers += 1
        try:
            while not self._thread.deleted:
                bell = self._thread.bell  # taken before reading: a change during the read sets this one
                flow = await self._next()
                if flow is None:
                    await bell.wait()
                else:
                    self._rev = flow.rev
                    await send(flow)
        finally:
            self._thread.followers -= 1
            self._thread.settle()

    async def _next(self) -> ThreadChanges | None:
        if not self._thread.floor <= self._rev <= self._thread.rev:
            return self._anew(await self._snapshot())
        return self._newer() if self._rev < self._thread.rev else None

    def _anew(self, whole: Snapshot) -> ThreadChanges:
        self._have.clear()
        return ThreadChanges(
            rev=whole.rev,
            messages=tuple(replace(message, parts=()) for message in whole.messages),
            growths=tuple(
                Growth(message=message.id, n=part.n, kind=part.kind, at=0, text=part.text, data=part.data)
                for message in whole.messages
                for part in message.parts
            ),
            state=whole.state,
            reset=True,
        )

    def _newer(self) -> ThreadChanges:
        thread, rev = self._thread, self._rev
        newer = [message for message in thread.messages.values() if message.rev > rev]
        flow = ThreadChanges(
            rev=thread.rev,
            messages=tuple(message.head() for message in newer if message.head_rev > rev),
            growths=tuple(
                self._growth(message, part) for message in newer for part in message.parts if part.rev > rev
            ),
            state={name: state.data for name, state in thread.state.items() if state.rev > rev},
            dropped=tuple(message for message, since in thread.dropped.items() if since > rev),
        )
        self._forget()
        return flow

    def _growth(self, message: Message, part: Part) -> Growth:
        since, length = self._have.get((message.id, part.n), (-1, 0))
        at = length if since == part.text_rev else 0
        self._have[message.id, part.n] = (part.text_rev, part.length)
        return Growth(
            message=message.id,
            n=part.n,
            kind=part.kind,
            at=at,
            text=part.text[at:],
            data=part.data if part.data_rev > self._rev else None,
        )

    def _forget(self) -> None:
        """Drop the entries of messages that left memory, once there are many."""
        if len(self._have) > _HAVE_MAX:
            self._have = {key: sent for key, sent in self._have.items() if key[0] in self._thread.messages}


_HAVE_MAX = 1000
"""Bounds the memory for parts that no longer change."""
