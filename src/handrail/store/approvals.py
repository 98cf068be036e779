"""Approvals: events, records, queries and SQL for questions to a person about a call.

An approval ends once: answered, withdrawn or expired.
"""

import sqlite3
from functools import cache
from typing import Literal

from pydantic import TypeAdapter

from handrail.lazy_dataclass import dataclass
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
    """One call needs a person's approval."""

    kind: Literal["ApprovalOpened"] = "ApprovalOpened"
    approval: str
    call: str
    digest: str
    claims: tuple[Claim, ...]
    risk: Risk
    reasons: tuple[str, ...]
    why: str
    """Why approval is needed."""
    preview: Preview | None
    verdicts: tuple[Verdict, ...] = ()
    """The decision about each claim, and its rule; empty in old records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswered:
    """A person answered, or a rule added since. Only the first answer counts."""

    kind: Literal["ApprovalAnswered"] = "ApprovalAnswered"
    approval: str
    call: str
    answer: AnswerKind
    reason: str
    by: str
    digest: str = ""
    """Digest of the allowed call; differs from that of `ApprovalOpened` when the person edited it."""
    input: Json | None = None
    """The person's edited input; None if unchanged."""
    content: str | None = None
    """The person's edited file content; None if unchanged."""
    comments: tuple[Comment, ...] = ()
    rules: tuple[str, ...] = ()
    """Ids of the rules created with this answer."""
    request_id: str = ""
    """The id that the page gave the answer, by which a repeated request is recognised; empty without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalExpired:
    """The approval got no answer within its time limit."""

    kind: Literal["ApprovalExpired"] = "ApprovalExpired"
    approval: str
    call: str
    after_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalWithdrawn:
    """The approval is no longer needed: its call ended another way."""

    kind: Literal["ApprovalWithdrawn"] = "ApprovalWithdrawn"
    approval: str
    call: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRecord:
    """An approval with fields of its call, and its answer if any."""

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
    """Allowed with an edited input or content."""
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
    """A past approval, with the fields that a rule matches on."""

    approval: str
    call: str
    tool: str
    title: str
    caller: Caller
    risk: Risk
    claims: tuple[Claim, ...]
    verdicts: tuple[Verdict, ...]
    answer: AnswerKind | None
    """None when it got no answer."""
    by: Actor | None
    edited: bool
    at: int
    """When it was opened."""


_APPROVALS_MAX = 1000
"""Bounds the memory of the list of all approvals, which includes previews."""

IS_OPEN = "approvals.answered_at IS NULL AND approvals.withdrawn_at IS NULL AND approvals.expired_at IS NULL"
_COLUMNS = """approvals.*, calls.tool, calls.title, calls.door, calls.client, calls.caller_key, calls.workspace,
       calls.thread, calls.operation"""
_WITH_CALLS = "FROM approvals JOIN calls ON calls.id = approvals.call"
APPROVALS = f"""
SELECT {_COLUMNS}, events.payload
{_WITH_CALLS} JOIN events ON events.seq = approvals.opened_seq"""
_BARE = f"SELECT {_COLUMNS}, NULL AS payload {_WITH_CALLS}"


class ApprovalQueries(Queries):
    """Queries for approvals."""

    async def find(self, open_only: bool) -> list[ApprovalRecord]:
        """Return open approvals, oldest first; or the newest of all, newest first."""
        if open_only:
            return await self._all(approval_of, f"{APPROVALS} WHERE {IS_OPEN} ORDER BY approvals.opened_seq")
        return await self._all(approval_of, _NEWEST, (_APPROVALS_MAX,))

    async def still_open(self) -> list[ApprovalRecord]:
        """Return open approvals, oldest first, without claims, reasons and preview: the gate holds those."""
        return await self._all(approval_of, f"{_BARE} WHERE {IS_OPEN} ORDER BY approvals.opened_seq")

    async def get(self, id: str) -> ApprovalRecord | None:
        found = await self._all(approval_of, f"{APPROVALS} WHERE approvals.id = ?", (id,))
        return found[0] if found else None

    async def request_id(self, id: str) -> str:
        """Return the id of the request that answered; empty if it had none, or the approval was not answered."""
        found = await self._all(lambda row: str(row["request_id"] or ""), _REQUEST_ID, (id,))
        return found[0] if found else ""

    async def recent(self, limit: int = 500) -> list[PromptRecord]:
        """Return recent approvals, answered or not, newest first, for matching against rules."""
        return await self._all(prompt_of, _NEWEST, (limit,))


_REQUEST_ID = """
SELECT events.payload ->> 'request_id' AS request_id
FROM approvals JOIN events ON events.seq = approvals.answered_seq WHERE approvals.id = ?"""
_NEWEST = f"{APPROVALS} ORDER BY approvals.opened_seq DESC LIMIT ?"


def approval_of(row: sqlite3.Row) -> ApprovalRecord:
    asked = None if row["payload"] is None else _payload_adapter().validate_json(row["payload"])
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
    asked = None if row["payload"] is None else _payload_adapter().validate_json(row["payload"])
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


@cache
def _payload_adapter() -> TypeAdapter[ApprovalOpened]:
    return TypeAdapter(ApprovalOpened)


_APPROVAL_COLUMNS = column_names(
    ApprovalRecord, "caller", "claims", "reasons", "why", "preview", "verdicts", "edited"
)

_OfApproval = ApprovalOpened | ApprovalAnswered | ApprovalWithdrawn | ApprovalExpired


def statements(seq: int, at: int, event: _OfApproval) -> list[Statement]:
    match event:
        case ApprovalOpened(approval=id, call=call):
            asked = (id, call, event.digest, event.risk, at, seq)
            return [(_OPENED, asked), (_CALL_ASKED, (id, at, at, call))]
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
# A call is asked about before it starts. An approval that is opened later is the review of its result.
_CALL_ASKED = """
UPDATE calls SET approval = ?,
    asked_at = CASE WHEN started_seq IS NULL THEN ? ELSE asked_at END,
    reviewed_at = CASE WHEN started_seq IS NULL THEN reviewed_at ELSE ? END
WHERE id = ?"""
_OPENED = """
INSERT INTO approvals (id, call, digest, risk, opened_at, opened_seq)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_ANSWERED = f"""
UPDATE approvals SET answer = ?, answered_by = ?, reason = ?, edited = ?, answered_at = ?, answered_seq = ?
WHERE id = ? AND {_IS_OPEN}"""
_WITHDRAWN = f"UPDATE approvals SET withdrawn_why = ?, withdrawn_at = ? WHERE id = ? AND {_IS_OPEN}"
_EXPIRED = f"UPDATE approvals SET expired_at = ? WHERE id = ? AND {_IS_OPEN}"
