"""Routes about approvals: list, look, answer, edit, review."""

from fastapi import APIRouter, Request, Response

from handrail.errors import Conflict
from handrail.gate import person_actions
from handrail.gate.approval import Answer, Approval
from handrail.gate.call import Call
from handrail.server.approval_views import allowed_view, edit_view, proposal_view
from handrail.server.approval_wire import (
    AllowedLow,
    AllowLowBody,
    AnswerBody,
    ApprovalView,
    EditBody,
    EditView,
    ProposalView,
)
from handrail.server.large import as_json
from handrail.server.rooms import Rooms
from handrail.server.routes.asked import open_views, still_open, view, views
from handrail.server.routes.made import made
from handrail.server.routes.person import by
from handrail.store.value import Rule


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/approvals", response_model=list[ApprovalView])
    async def approvals(open: bool = False) -> Response:
        if open:
            return as_json(await open_views(rooms), list[ApprovalView])
        found = await views(rooms, await rooms.records.approvals(open_only=False))
        return as_json(found, list[ApprovalView])

    @router.get("/approvals/{id}")
    async def approval(id: str) -> ApprovalView:
        return await view(rooms, id)

    @router.post("/approvals/{id}/answer")
    async def answer(id: str, body: AnswerBody, request: Request) -> ApprovalView:
        call, approval = await still_open(rooms, id)
        given = Answer(
            kind=body.answer,
            by=by(request),
            reason=body.reason,
            input=body.input,
            content=body.content,
            comments=body.comments,
            rules=_rules(rooms, call, body),
        )
        await person_actions.answer(rooms.gate, approval, given, body.digest)
        await rooms.journal.committed(rooms.journal.head)  # the answer, and the rules made with it
        return await view(rooms, id)

    @router.post("/approvals/{id}/edit")
    async def edit(id: str, body: EditBody) -> EditView:
        call, _ = await still_open(rooms, id)
        return edit_view(await person_actions.edit(rooms.gate, call, body.input, body.content))

    @router.get("/approvals/{id}/proposal")
    async def proposal(id: str) -> ProposalView:
        call, _ = await still_open(rooms, id)
        return proposal_view(await person_actions.proposal(rooms.gate, call))

    @router.post("/approvals/allow-low")
    async def allow_low(body: AllowLowBody, request: Request) -> list[AllowedLow]:
        found = [await _seen(rooms, one.id, one.digest) for one in body.approvals]
        seen = [each for each in found if not isinstance(each, AllowedLow)]
        allowed = await person_actions.allow_low(rooms.gate, seen, by(request))
        await rooms.journal.committed(rooms.journal.head)
        told = {each.approval: allowed_view(each) for each in allowed}
        return [each if isinstance(each, AllowedLow) else told[each[0].id] for each in found]

    return router


def _rules(rooms: Rooms, call: Call, body: AnswerBody) -> tuple[Rule, ...]:
    if body.rule is None:
        return ()
    bodies = body.rule if isinstance(body.rule, list) else [body.rule]
    return tuple(made(rooms, each, call.caller) for each in bodies)


async def _seen(rooms: Rooms, id: str, digest: str) -> tuple[Approval, str] | AllowedLow:
    """A question to be allowed; one that was closed meanwhile is told by itself."""
    try:
        _, approval = await still_open(rooms, id)
    except Conflict as problem:
        return AllowedLow(id=id, won=False, message=str(problem))
    return approval, digest
