"""What the store says about calls, approvals, terminals and credentials.

Values only; they do not know how they were found (query.py). A field from a payload that was erased is empty.
"""

from dataclasses import dataclass
from typing import Literal

from handrail.store.value import (
    AnswerKind,
    Assurance,
    Caller,
    Claim,
    Ending,
    Json,
    Owner,
    Preview,
    Receipt,
    Result,
    Risk,
    Sure,
    TerminalKind,
    Verdict,
)

Status = Literal["waiting", "running"] | Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One call, without its large parts. Times are milliseconds since 1970."""

    id: str
    tool: str
    title: str
    status: Status
    caller: Caller
    assurance: Assurance
    approval: str | None
    """The one opened last."""
    terminal: str | None
    allowed_by: str | None
    ending: Ending | None
    settled_by: str | None
    message: str | None
    opened_at: int
    started_at: int | None
    handed_back_at: int | None
    client_gone_at: int | None
    settled_at: int | None
    stopped_at: int | None
    opened_seq: int
    settled_seq: int | None
    stopped_seq: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRecord:
    """A question to the person, with what is known of its call, and its answer if there is one."""

    id: str
    call: str
    tool: str
    title: str
    caller: Caller
    digest: str
    risk: Risk
    claims: tuple[Claim, ...]
    reasons: tuple[str, ...]
    why: str
    preview: Preview | None
    verdicts: tuple[Verdict, ...]
    answer: AnswerKind | None
    answered_by: str | None
    reason: str | None
    withdrawn_why: str | None
    opened_at: int
    answered_at: int | None
    withdrawn_at: int | None
    opened_seq: int
    answered_seq: int | None

    @property
    def open(self) -> bool:
        return self.answered_at is None and self.withdrawn_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDetail:
    """One call with all that belongs to it."""

    call: CallRecord
    input: Json | None
    claims: tuple[Claim, ...]
    """As it started; before that, as the person was asked."""
    preview: Preview | None
    approval: ApprovalRecord | None
    """The one opened last."""
    result: Result | None
    receipt: Receipt | None
    """The latest: of its stop, or else of its settling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalRecord:
    """One watched process, running while `ended_at` is None."""

    id: str
    call: str | None
    name: str
    cwd: str
    pid: int
    exit_code: int | None
    signal: str | None
    bytes: int | None
    """All it wrote; known once it ended."""
    lost: bool
    opened_at: int
    ended_at: int | None
    opened_seq: int
    of: TerminalKind
    owner: Owner | None
    """None of those of old, which were all a call's."""
    argv: tuple[str, ...]
    cols: int
    rows: int
    """The size it was opened with."""
    nonce: str
    taken_by: str | None
    taken_holds: bool
    asked_prompt: str | None
    asked_sure: Sure | None
    asked_secret: bool
    asked_at: int | None
    """None while it waits for no input, and once it has ended."""
    forgotten_at: int | None
    """Since then its output is deleted."""
    typed_to: int | None
    """How far its output had come when something was typed last; None when nothing ever was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedRecord:
    """A line, or keys, that somebody typed; without text where the terminal did not show it."""

    seq: int
    terminal: str
    at: int
    by: str
    person: bool
    text: str | None
    offset: int
    """How far the output had come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialRecord:
    """Leave for a client to call over HTTP, until `revoked_at`."""

    id: str
    name: str
    workspace: str
    sha256: str
    issued_at: int
    revoked_at: int | None
