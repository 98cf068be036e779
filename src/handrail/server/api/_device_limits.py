"""What a device may not do to a waiting call when `high_risk = "desk"`, by every route that allows one."""

from fastapi import HTTPException

from handrail.errors import Conflict
from handrail.gate import person_actions
from handrail.gate.approval import Approval
from handrail.gate.call import Call
from handrail.gate.gate import Gate
from handrail.server.api.approval_models import AnswerBody
from handrail.server.api.call_models import CompleteBody
from handrail.server.device_guard import HIGH_RISK
from handrail.store.values import Json


async def check_answer(gate: Gate, call: Call, approval: Approval, body: AnswerBody) -> None:
    """Refuse to allow high risk, also by an edit, and to make rules."""
    if body.rule is not None:
        raise HTTPException(403, HIGH_RISK)
    if body.answer != "deny":
        await _check_risk(gate, call, approval, body.digest, body.input, body.content)


async def check_completion(gate: Gate, call: Call, body: CompleteBody) -> None:
    """Refuse to complete a waiting write of high risk: that allows it."""
    accepts = body.content is not None or (
        body.text is None and person_actions.completion(gate, call).does == "accept_diff"
    )
    if accepts and call.approval is not None:
        await _check_risk(gate, call, call.approval, body.digest, None, body.content)


async def _check_risk(
    gate: Gate, call: Call, approval: Approval, digest: str | None, input: Json | None, content: str | None
) -> None:
    """An edit is drafted again when it is allowed, so the risk counts only for the digest that is allowed then."""
    risk = approval.asked.risk
    if input is not None or content is not None:
        edit = await person_actions.edit(gate, call, input, content)
        if edit.risk.level != "high" and edit.digest != digest:
            raise Conflict(person_actions.STALE)
        risk = edit.risk.level
    if risk == "high":
        raise HTTPException(403, HIGH_RISK)
