"""One conversation, as far as it is in memory: what is open, what is not yet on disk, and what its followers may need.

Owns its revision, which grows with every change, and the bell that followers sleep on. What is on disk and over leaves
the memory; `floor` says from which revision on everything is still here. It does not know statements (statements.py).

Following a conversation: whoever follows holds a cursor, and is sent what is newer, put together.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from anyio import Event as Bell
from pydantic import with_config

from handrail.store.threads.message import Message, Part
from handrail.store.threads.thread_records import MessageRecord, Snapshot
from handrail.store.values import SERVED, Json, PartKind, Position

KEPT = 8
"""Ended messages that stay in memory while somebody follows, so that a slow reader need not begin anew."""


@dataclass(slots=True)
class State:
    """Something that was said of the conversation as a whole."""

    data: Json
    rev: int
    given: bool = False
    """It was given to the disk."""
    safe: bool = False
    """It is there."""


class Thread:
    """A conversation in memory."""

    def __init__(self, id: str, last: int = 0) -> None:
        self.id = id
        self.last = last
        """The place of its newest message."""
        # Counted on from the time of its loading: a revision of an earlier daemon, which may have told what a crash then
        # took, is never one of ours. Small enough for a JavaScript number for two centuries.
        self.rev = time.time_ns() // 1_000
        self.floor = self.rev
        self.left = 0
        """How often something left the memory: whoever reads the disk meanwhile has to read again."""
        self.messages: dict[str, Message] = {}
        self.state: dict[str, State] = {}
        self.dropped: dict[str, int] = {}
        """Prompts that were taken back, and since when."""
        self.dirty: dict[str, Message] = {}
        self.bell = Bell()
        self.followers = 0
        self.deleted = False

    def touch(self, message: Message | None = None) -> int:
        """Something changes: the revision it has from now on."""
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
        """It is taken back, and was never said."""
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
        """Let go of what is over and on disk."""
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
    """A part that is new, has grown, or has changed."""

    message: str
    n: int
    kind: PartKind
    at: Position
    """0: `text` is all of it. Else it goes behind all that was sent before, which is so many characters long."""
    text: str
    data: Json | None
    """None where it has not changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What is new in a conversation."""

    rev: int
    messages: tuple[MessageRecord, ...]
    """Those that began, ended, or moved; without their parts."""
    growths: tuple[Growth, ...]
    state: dict[str, Json]
    dropped: tuple[str, ...] = ()
    """Messages that are no more."""
    reset: bool = False
    """These are the newest messages whole: what was sent before is void."""


class Follower:
    """One who follows a conversation."""

    def __init__(self, thread: Thread, after: int, snapshot: Callable[[], Awaitable[Snapshot]]) -> None:
        self._thread = thread
        self._rev = after
        self._snapshot = snapshot
        self._have: dict[tuple[str, int], tuple[int, int]] = {}
        """Of each part that was sent: the revision since when its text has only grown, and how much was sent."""

    async def run(self, send: Callable[[Flow], Awaitable[None]]) -> None:
        """Send all that is new, at the pace of `send`, until the conversation is deleted."""
        self._thread.followers += 1
        try:
            while not self._thread.deleted:
                bell = self._thread.bell  # taken before looking: what changes meanwhile rings this one
                flow = await self._next()
                if flow is None:
                    await bell.wait()
                else:
                    self._rev = flow.rev
                    await send(flow)
        finally:
            self._thread.followers -= 1
            self._thread.settle()

    async def _next(self) -> Flow | None:
        if not self._thread.floor <= self._rev <= self._thread.rev:
            return self._anew(await self._snapshot())
        return self._newer() if self._rev < self._thread.rev else None

    def _anew(self, whole: Snapshot) -> Flow:
        self._have.clear()
        return Flow(
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

    def _newer(self) -> Flow:
        thread, rev = self._thread, self._rev
        newer = [message for message in thread.messages.values() if message.rev > rev]
        flow = Flow(
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
        """What was sent of messages that are over is not needed any more."""
        if len(self._have) > _HAVE_MAX:
            self._have = {key: sent for key, sent in self._have.items() if key[0] in self._thread.messages}


_HAVE_MAX = 1000
"""Bounds what is remembered of parts that will not grow any more."""
