"""What an event changes in the tables of nouns.

Pure: an event and its place become SQL statements, in a module for each noun. Every statement is total, so that no
event can fail the commit it shares with others: the first fact about a noun wins, and one about an unknown noun
changes nothing. Does not know connections or transactions.
"""

from handrail.store.event import (
    ActivityEnded,
    ActivityStarted,
    ApprovalAnswered,
    ApprovalExpired,
    ApprovalOpened,
    ApprovalWithdrawn,
    CallClientGone,
    CallHandedBack,
    CallOpened,
    CallSettled,
    CallStarted,
    CallStopped,
    CredentialIssued,
    CredentialRevoked,
    Event,
    FilesRestored,
    FolderDistrusted,
    FolderTrusted,
    MessageEnded,
    MessageOpened,
    OperationEnded,
    OperationOpened,
    PromptDropped,
    PromptSent,
    RuleAdded,
    RuleRemoved,
    SessionBound,
    TerminalAsked,
    TerminalEnded,
    TerminalForgotten,
    TerminalOpened,
    TerminalReleased,
    TerminalTaken,
    TerminalTyped,
    TerminalWentOn,
    ThreadDeleted,
    ThreadOpened,
    ThreadRenamed,
)
from handrail.store.projection import (
    activities,
    approvals,
    calls,
    credentials,
    files,
    messages,
    operations,
    rules,
    sharing,
    terminals,
    threads,
)
from handrail.store.projection.statement import Statement


def project(seq: int, at: int, event: Event) -> list[Statement]:  # noqa: C901, PLR0911 - a line for each noun
    match event:
        case (
            CallOpened() | CallStarted() | CallHandedBack() | CallClientGone() | CallSettled() | CallStopped()
        ):
            return calls.statements(seq, at, event)
        case ApprovalOpened() | ApprovalAnswered() | ApprovalWithdrawn() | ApprovalExpired():
            return approvals.statements(seq, at, event)
        case TerminalOpened() | TerminalEnded() | TerminalForgotten():
            return terminals.statements(seq, at, event)
        case TerminalTyped() | TerminalTaken() | TerminalReleased() | TerminalAsked() | TerminalWentOn():
            return [sharing.statement(seq, at, event)]
        case RuleAdded() | RuleRemoved() | FolderTrusted() | FolderDistrusted():
            return [rules.statement(seq, at, event)]
        case FilesRestored():
            return files.restored(seq, at, event)
        case ThreadOpened() | ThreadRenamed() | ThreadDeleted() | SessionBound():
            return threads.statements(seq, at, event)
        case MessageOpened() | MessageEnded() | PromptSent() | PromptDropped():
            return messages.statements(at, event)
        case OperationOpened() | OperationEnded():
            return operations.statements(seq, at, event)
        case ActivityStarted() | ActivityEnded():
            return activities.statements(seq, at, event)
        case CredentialIssued() | CredentialRevoked():
            return [credentials.statement(at, event)]
        case _:
            return []
