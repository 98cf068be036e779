"""Routes about approvals: list, look, answer."""

from fastapi import APIRouter, HTTPException, Request

from handrail.errors import Conflict
from handrail.gate import verbs
from handrail.gate.approval import Answer
from handrail.server import views
from handrail.server.approval_wire import (
    AllowedLow,
    AllowLowBody,
    AnswerBody,
    ApprovalView,
    EditBody,
    EditView,
    ProposalView,
)
from handrail.server.rooms import Rooms
from handrail.server.routes.person import by
from handrail.store import records as kept


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/approvals")
    async def approvals(open: bool = False) -> list[ApprovalView]:
        found = await rooms.records.approvals(open_only=open)
        return [views.approval_view(record, rooms.gate) for record in found]

    @router.get("/approvals/{id}")
    async def approval(id: str) -> ApprovalView:
        record = await _asked(rooms, id)
        detail = await rooms.records.call(record.call)
        return views.approval_view(record, rooms.gate, detail.input if detail else None)

    @router.post("/approvals/{id}/answer")
    async def answer(id: str, body: AnswerBody, request: Request) -> ApprovalView:
        record = await _asked(rooms, id)
        open_call = rooms.gate.open.get(record.call)
        if open_call is None or open_call.approval is None or open_call.approval.id != id:
            raise Conflict(_closed(await _asked(rooms, id)))
        given = Answer(kind=body.answer, by=by(request), reason=body.reason)
        try:
            seq = verbs.answer(open_call.approval, given, body.digest)
        except Conflict:
            if open_call.approval.open:
                raise
            await rooms.journal.committed(rooms.journal.head)
            raise Conflict(_closed(await _asked(rooms, id))) from None
        await rooms.journal.committed(seq)
        return views.approval_view(await _asked(rooms, id), rooms.gate, open_call.input)

    @router.post("/approvals/{id}/edit")
    async def edit(id: str, body: EditBody) -> EditView:
        raise HTTPException(503, "Questions cannot be edited yet.")

    @router.get("/approvals/{id}/proposal")
    async def proposal(id: str) -> ProposalView:
        raise HTTPException(503, "Proposals cannot be read yet.")

    @router.post("/approvals/allow-low")
    async def allow_low(body: AllowLowBody, request: Request) -> list[AllowedLow]:
        raise HTTPException(503, "Several questions cannot be answered at once yet.")

    return router


async def _asked(rooms: Rooms, id: str) -> kept.ApprovalRecord:
    record = await rooms.records.approval(id)
    if record is None:
        raise HTTPException(404, f"There is no approval {id}. `handrail approvals` lists the open ones.")
    return record


def _closed(record: kept.ApprovalRecord) -> str:
    if record.answered_at is None:
        return f"Already withdrawn: {record.withdrawn_why or 'its call has ended'}."
    word = "allowed" if record.answer == "allow" else "denied"
    return f"Already {word} by {record.answered_by}, {_ago(views.now_ms() - record.answered_at)} ago."


def _ago(ms: int) -> str:
    """12 s · 7 min · 3 h · 2 d."""
    seconds = ms // 1000
    for least, size, unit in ((172_800, 86_400, "d"), (7200, 3600, "h"), (120, 60, "min")):
        if seconds >= least:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
