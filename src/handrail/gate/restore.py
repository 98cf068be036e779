"""Restore the open calls of the previous daemon, after a stop or a crash.

A call whose process the keeper still holds stays running, handed back, and so does work that a client does itself; any
other call that was running is interrupted. None is run again. A denied or expired call is settled so. A call that was
waiting for approval stays waiting, except an advisory one: its agent is gone. An allow of advisory work whose agent was
asked to repeat it is kept for it.
"""

import time
from collections.abc import Callable

from handrail.gate.approval import Answer, Approval
from handrail.gate.call import Call, Outcome
from handrail.gate.gate import Gate
from handrail.gate.pipeline import expired_outcome
from handrail.gate.result_review import STOPPED_REVIEW
from handrail.lazy_dataclass import dataclass
from handrail.store.actor import HANDRAIL, PERSON, actor_from_text
from handrail.store.approvals import ApprovalRecord
from handrail.store.calls import CallHistory
from handrail.store.events import ApprovalOpened
from handrail.store.records import Records
from handrail.store.values import Result

INTERRUPTED = "Handrail went down while this ran; its outcome is unknown and it was not run again."
WITHDRAWN = "Handrail went down while a person was asked. Nothing was allowed; ask again."
NOT_BEGUN = "Handrail went down before this began. Nothing was done; ask again."
NOT_BEGUN_ALLOWED = (
    "Handrail went down after this was allowed and before it began. Nothing was done, and the answer is used up; "
    "ask again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """Counts of the calls found, for the log."""

    interrupted: int
    """By the previous daemon as it stopped, or by `restore`."""
    approvals_kept: int


async def restore(gate: Gate, records: Records, output_of: Callable[[str], Result | None]) -> Restored:
    """Settle or reopen every open call; `output_of` reads the output of a terminal by its id."""
    kept, interrupted = 0, await records.calls.count_interrupted()
    for detail in await records.calls.unwinding():
        gate.watch_end(read_ended_call(gate, detail))
    for detail in await records.calls.still_open():
        call, approval = _call(gate, detail), detail.approval
        has_run = detail.call.started_at is not None
        if approval is not None and approval.open and (call.assurance != "bound" or has_run):
            # The approval is withdrawn when the call is settled.
            call.approval = Approval(gate.journal, _opened_event(approval))
            message = STOPPED_REVIEW if has_run else WITHDRAWN
            gate.settle(call, Outcome(ending="interrupted", by=HANDRAIL, message=message), stopped=True)
            interrupted += 1
        elif approval is not None and approval.open:
            gate.restore(call, _opened_event(approval), max(0, _now_ms() - approval.opened_at))
            kept += 1
        elif _is_allowed_later(detail) and gate.restore_allowed(call, _answered(gate, detail)):
            kept += 1
        elif detail.call.started_at is None or not await gate.rejoin(call, detail.claims, detail.files):
            outcome = _outcome(call, detail, output_of)
            gate.settle(call, outcome)
            gate.watch_end(call)
            interrupted += outcome.ending == "interrupted"
    return Restored(interrupted=interrupted, approvals_kept=kept)


def _is_allowed_later(detail: CallHistory) -> bool:
    record, approval = detail.call, detail.approval
    is_handed_back = record.assurance == "advisory" and record.handed_back_at is not None
    is_allowed = approval is not None and approval.answer == "allow"
    return is_handed_back and is_allowed and record.started_at is None


def _answered(gate: Gate, detail: CallHistory) -> Approval:
    record = detail.approval
    assert record is not None
    assert record.answered_at is not None
    approval = Approval(gate.journal, _opened_event(record))
    answer = Answer(
        kind="allow",
        by=actor_from_text(record.answered_by or ""),
        reason=record.reason or "",
        input=None if detail.asked is None else detail.input,
    )
    approval.restore_answer(answer, detail.allowed_digest, max(0, _now_ms() - record.answered_at))
    return approval


def _outcome(call: Call, detail: CallHistory, output_of: Callable[[str], Result | None]) -> Outcome:
    """Outcome of a call that the previous daemon could not settle, from its record.

    A call with effects runs only once its start is durable. Without a start nothing was done, even if it had been
    allowed; it is not run now either, because its client is gone.
    """
    approval = detail.approval
    if detail.call.started_at is not None:
        result = output_of(call.terminal) if call.terminal else None
        return Outcome(ending="interrupted", by=HANDRAIL, message=INTERRUPTED, result=result)
    if approval is not None and approval.answer == "deny":
        return Outcome(
            ending="denied",
            by=actor_from_text(approval.answered_by) if approval.answered_by else PERSON,
            message=approval.reason or "",
        )
    if approval is not None and approval.expired_at is not None:
        return expired_outcome(approval.expired_at - approval.opened_at)
    allowed = approval is not None and approval.answer == "allow"
    return Outcome(ending="interrupted", by=HANDRAIL, message=NOT_BEGUN_ALLOWED if allowed else NOT_BEGUN)


def read_ended_call(gate: Gate, detail: CallHistory) -> Call:
    """A call with an outcome, as it is on record."""
    record, call = detail.call, _call(gate, detail)
    assert record.ending is not None
    call.outcome = Outcome(
        ending=record.ending,
        by=actor_from_text(record.settled_by or ""),
        message=record.message or "",
        result=detail.result,
    )
    call.receipt = detail.receipt or call.receipt
    call.took_ms = max(0, (record.settled_at or record.opened_at) - record.opened_at)
    asked = detail.approval
    if asked is not None and asked.expired_at is not None:
        call.approval = Approval(gate.journal, _opened_event(asked))
        call.approval.expired_ms = asked.expired_at - asked.opened_at
    return call


def _call(gate: Gate, detail: CallHistory) -> Call:
    record = detail.call
    original = detail.input if detail.asked is None else detail.asked
    call = Call(
        gate.journal, record.tool, record.title, original or {}, record.caller, record.id, record.assurance
    )
    call.edited = None if detail.asked is None or record.started_at is None else detail.input
    call.opened_seq = record.opened_seq
    call.since -= max(0, _now_ms() - record.opened_at) / 1000
    call.terminal = record.terminal
    call.handed_back = record.handed_back_at is not None
    call.client_gone = record.client_gone_at is not None
    return call


def _opened_event(record: ApprovalRecord) -> ApprovalOpened:
    return ApprovalOpened(
        approval=record.id,
        call=record.call,
        digest=record.digest,
        claims=record.claims,
        risk=record.risk,
        reasons=record.reasons,
        why=record.why,
        preview=record.preview,
        verdicts=record.verdicts,
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
