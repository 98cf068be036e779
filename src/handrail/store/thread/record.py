"""What the store says about conversations, their messages and the work done for them.

Values only; they do not know how they were found (query/), nor what grows in memory (message.py).
"""

from dataclasses import dataclass

from pydantic import with_config

from handrail.store.value import SERVED, ActivityEnding, ActivitySort, Json, PartKind, Role, Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRecord:
    """One conversation in a list. Times are milliseconds since 1970."""

    id: str
    workspace: str | None
    title: str
    titled_by: str
    """Who gave it its title."""
    agent: str
    forked_from: str | None
    forked_at: str | None
    created_at: int
    updated_at: int
    opened_seq: int
    messages: int
    queued: int
    operation: str | None
    """The work that runs for it."""
    stop: Stop | None
    """How what was said last ended; None while it is being said, and of an empty one."""


@with_config(SERVED)
@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePart:
    """A piece of a message."""

    n: int
    """Its place in the message."""
    kind: PartKind
    text: str
    data: Json
    """By kind: part.py says which fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecord:
    """Something that was said, as it is now."""

    id: str
    thread: str
    n: int
    role: Role
    agent: str
    operation: str | None
    queued: bool
    opened_at: int
    ended_at: int | None
    stop: Stop | None
    parts: tuple[MessagePart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Messages that follow each other, oldest first."""

    messages: tuple[MessageRecord, ...]
    more: bool
    """There are older ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A conversation at one moment: its newest messages, and where to follow it from."""

    rev: int
    messages: tuple[MessageRecord, ...]
    more: bool
    state: dict[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """Under which id an agent keeps a conversation."""

    session: str
    upto: int
    """The place of the last message it knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRecord:
    """Work for one prompt; it runs while `ended_at` is None."""

    id: str
    thread: str | None
    client: str
    workspace: str | None
    opened_at: int
    ended_at: int | None
    cancelled_by: str | None
    stop: Stop | None
    error: str
    opened_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityRecord:
    """Something that an operation was busy with; it still is while `ended_at` is None."""

    id: str
    parent: str | None
    sort: ActivitySort
    title: str
    tool_call: str
    """The call it is, by its agent's own id."""
    call: str | None
    """The call of ours that it is, as far as the conversation shows one."""
    started_at: int
    ended_at: int | None
    how: ActivityEnding | None
    by: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationDetail:
    """One operation with all that it was busy with, in the order it began."""

    operation: OperationRecord
    cancelled_calls: tuple[str, ...]
    cancelled_activities: tuple[str, ...]
    activities: tuple[ActivityRecord, ...]
