"""What happens to a conversation and to the agents that take part in it. What is said is no fact but a flow (threads.py)."""

from dataclasses import dataclass
from typing import Literal

from handrail.store.value import Handover, Role, Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadOpened:
    """A conversation began, by itself or out of another."""

    kind: Literal["ThreadOpened"] = "ThreadOpened"
    thread: str
    workspace: str | None
    title: str
    agent: str
    """Who is prompted, unless the prompt says otherwise."""
    by: str
    forked_from: str | None = None
    forked_at: str | None = None
    """The last message it shares with the thread it was made from."""
    imported: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRenamed:
    """A conversation has another title: a person's, or the one its agent gave it."""

    kind: Literal["ThreadRenamed"] = "ThreadRenamed"
    thread: str
    title: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadDeleted:
    """What was said is gone; the calls made for it stay in the record."""

    kind: Literal["ThreadDeleted"] = "ThreadDeleted"
    thread: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageOpened:
    """Somebody begins to speak: a person whole, an agent bit by bit."""

    kind: Literal["MessageOpened"] = "MessageOpened"
    thread: str
    message: str
    n: int = 0
    """Its place in the thread."""
    role: Role
    agent: str = ""
    """Whose message it is, or whom it is for."""
    operation: str | None = None
    """The work it belongs to; None while a prompt is queued, and of what was imported or copied."""
    queued: bool = False
    """It waits until the work before it has ended."""
    said_at: int | None = None
    """When it was said, of one that was imported or copied; None: now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEnded:
    """Nothing more is added to a message."""

    kind: Literal["MessageEnded"] = "MessageEnded"
    thread: str
    message: str
    stop: Stop
    said_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSent:
    """A queued prompt's turn has come."""

    kind: Literal["PromptSent"] = "PromptSent"
    thread: str
    message: str
    operation: str
    n: int = 0
    """Its place from now on: after all that was said while it waited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptDropped:
    """A queued prompt was taken back before its turn came."""

    kind: Literal["PromptDropped"] = "PromptDropped"
    thread: str
    message: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionBound:
    """An agent keeps this conversation under an id of its own, by which it can be resumed."""

    kind: Literal["SessionBound"] = "SessionBound"
    thread: str
    agent: str
    session: str
    how: Handover
    """How the agent came to know what was said before."""
    upto: int = 0
    """The place of the last message it knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStarted:
    """An agent's program runs."""

    kind: Literal["AgentStarted"] = "AgentStarted"
    agent: str
    terminal: str
    pid: int
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEnded:
    """An agent's program runs no longer; the next prompt starts it again."""

    kind: Literal["AgentEnded"] = "AgentEnded"
    agent: str
    terminal: str
    why: str
    said: tuple[str, ...] = ()
    """The last lines of its standard error."""
