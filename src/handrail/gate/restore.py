"""After a restart: what the daemon before left open.

Owns the rule for each open call: one that ran is interrupted and never run again, one that waited for a person
waits on. It does not know whether the one before crashed or stopped.
"""

from collections.abc import Callable
from dataclasses import dataclass

from handrail.gate.call import Call, Outcome
from handrail.gate.gate import Gate
from handrail.store.event import ApprovalOpened
from handrail.store.query import Records
from handrail.store.records import ApprovalRecord, CallDetail
from handrail.store.value import Result

INTERRUPTED = "Handrail went down while this ran; its outcome is unknown and it was not run again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How much there was."""

    interrupted: int
    """By the daemon before as it left, or now because it could not."""
    approvals_kept: int


async def restore(gate: Gate, records: Records, output_of: Callable[[str], Result | None]) -> Found:
    """Settle or take up every open call; `output_of` reads what a terminal printed."""
    kept, interrupted = 0, await records.interrupted_last()
    for detail in await records.unwinding_calls():
        gate.watch_end(_settled(gate, detail))
    for detail in await records.open_calls():
        call = _call(gate, detail)
        if detail.approval is not None and detail.approval.open:
            gate.restore(call, _asked(detail.approval))
            kept += 1
        else:
            result = output_of(call.terminal) if call.terminal else None
            outcome = Outcome(ending="interrupted", by="handrail", message=INTERRUPTED, result=result)
            gate.settle(call, outcome)
            gate.watch_end(call)
            interrupted += 1
    return Found(interrupted=interrupted, approvals_kept=kept)


def _settled(gate: Gate, detail: CallDetail) -> Call:
    record, call = detail.call, _call(gate, detail)
    assert record.ending is not None
    call.outcome = Outcome(ending=record.ending, by=record.settled_by or "", message=record.message or "")
    call.receipt = detail.receipt or call.receipt
    return call


def _call(gate: Gate, detail: CallDetail) -> Call:
    record = detail.call
    call = Call(gate.journal, record.tool, record.title, detail.input or {}, record.caller, record.id)
    call.opened_seq = record.opened_seq
    call.terminal = record.terminal
    call.handed_back = record.handed_back_at is not None
    call.client_gone = record.client_gone_at is not None
    return call


def _asked(record: ApprovalRecord) -> ApprovalOpened:
    return ApprovalOpened(
        approval=record.id,
        call=record.call,
        digest=record.digest,
        claims=record.claims,
        risk=record.risk,
        reasons=record.reasons,
        why=record.why,
        preview=record.preview,
    )
