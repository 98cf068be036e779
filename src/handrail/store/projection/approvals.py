"""What events about approvals change. An approval ends once: answered, withdrawn or expired."""

from handrail.store.actor import actor_from_text
from handrail.store.event import ApprovalAnswered, ApprovalExpired, ApprovalOpened, ApprovalWithdrawn
from handrail.store.projection.statement import Statement
from handrail.store.projection.uses import used_by_answer

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
