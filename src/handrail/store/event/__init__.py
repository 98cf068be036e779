"""The facts of Handrail: every event, in the past tense, in a module for each noun.

Owns the vocabulary that is written to disk and sent to followers; the values it is made of are value.py's. It does
not know how events are stored (codec.py, writer.py), in which order (journal.py), or who decides that they happen (gate/).
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, TypeAdapter

from handrail.store.event.access import (
    CredentialIssued,
    CredentialRevoked,
    PersonSignedIn,
    SignInRevoked,
)
from handrail.store.event.activity import (
    ActivityEnded,
    ActivityStarted,
)
from handrail.store.event.approval import (
    ApprovalAnswered,
    ApprovalExpired,
    ApprovalOpened,
    ApprovalWithdrawn,
)
from handrail.store.event.call import (
    CallClientGone,
    CallHandedBack,
    CallOpened,
    CallSettled,
    CallStarted,
    CallStopped,
)
from handrail.store.event.daemon import (
    DaemonStarted,
    DaemonStopped,
)
from handrail.store.event.operation import (
    OperationEnded,
    OperationOpened,
)
from handrail.store.event.rule import (
    FolderDistrusted,
    FolderTrusted,
    RuleAdded,
    RuleRemoved,
)
from handrail.store.event.terminal import (
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
from handrail.store.event.thread import (
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
from handrail.store.event.undo import (
    FilesRestored,
)

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
