"""A question to a person, and what became of it."""

from dataclasses import dataclass
from typing import Literal

from handrail.store.value import AnswerKind, Claim, Comment, Json, Preview, Risk, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalOpened:
    """A person is asked about one call."""

    kind: Literal["ApprovalOpened"] = "ApprovalOpened"
    approval: str
    call: str
    digest: str
    claims: tuple[Claim, ...]
    risk: Risk
    reasons: tuple[str, ...]
    why: str
    """Why a person is asked at all."""
    preview: Preview | None
    verdicts: tuple[Verdict, ...] = ()
    """What was decided about each claim, and by which rule; none in the records of old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswered:
    """A person decided, or a rule that was added since; the first answer is the only one."""

    kind: Literal["ApprovalAnswered"] = "ApprovalAnswered"
    approval: str
    call: str
    answer: AnswerKind
    reason: str
    by: str
    digest: str = ""
    """Of what is allowed; differs from the question's when the person edited it."""
    input: Json | None = None
    """As the person edited it; None when it runs as it was asked."""
    content: str | None = None
    """Of the file, as the person reviewed it; None when it is written as it was proposed."""
    comments: tuple[Comment, ...] = ()
    rules: tuple[str, ...] = ()
    """Made with this answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalExpired:
    """Nobody answered in the time that was set."""

    kind: Literal["ApprovalExpired"] = "ApprovalExpired"
    approval: str
    call: str
    after_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalWithdrawn:
    """The question is moot: its call ended another way."""

    kind: Literal["ApprovalWithdrawn"] = "ApprovalWithdrawn"
    approval: str
    call: str
    why: str
