"""JSON models of approvals: views, answers, and edits of the input."""

from typing import Annotated, Literal

from pydantic import Field

from handrail.server.api.models import Wire
from handrail.server.api.rule_models import RuleBody, Suggestion
from handrail.store.values import AnswerKind, Caller, Claim, Comment, Effect, Json, Preview, Risk, Verdict

ApprovalStatus = Literal["open", "allowed", "denied", "expired", "withdrawn"]
Digest = Annotated[str, Field(min_length=64, max_length=64)]
"""SHA-256 of the version that the person saw."""


class Usual(Wire):
    """Typical duration of similar calls."""

    median_ms: int
    p95_ms: int
    of: int
    """Number of calls in the sample."""


class PartRisk(Wire):
    """The risk of one claim, and the reasons."""

    level: Risk
    reasons: tuple[str, ...]


class ApprovalView(Wire):
    """An approval, with everything a person needs to answer it."""

    id: str
    call_id: str
    tool: str
    title: str
    description: str
    status: ApprovalStatus
    risk: Risk
    reasons: tuple[str, ...]
    """The reasons for `risk`, not for lower levels."""
    risks: tuple[PartRisk, ...]
    """The risk of each claim, in the order of `claims`. Empty for a closed approval, and after the first ten of a list."""
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
    """The call proposes the content of a file, which can be reviewed hunk by hunk."""
    can_edit: bool
    """A person may edit the input before allowing the call."""
    why_not_edit: str
    """Why the input cannot be edited, as a sentence; else empty."""
    trusted: bool
    """The caller's folder is trusted."""
    suggestions: tuple[Suggestion, ...]
    """Rules that would have decided this call and apply to similar ones."""
    usual: Usual | None
    edited: bool
    """The person edited the input before allowing it."""
    reason: str
    by: str | None


class AnswerBody(Wire):
    """A person's answer to an approval."""

    answer: AnswerKind
    digest: Digest
    reason: Annotated[str, Field(max_length=10_000)] = ""
    input: Json | None = None
    """Run this input instead; `digest` is then that of its preview."""
    content: Annotated[str | None, Field(max_length=16_000_000)] = None
    """Write this content instead of the proposed one; `digest` is then that of its preview."""
    comments: Annotated[tuple[Comment, ...], Field(max_length=1000)] = ()
    rule: RuleBody | Annotated[list[RuleBody], Field(max_length=50)] | None = None
    """Rules to add together with the answer."""
    request_id: Annotated[str, Field(max_length=64)] = ""
    """An id of your own. A request with the id of the answer that was taken succeeds again, instead of coming too late:
    send it again with the same id if the connection was lost."""


class EditBody(Wire):
    """An edit to preview. It is not applied."""

    input: Json | None = None
    content: Annotated[str | None, Field(max_length=16_000_000)] = None


class EditView(Wire):
    """Preview of an edit: the decision, the risk and the effect if it were allowed."""

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
    """The text that the agent will get about the edit."""


class ProposalView(Wire):
    """The full content of a file: current and proposed."""

    path: str
    before: str | None
    after: str | None
    """None if the call deletes the file."""
    changed: str | None
    """How the situation changed since the approval was opened, as a sentence. None if it did not."""
    difference: str
    """Diff of the file on disk since the approval was opened."""


class Seen(Wire):
    """An approval, and the digest of the version that the person saw."""

    id: str
    digest: Digest


class AllowLowBody(Wire):
    """Low-risk approvals to allow in one step."""

    approvals: Annotated[list[Seen], Field(min_length=1, max_length=200)]


class AllowedLow(Wire):
    """The result for one approval of a bulk allow."""

    id: str
    won: bool
    message: str
