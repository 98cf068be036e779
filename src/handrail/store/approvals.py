"""A question to a person, and what became of it.

Questions about approvals.

What events about approvals change. An approval ends once: answered, withdrawn or expired.
"""

import sqlite3
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter

from handrail.store.actor import Actor, actor_from_text
from handrail.store.database import Statement
from handrail.store.query import Queries, caller_of, column_names, columns_of
from handrail.store.rules import used_by_answer
from handrail.store.values import (
    AnswerKind,
    Caller,
    Claim,
    Comment,
    Json,
    Preview,
    Risk,
    Verdict,
)


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


_APPROVALS_MAX = 1000
"""Bounds what the list of all approvals, previews included, may hold in memory."""

IS_OPEN = "approvals.answered_at IS NULL AND approvals.withdrawn_at IS NULL AND approvals.expired_at IS NULL"
_COLUMNS = """approvals.*, calls.tool, calls.title, calls.door, calls.client, calls.caller_key, calls.workspace,
       calls.thread, calls.operation"""
_WITH_CALLS = "FROM approvals JOIN calls ON calls.id = approvals.call"
APPROVALS = f"""
SELECT {_COLUMNS}, events.payload
{_WITH_CALLS} JOIN events ON events.seq = approvals.opened_seq"""
_BARE = f"SELECT {_COLUMNS}, NULL AS payload {_WITH_CALLS}"


class ApprovalQueries(Queries):
    """What is known of approvals."""

    async def find(self, open_only: bool) -> list[ApprovalRecord]:
        """Oldest first while they are open: who has waited longest stands on top."""
        if open_only:
            return await self._all(approval_of, f"{APPROVALS} WHERE {IS_OPEN} ORDER BY approvals.opened_seq")
        return await self._all(approval_of, _NEWEST, (_APPROVALS_MAX,))

    async def still_open(self) -> list[ApprovalRecord]:
        """The open ones, oldest first, without what they show: whoever put the question knows that better."""
        return await self._all(approval_of, f"{_BARE} WHERE {IS_OPEN} ORDER BY approvals.opened_seq")

    async def get(self, id: str) -> ApprovalRecord | None:
        found = await self._all(approval_of, f"{APPROVALS} WHERE approvals.id = ?", (id,))
        return found[0] if found else None

    async def recent(self, limit: int = 500) -> list[PromptRecord]:
        """The questions of late, answered or not, as a rule would have met them."""
        return await self._all(prompt_of, _NEWEST, (limit,))


_NEWEST = f"{APPROVALS} ORDER BY approvals.opened_seq DESC LIMIT ?"


def approval_of(row: sqlite3.Row) -> ApprovalRecord:
    asked = None if row["payload"] is None else _approval_payload.validate_json(row["payload"])
    return ApprovalRecord(
        caller=caller_of(row),
        claims=asked.claims if asked else (),
        reasons=asked.reasons if asked else (),
        why=asked.why if asked else "",
        preview=asked.preview if asked else None,
        verdicts=asked.verdicts if asked else (),
        edited=bool(row["edited"]),
        **columns_of(row, _APPROVAL_COLUMNS),
    )


def prompt_of(row: sqlite3.Row) -> PromptRecord:
    asked = None if row["payload"] is None else _approval_payload.validate_json(row["payload"])
    return PromptRecord(
        approval=row["id"],
        caller=caller_of(row),
        claims=asked.claims if asked else (),
        verdicts=asked.verdicts if asked else (),
        by=None if row["answered_by"] is None else actor_from_text(row["answered_by"]),
        edited=bool(row["edited"]),
        at=row["opened_at"],
        **columns_of(row, ("call", "tool", "title", "risk", "answer")),
    )


_approval_payload: TypeAdapter[ApprovalOpened] = TypeAdapter(ApprovalOpened)
_APPROVAL_COLUMNS = column_names(
    ApprovalRecord, "caller", "claims", "reasons", "why", "preview", "verdicts", "edited"
)

_OfApproval = ApprovalOpened | ApprovalAnswered | ApprovalWithdrawn | ApprovalExpired


def statements(seq: int, at: int, event: _OfApproval) -> list[Statement]:
    match event:
        case ApprovalOpened(approval=id, call=call):
            asked = (id, call, event.digest, event.risk, at, seq)
            return [(_OPENED, asked), (_CALL_ASKED, (id, call))]
        case ApprovalAnswered():
            return _answered(seq, at, event)
        case ApprovalWithdrawn(approval=id, why=why):
            return [(_WITHDRAWN, (why, at, id))]
        case ApprovalExpired(approval=id):
            return [(_EXPIRED, (at, id))]


def _answered(seq: int, at: int, event: ApprovalAnswered) -> list[Statement]:
    edited = event.input is not None or event.content is not None
    answered = (event.answer, event.by, event.reason, int(edited), at, seq, event.approval)
    rule = actor_from_text(event.by).rule
    used = [used_by_answer(seq, at, rule, event.call, event.approval)] if rule else []
    return [(_ANSWERED, answered), *used]


_IS_OPEN = "answered_at IS NULL AND withdrawn_at IS NULL AND expired_at IS NULL"
_CALL_ASKED = "UPDATE calls SET approval = ? WHERE id = ?"
_OPENED = """
INSERT INTO approvals (id, call, digest, risk, opened_at, opened_seq)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_ANSWERED = f"""
UPDATE approvals SET answer = ?, answered_by = ?, reason = ?, edited = ?, answered_at = ?, answered_seq = ?
WHERE id = ? AND {_IS_OPEN}"""
_WITHDRAWN = f"UPDATE approvals SET withdrawn_why = ?, withdrawn_at = ? WHERE id = ? AND {_IS_OPEN}"
_EXPIRED = f"UPDATE approvals SET expired_at = ? WHERE id = ? AND {_IS_OPEN}"
