"""Domain into wire: how approvals, and a person's edits of them, look to people's programs.

Translations. What an open question shows comes from the gate, which would run it, and not from the disk, where it may
be altered; what became of a closed one, from the records.
"""

from dataclasses import dataclass

from handrail.gate.approval import Approval, ago
from handrail.gate.gate import Gate
from handrail.gate.person_actions import NO_EDITS, Allowed, Edit, Proposed
from handrail.gate.risk import Weight
from handrail.server.approval_wire import (
    AllowedLow,
    ApprovalStatus,
    ApprovalView,
    EditView,
    PartRisk,
    ProposalView,
    Usual,
)
from handrail.server.rule_wire import Suggestion
from handrail.server.views import now_ms
from handrail.store.records import ApprovalRecord
from handrail.store.value import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What is not part of a question, and stands beside it."""

    trusted: bool
    risks: tuple[PartRisk, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    usual: Usual | None = None


def held(gate: Gate, record: ApprovalRecord) -> Approval | None:
    """The question as the gate holds it; None when its call has ended."""
    call = gate.open.get(record.call)
    approval = call.approval if call else None
    return approval if approval and approval.id == record.id else None


def approval_view(
    record: ApprovalRecord, gate: Gate, beside: Beside, input: Json | None = None
) -> ApprovalView:
    """A question; `input` is needed when its call is no longer open."""
    call, tool, approval = gate.open.get(record.call), gate.toolbox.get(record.tool), held(gate, record)
    asked = approval.asked if approval else record
    return ApprovalView(
        id=record.id,
        call_id=record.call,
        tool=record.tool,
        title=call.title if call else record.title,
        description=tool.description if tool else "",
        status=_status(record),
        risk=asked.risk,
        reasons=asked.reasons,
        risks=beside.risks,
        why=asked.why,
        verdicts=asked.verdicts,
        digest=asked.digest,
        asked_at=record.opened_at,
        elapsed_ms=max(0, (_closed_at(record) or now_ms()) - record.opened_at),
        caller=record.caller,
        client_gone=call is not None and call.client_gone,
        input=call.input if call else input or {},
        claims=asked.claims,
        preview=asked.preview,
        reviewable=approval is not None and _proposes(approval),
        can_edit=tool is not None and tool.edits,
        why_not_edit=NO_EDITS if tool is not None and not tool.edits else "",
        trusted=beside.trusted,
        suggestions=beside.suggestions,
        usual=beside.usual,
        edited=record.edited,
        reason=record.reason or record.withdrawn_why or "",
        by=record.answered_by,
    )


def edit_view(edit: Edit) -> EditView:
    return EditView(
        digest=edit.digest,
        effect=edit.decision.effect,
        why=edit.decision.why,
        verdicts=edit.decision.verdicts,
        risk=edit.risk.level,
        reasons=edit.risk.reasons,
        risks=part_risks(edit.risk),
        claims=edit.plan.claims,
        preview=edit.plan.preview,
        tells=edit.tells,
    )


def part_risks(weight: Weight) -> tuple[PartRisk, ...]:
    return tuple(PartRisk(level=part.level, reasons=part.reasons) for part in weight.parts)


def proposal_view(found: Proposed) -> ProposalView:
    return ProposalView(
        path=found.proposal.path,
        before=found.proposal.before,
        after=found.proposal.after,
        changed=found.changed,
        difference=found.difference,
    )


def allowed_view(allowed: Allowed) -> AllowedLow:
    return AllowedLow(id=allowed.approval, won=allowed.won, message=allowed.message)


def closed(record: ApprovalRecord) -> str:
    """How a question was closed, in a sentence for whoever comes late."""
    past = f"{ago(now_ms() - (_closed_at(record) or now_ms()))} ago"
    if record.answer is not None:
        word = "allowed" if record.answer == "allow" else "denied"
        return f"Already {word} by {record.answered_by}, {past}."
    if record.expired_at is not None:
        return f"Already expired, {past}: nobody answered in time."
    return f"Already withdrawn, {past}: {record.withdrawn_why or 'its call has ended'}."


def _status(record: ApprovalRecord) -> ApprovalStatus:
    if record.answer is not None:
        return "allowed" if record.answer == "allow" else "denied"
    if record.expired_at is not None:
        return "expired"
    return "open" if record.withdrawn_at is None else "withdrawn"


def _closed_at(record: ApprovalRecord) -> int | None:
    return record.answered_at or record.expired_at or record.withdrawn_at


def _proposes(approval: Approval) -> bool:
    return approval.open and approval.draft is not None and approval.draft.deed.proposal is not None
