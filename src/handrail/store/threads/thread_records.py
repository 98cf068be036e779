"""Thread records: events, records and SQL for threads, messages, agent sessions and agent programs.

Message text is not in events: it is streamed to its tables (`_persistence`). Deleting a thread deletes its messages,
and erases its titles from the journal.
"""

from typing import Literal

from pydantic import with_config

from handrail.lazy_dataclass import dataclass
from handrail.store.database import Statement
from handrail.store.values import SERVED, Handover, Json, PartKind, Role, Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRecord:
    """One thread in a list. Times are milliseconds since 1970."""

    id: str
    workspace: str | None
    title: str
    titled_by: str
    """The actor that set the title."""
    agent: str
    forked_from: str | None
    forked_at: str | None
    created_at: int
    updated_at: int
    opened_seq: int
    messages: int
    queued: int
    operation: str | None
    """The running operation."""
    stop: Stop | None
    """How the last message ended; None while it is open, and for an empty thread."""


@with_config(SERVED)
@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePart:
    """A part of a message."""

    n: int
    """Position in the message."""
    kind: PartKind
    text: str
    data: Json
    """Fields by kind: see `parts`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecord:
    """The current state of a message."""

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
    """Consecutive messages, oldest first."""

    messages: tuple[MessageRecord, ...]
    more: bool
    """There are older messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A thread at one moment: its newest messages, and the revision to follow from."""

    rev: int
    messages: tuple[MessageRecord, ...]
    more: bool
    state: dict[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """An agent's session id for a thread."""

    session: str
    upto: int
    """Position of the last message the agent knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadOpened:
    """A thread was opened: empty, forked or imported."""

    kind: Literal["ThreadOpened"] = "ThreadOpened"
    thread: str
    workspace: str | None
    title: str
    agent: str
    """The agent to prompt by default."""
    by: str
    forked_from: str | None = None
    forked_at: str | None = None
    """The last message that was copied from `forked_from`."""
    imported: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRenamed:
    """A thread got a new title, from a person or its agent."""

    kind: Literal["ThreadRenamed"] = "ThreadRenamed"
    thread: str
    title: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadDeleted:
    """A thread and its messages were deleted; its calls stay recorded."""

    kind: Literal["ThreadDeleted"] = "ThreadDeleted"
    thread: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageOpened:
    """A message was opened. A person's text comes as a whole, an agent's is streamed."""

    kind: Literal["MessageOpened"] = "MessageOpened"
    thread: str
    message: str
    n: int = 0
    """Position in the thread."""
    role: Role
    agent: str = ""
    """The agent that wrote it, or that it is for."""
    operation: str | None = None
    """Its operation; None for queued prompts and for imported or copied messages."""
    queued: bool = False
    """The prompt waits until the running operation has ended."""
    said_at: int | None = None
    """Original time of an imported or copied message; None: the event's time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEnded:
    """A message is complete."""

    kind: Literal["MessageEnded"] = "MessageEnded"
    thread: str
    message: str
    stop: Stop
    said_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSent:
    """A queued prompt was sent to its agent: as a prompt of its own, or into an operation that ran already (steering)."""

    kind: Literal["PromptSent"] = "PromptSent"
    thread: str
    message: str
    operation: str
    n: int = 0
    """Its new position: after the messages that came while it waited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptDropped:
    """A queued prompt was removed before it was sent."""

    kind: Literal["PromptDropped"] = "PromptDropped"
    thread: str
    message: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionBound:
    """An agent stores this thread under its own session id, which can resume it."""

    kind: Literal["SessionBound"] = "SessionBound"
    thread: str
    agent: str
    session: str
    how: Handover
    """How the agent got the earlier messages."""
    upto: int = 0
    """Position of the last message the agent knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStarted:
    """An agent's program started."""

    kind: Literal["AgentStarted"] = "AgentStarted"
    agent: str
    terminal: str
    pid: int
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEnded:
    """An agent's program ended; the next prompt starts it again."""

    kind: Literal["AgentEnded"] = "AgentEnded"
    agent: str
    terminal: str
    why: str
    said: tuple[str, ...] = ()
    """The last lines of its standard error."""


_OfThread = ThreadOpened | ThreadRenamed | ThreadDeleted | SessionBound


def statements(seq: int, at: int, event: _OfThread) -> list[Statement]:
    match event:
        case ThreadOpened(thread=id):
            return [_opened(seq, at, event), (_TITLED, (id, seq))]
        case ThreadRenamed(thread=id, title=title, by=by):
            return [(_RENAMED, (title, by, id)), (_TITLED, (id, seq))]
        case ThreadDeleted(thread=id):
            return [*((sql, (id,)) for sql in _DELETED), (_DUE, ())]
        case SessionBound(thread=id, agent=agent, session=session, upto=upto):
            return [(_BOUND, (id, agent, session, upto, at, id))]


def _opened(seq: int, at: int, event: ThreadOpened) -> Statement:
    named = (event.thread, event.workspace, event.title, event.by, event.agent)
    return (_OPENED, (*named, event.forked_from, event.forked_at, at, at, seq))


_OPENED = """
INSERT INTO threads (id, workspace, title, titled_by, agent, forked_from, forked_at, created_at, updated_at, opened_seq)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_TITLED = "INSERT INTO titles (thread, seq) VALUES (?, ?) ON CONFLICT DO NOTHING"
_RENAMED = "UPDATE threads SET title = ?, titled_by = ? WHERE id = ?"
_BOUND = """
INSERT INTO sessions (thread, agent, session, upto, bound_at)
SELECT ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM threads WHERE id = ?)
ON CONFLICT (thread, agent) DO UPDATE SET session = excluded.session, upto = excluded.upto,
                                          bound_at = excluded.bound_at"""
_OF_IT = "WHERE message IN (SELECT id FROM messages WHERE thread = ?)"
_DELETED = (
    f"DELETE FROM growths {_OF_IT}",
    f"DELETE FROM parts {_OF_IT}",
    "DELETE FROM messages WHERE thread = ?",
    "DELETE FROM thread_state WHERE thread = ?",
    "DELETE FROM sessions WHERE thread = ?",
    "DELETE FROM activities WHERE thread = ?",
    "UPDATE events SET payload = NULL WHERE seq IN (SELECT seq FROM titles WHERE thread = ?)",
    "DELETE FROM titles WHERE thread = ?",
    "DELETE FROM threads WHERE id = ?",
)
_DUE = "UPDATE upkeep SET due = 1"

_OfMessage = MessageOpened | MessageEnded | PromptSent | PromptDropped


def message_statements(at: int, event: _OfMessage) -> list[Statement]:
    match event:
        case MessageOpened():
            return [_message_opened(at, event), (_UPDATED, (at, event.thread))]
        case MessageEnded(message=id, stop=stop, said_at=said_at):
            return [(_ENDED, (said_at or at, stop, id)), (_UPDATED, (at, event.thread))]
        case PromptSent(message=id, operation=operation, n=n):
            return [(_SENT, (operation, n, id)), (_UPDATED, (at, event.thread))]
        case PromptDropped(message=id):
            return [(sql, (id,)) for sql in _DROPPED]


def _message_opened(at: int, event: MessageOpened) -> Statement:
    named = (event.message, event.thread, event.n, event.role, event.agent, event.operation)
    return (_MESSAGE_OPENED, (*named, int(event.queued), event.said_at or at, event.thread))


_MESSAGE_OPENED = """
INSERT INTO messages (id, thread, n, role, agent, operation, queued, opened_at)
SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM threads WHERE id = ?) ON CONFLICT DO NOTHING"""
_ENDED = "UPDATE messages SET ended_at = ?, stop = ? WHERE id = ? AND ended_at IS NULL"
_SENT = "UPDATE OR IGNORE messages SET queued = 0, operation = ?, n = ? WHERE id = ? AND queued"
_UPDATED = "UPDATE threads SET updated_at = max(updated_at, ?) WHERE id = ?"
_WAS_QUEUED = "(SELECT id FROM messages WHERE id = ? AND queued)"
_DROPPED = (
    f"DELETE FROM growths WHERE message IN {_WAS_QUEUED}",
    f"DELETE FROM parts WHERE message IN {_WAS_QUEUED}",
    "DELETE FROM messages WHERE id = ? AND queued",
)
