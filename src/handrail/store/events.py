"""Events: the union of all event types, their JSON encoding, and the events of the daemon.

The other event types are in the module of each noun, their value types in `values`. Event kinds and fields are a
stored format: they are written to disk and sent to followers.
"""

import json
from dataclasses import asdict
from functools import cache
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter
from pydantic_core import PydanticSerializationError

from handrail.lazy_dataclass import dataclass
from handrail.store.approvals import ApprovalAnswered, ApprovalExpired, ApprovalOpened, ApprovalWithdrawn
from handrail.store.calls import (
    CallClientBack,
    CallClientGone,
    CallHandedBack,
    CallOpened,
    CallSettled,
    CallStarted,
    CallStopped,
)
from handrail.store.credentials import CredentialIssued, CredentialRevoked, PersonSignedIn, SignInRevoked
from handrail.store.editors import EditorPaired, EditorRefused, EditorRevoked
from handrail.store.file_changes import FilesRestored
from handrail.store.journal_compaction import JournalCompacted
from handrail.store.mcp_servers import ServerEnded, ServerStarted, ServerToolsPinned
from handrail.store.operations import ActivityEnded, ActivityStarted, OperationEnded, OperationOpened
from handrail.store.pauses import AgentsPaused, AgentsResumed
from handrail.store.rules import (
    FolderDistrusted,
    FolderTrusted,
    PolicyAccepted,
    RuleAdded,
    RuleDisabled,
    RuleEnabled,
    RuleRemoved,
    RulesOrdered,
)
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
    """The daemon is ready; records the state it found at start."""

    kind: Literal["DaemonStarted"] = "DaemonStarted"
    version: str
    pid: int
    crashed: bool
    """The previous daemon ended without `DaemonStopped`."""
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
    | CallClientBack
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
    | RuleDisabled
    | RuleEnabled
    | RulesOrdered
    | RuleRemoved
    | FolderTrusted
    | FolderDistrusted
    | PolicyAccepted
    | AgentsPaused
    | AgentsResumed
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
    | CredentialRevoked
    | EditorPaired
    | EditorRefused
    | EditorRevoked
    | ServerToolsPinned
    | ServerStarted
    | ServerEnded
    | JournalCompacted,
    Field(discriminator="kind"),
]

events: TypeAdapter[Event] = TypeAdapter(Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An event with its number and time in the journal."""

    seq: int
    at: int
    """Milliseconds since 1970."""
    event: Event


__all__ = [
    "ActivityEnded",
    "ActivityStarted",
    "AgentEnded",
    "AgentStarted",
    "AgentsPaused",
    "AgentsResumed",
    "ApprovalAnswered",
    "ApprovalExpired",
    "ApprovalOpened",
    "ApprovalWithdrawn",
    "CallClientBack",
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
    "EditorPaired",
    "EditorRefused",
    "EditorRevoked",
    "Entry",
    "Event",
    "FilesRestored",
    "FolderDistrusted",
    "FolderTrusted",
    "JournalCompacted",
    "MessageEnded",
    "MessageOpened",
    "OperationEnded",
    "OperationOpened",
    "PersonSignedIn",
    "PolicyAccepted",
    "PromptDropped",
    "PromptSent",
    "RuleAdded",
    "RuleDisabled",
    "RuleEnabled",
    "RuleRemoved",
    "RulesOrdered",
    "ServerEnded",
    "ServerStarted",
    "ServerToolsPinned",
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
    """Return the event as stored, and its JSON.

    The event differs from the input only where text is not valid UTF-8 (a file name): it gets `?` there.
    """
    try:
        return event, _adapter(type(event)).dump_json(event).decode()
    except PydanticSerializationError:
        payload = json.dumps(asdict(event), ensure_ascii=False).encode("utf-8", "replace")
        return decode(payload.decode()), payload.decode()


@cache
def _adapter(kind: type[Event]) -> TypeAdapter[Event]:
    """The adapter of one event type: it dumps an event in a third of the time that the union's needs."""
    return TypeAdapter(kind)


def decode(payload: str) -> Event:
    return events.validate_json(payload)
