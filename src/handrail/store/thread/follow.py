"""Following a conversation: whoever follows holds a cursor, and is sent what is newer, put together.

Owns what one follower has of it. A slow one is sent less often, never more: text from where it has it, data as it is
now. One whose cursor is from another time, or too far back, is sent the newest messages anew (`reset`).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from pydantic import with_config

from handrail.store.thread.message import Message, Part
from handrail.store.thread.record import MessageRecord, Snapshot
from handrail.store.thread.thread import Thread
from handrail.store.value import SERVED, Json, PartKind, Position


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
