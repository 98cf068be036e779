"""Projection: turns an event into the SQL statements that update the tables of its noun.

Pure; each noun's statements are in its own module. Every statement is total, so that no event can fail the commit it
shares with others: the first event about an id wins, and an event about an unknown id changes nothing.
"""

from handrail.store import (
    approvals,
    calls,
    credentials,
    file_changes,
    journal_compaction,
    mcp_servers,
    operations,
    rules,
    terminals,
)
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
from handrail.store.credentials import CredentialIssued, CredentialRevoked
from handrail.store.database import Statement
from handrail.store.events import Event
from handrail.store.file_changes import FilesRestored
from handrail.store.journal_compaction import JournalCompacted
from handrail.store.mcp_servers import ServerToolsPinned
from handrail.store.operations import ActivityEnded, ActivityStarted, OperationEnded, OperationOpened
from handrail.store.rules import (
    FolderDistrusted,
    FolderTrusted,
    RuleAdded,
    RuleDisabled,
    RuleEnabled,
    RuleRemoved,
    RulesOrdered,
)
from handrail.store.terminals import (
    TerminalAsked,
    TerminalEnded,
    TerminalForgotten,
    TerminalOpened,
    TerminalReleased,
    TerminalTaken,
    TerminalTyped,
    TerminalWentOn,
)
from handrail.store.threads import thread_records
from handrail.store.threads.thread_records import (
    MessageEnded,
    MessageOpened,
    PromptDropped,
    PromptSent,
    SessionBound,
    ThreadDeleted,
    ThreadOpened,
    ThreadRenamed,
)


def project(seq: int, at: int, event: Event) -> list[Statement]:  # noqa: C901, PLR0911, PLR0912 - a line for each noun
    match event:
        case (
            CallOpened()
            | CallStarted()
            | CallHandedBack()
            | CallClientGone()
            | CallClientBack()
            | CallSettled()
            | CallStopped()
        ):
            return calls.statements(seq, at, event)
        case ApprovalOpened() | ApprovalAnswered() | ApprovalWithdrawn() | ApprovalExpired():
            return approvals.statements(seq, at, event)
        case TerminalOpened() | TerminalEnded() | TerminalForgotten():
            return terminals.statements(seq, at, event)
        case TerminalTyped() | TerminalTaken() | TerminalReleased() | TerminalAsked() | TerminalWentOn():
            return [terminals.sharing_statement(seq, at, event)]
        case (
            RuleAdded()
            | RuleRemoved()
            | RuleDisabled()
            | RuleEnabled()
            | RulesOrdered()
            | FolderTrusted()
            | FolderDistrusted()
        ):
            return [rules.statement(seq, at, event)]
        case FilesRestored():
            return file_changes.restored(seq, at, event)
        case ThreadOpened() | ThreadRenamed() | ThreadDeleted() | SessionBound():
            return thread_records.statements(seq, at, event)
        case MessageOpened() | MessageEnded() | PromptSent() | PromptDropped():
            return thread_records.message_statements(at, event)
        case OperationOpened() | OperationEnded():
            return operations.statements(seq, at, event)
        case ActivityStarted() | ActivityEnded():
            return operations.activity_statements(seq, at, event)
        case CredentialIssued() | CredentialRevoked():
            return [credentials.statement(at, event)]
        case ServerToolsPinned():
            return [mcp_servers.statement(seq, event)]
        case JournalCompacted():
            return journal_compaction.statements(seq, event)
        case _:
            return []
