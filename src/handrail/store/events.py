"""The facts of Handrail: every event, in the past tense, in a module for each noun.

Owns the vocabulary that is written to disk and sent to followers; the values it is made of are value.py's. It does
not know how events are stored (codec.py, writer.py), in which order (journal.py), or who decides that they happen (gate/).

The daemon itself: its comings and goings.

Events as text and back.
"""

import json
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter
from pydantic_core import PydanticSerializationError

from handrail.store.approvals import ApprovalAnswered, ApprovalExpired, ApprovalOpened, ApprovalWithdrawn
from handrail.store.calls import (
    CallClientGone,
    CallHandedBack,
    CallOpened,
    CallSettled,
    CallStarted,
    CallStopped,
)
from handrail.store.credentials import CredentialIssued, CredentialRevoked, PersonSignedIn, SignInRevoked
from handrail.store.file_changes import FilesRestored
from handrail.store.operations import ActivityEnded, ActivityStarted, OperationEnded, OperationOpened
from handrail.store.rules import FolderDistrusted, FolderTrusted, RuleAdded, RuleRemoved
from handrail.store.terminals import (
    TerminalAsked,
    TerminalClosed,
    TerminalEnded,
    TerminalForgotten,
    TerminalOpened,
    TerminalReleased,
    TerminalTaken,
    TerminalTyped,
    TerminalWentOn,
)
from handrail.store.threads.thread_records import (
    AgentEnded,
    AgentStarted,
    MessageEnded,
    MessageOpened,
    PromptDropped,
    PromptSent,
    SessionBound,
    ThreadDeleted,
    ThreadOpened,
    ThreadRenamed,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStarted:
    """The daemon is ready; says what it found of the time before."""

    kind: Literal["DaemonStarted"] = "DaemonStarted"
    version: str
    pid: int
    crashed: bool
    """The one before did not say goodbye."""
    interrupted: int
    approvals_kept: int
    terminals_adopted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStopped:
    """The daemon ended on purpose."""

    kind: Literal["DaemonStopped"] = "DaemonStopped"
    why: str


Event = Annotated[
    DaemonStarted
    | DaemonStopped
    | CallOpened
    | CallStarted
    | CallHandedBack
    | CallClientGone
    | CallSettled
    | CallStopped
    | ApprovalOpened
    | ApprovalAnswered
    | ApprovalExpired
    | ApprovalWithdrawn
    | TerminalOpened
    | TerminalTyped
    | TerminalTaken
    | TerminalReleased
    | TerminalAsked
    | TerminalWentOn
    | TerminalForgotten
    | TerminalEnded
    | TerminalClosed
    | OperationOpened
    | OperationEnded
    | ActivityStarted
    | ActivityEnded
    | RuleAdded
    | RuleRemoved
    | FolderTrusted
    | FolderDistrusted
    | FilesRestored
    | ThreadOpened
    | ThreadRenamed
    | ThreadDeleted
    | MessageOpened
    | MessageEnded
    | PromptSent
    | PromptDropped
    | SessionBound
    | AgentStarted
    | AgentEnded
    | PersonSignedIn
    | SignInRevoked
    | CredentialIssued
    | CredentialRevoked,
    Field(discriminator="kind"),
]

events: TypeAdapter[Event] = TypeAdapter(Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An event with its place in the journal."""

    seq: int
    at: int
    """Milliseconds since 1970."""
    event: Event


__all__ = [
    "ActivityEnded",
    "ActivityStarted",
    "AgentEnded",
    "AgentStarted",
    "ApprovalAnswered",
    "ApprovalExpired",
    "ApprovalOpened",
    "ApprovalWithdrawn",
    "CallClientGone",
    "CallHandedBack",
    "CallOpened",
    "CallSettled",
    "CallStarted",
    "CallStopped",
    "CredentialIssued",
    "CredentialRevoked",
    "DaemonStarted",
    "DaemonStopped",
    "Entry",
    "Event",
    "FilesRestored",
    "FolderDistrusted",
    "FolderTrusted",
    "MessageEnded",
    "MessageOpened",
    "OperationEnded",
    "OperationOpened",
    "PersonSignedIn",
    "PromptDropped",
    "PromptSent",
    "RuleAdded",
    "RuleRemoved",
    "SessionBound",
    "SignInRevoked",
    "TerminalAsked",
    "TerminalClosed",
    "TerminalEnded",
    "TerminalForgotten",
    "TerminalOpened",
    "TerminalReleased",
    "TerminalTaken",
    "TerminalTyped",
    "TerminalWentOn",
    "ThreadDeleted",
    "ThreadOpened",
    "ThreadRenamed",
    "events",
]


def encode(event: Event) -> tuple[Event, str]:
    """The event as JSON, and the event that this JSON reads back as.

    They differ only where a text cannot be stored: a file name that is not UTF-8 is kept with `?` in it.
    """
    try:
        return event, events.dump_json(event).decode()
    except PydanticSerializationError:
        payload = json.dumps(asdict(event), ensure_ascii=False).encode("utf-8", "replace")
        return decode(payload.decode()), payload.decode()


def decode(payload: str) -> Event:
    return events.validate_json(payload)
