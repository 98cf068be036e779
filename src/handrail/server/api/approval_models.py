"""The wire about approvals: questions, what a person answers, and what an edit of theirs would come to.

Owns these JSON shapes of `/api`. It does not know routes, nor how a question is made (gate/).
"""

from typing import Annotated, Literal

from pydantic import Field

from handrail.server.api.models import Wire
from handrail.server.api.rule_models import RuleBody, Suggestion
from handrail.store.values import AnswerKind, Caller, Claim, Comment, Effect, Json, Preview, Risk, Verdict

ApprovalStatus = Literal["open", "allowed", "denied", "expired", "withdrawn"]
Digest = Annotated[str, Field(min_length=64, max_length=64)]
"""Of what the person saw."""


class Usual(Wire):
    """How long such calls took before."""

    median_ms: int
    p95_ms: int
    of: int
    """Calls it was taken from."""


class PartRisk(Wire):
    """How much harm one part could do, by itself, and why."""

    level: Risk
    reasons: tuple[str, ...]


class ApprovalView(Wire):
    """A question, with all a person needs to answer it."""

    id: str
    call_id: str
    tool: str
    title: str
    description: str
    status: ApprovalStatus
    risk: Risk
    reasons: tuple[str, ...]
    """For that risk, and for none lower."""
    risks: tuple[PartRisk, ...]
    """Of each claim, in their order; empty beyond the first of a list, and of one that is closed."""
    why: str
    verdicts: tuple[Verdict, ...]
    digest: str
    asked_at: int
    elapsed_ms: int
    caller: Caller
    client_gone: bool
    input: Json
    claims: tuple[Claim, ...]
    preview: Preview | None
    reviewable: bool
    """It proposes a file's content, which can be reviewed by hunks."""
    can_edit: bool
    """A person may change its input before they allow it."""
    why_not_edit: str
    """As a sentence; empty where they may."""
    trusted: bool
    """The caller's folder is trusted."""
    suggestions: tuple[Suggestion, ...]
    """Rules that would have decided it, general enough to be of use."""
    usual: Usual | None
    edited: bool
    """It was allowed with changes of the person's."""
    reason: str
    by: str | None


class AnswerBody(Wire):
    """A person's answer to an approval."""

    answer: AnswerKind
    digest: Digest
    reason: Annotated[str, Field(max_length=10_000)] = ""
    input: Json | None = None
    """Run this instead; `digest` is then of the preview of it."""
    content: Annotated[str | None, Field(max_length=16_000_000)] = None
    """Write this instead of what was proposed; `digest` is then of the preview of it."""
    comments: Annotated[tuple[Comment, ...], Field(max_length=1000)] = ()
    rule: RuleBody | Annotated[list[RuleBody], Field(max_length=50)] | None = None
    """Make these rules too."""


class EditBody(Wire):
    """An edit that is thought about."""

    input: Json | None = None
    content: Annotated[str | None, Field(max_length=16_000_000)] = None


class EditView(Wire):
    """What an edit would come to, if it were allowed."""

    digest: str
    effect: Effect
    why: str
    verdicts: tuple[Verdict, ...]
    risk: Risk
    reasons: tuple[str, ...]
    risks: tuple[PartRisk, ...]
    claims: tuple[Claim, ...]
    preview: Preview | None
    tells: str
    """What the agent will be told about it."""


class ProposalView(Wire):
    """A file as it was and as it is proposed, whole."""

    path: str
    before: str | None
    after: str | None
    """None where the file is deleted."""
    changed: str | None
    """What is different from the time the question was asked; None while it still holds."""
    difference: str
    """How the file on disk changed since, as a diff."""


class Seen(Wire):
    """An approval as a person saw it."""

    id: str
    digest: Digest


class AllowLowBody(Wire):
    """Several questions of low risk, allowed in one step."""

    approvals: Annotated[list[Seen], Field(min_length=1, max_length=200)]


class AllowedLow(Wire):
    """What came of one of them."""

    id: str
    won: bool
    message: str
