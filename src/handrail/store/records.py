"""What the store says about calls, approvals, terminals, rules, changed files and credentials.

Values only; they do not know how they were found (query/). A field from a payload that was erased is empty.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from handrail.store.actor import Actor
from handrail.store.value import (
    AnswerKind,
    Assurance,
    Caller,
    Claim,
    Ending,
    FileChange,
    Json,
    Owner,
    Preview,
    Receipt,
    Result,
    Risk,
    Rule,
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
    edited: bool
    """Allowed with another input or content than was asked for."""
    withdrawn_why: str | None
    opened_at: int
    answered_at: int | None
    withdrawn_at: int | None
    expired_at: int | None
    opened_seq: int
    answered_seq: int | None

    @property
    def open(self) -> bool:
        return self.answered_at is None and self.withdrawn_at is None and self.expired_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDetail:
    """One call with all that belongs to it."""

    call: CallRecord
    input: Json | None
    """As it runs, with a person's edits."""
    asked: Json | None
    """As the agent asked for it, where a person changed it."""
    claims: tuple[Claim, ...]
    """As it started; before that, as the person was asked."""
    preview: Preview | None
    approval: ApprovalRecord | None
    """The one opened last."""
    files: tuple[FileChange, ...]
    """What it set out to put in place of what, once it started."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRecord:
    """A standing answer that a person made, in force until `removed_at`."""

    rule: Rule
    by: str
    approval: str | None
    """The question it was made from."""
    added_at: int
    removed_at: int | None
    removed_by: str | None


class Use(NamedTuple):
    """How often a rule decided something, and when last."""

    hits: int
    last_used_at: int
    last_call: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderRecord:
    """A folder that is trusted."""

    folder: str
    config: str | None
    """SHA-256 of its own file as it was trusted; None when it had none."""
    by: str
    trusted_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRecord:
    """A question of the past, as far as a rule could have answered it."""

    approval: str
    call: str
    tool: str
    title: str
    caller: Caller
    risk: Risk
    claims: tuple[Claim, ...]
    verdicts: tuple[Verdict, ...]
    answer: AnswerKind | None
    """None when nobody answered."""
    by: Actor | None
    edited: bool
    at: int
    """When it was asked."""


class Usual(NamedTuple):
    """How long calls like this one took, once they were allowed."""

    median_ms: int
    p95_ms: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRecord:
    """One file that a call, or an undo, set out to change."""

    seq: int
    call: str
    """The id of the call, or of the undo."""
    at: int
    change: FileChange
    title: str | None
    """The call's; None of an undo."""
    ending: Ending | None
    """The call's: only what is `done` was surely written. None while it is under way, and of an undo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoRecord:
    """A person took changes back."""

    id: str
    calls: tuple[str, ...]
    """Calls, or earlier undos."""
    by: str
    at: int
