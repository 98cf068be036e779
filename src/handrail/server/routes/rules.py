"""Routes about rules: what holds, what would be decided and why, add, remove, and what a rule would have done."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response

from handrail.server.rooms import Rooms
from handrail.server.rule_wire import (
    ProposedBody,
    ProposedView,
    RuleBody,
    RulesView,
    RuleView,
    TestBody,
    TestView,
)

Workspace = Annotated[str | None, Query(max_length=4096)]


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/rules")
    async def rules(workspace: Workspace = None) -> RulesView:
        raise HTTPException(503, "Rules cannot be listed yet.")

    @router.post("/rules", status_code=201)
    async def add(body: RuleBody, request: Request) -> RuleView:
        raise HTTPException(503, "Rules cannot be added yet.")

    @router.delete("/rules/{id}", status_code=204)
    async def remove(id: str, request: Request) -> Response:
        raise HTTPException(503, "Rules cannot be removed yet.")

    @router.post("/rules/test")
    async def test(body: TestBody) -> TestView:
        raise HTTPException(503, "Rules cannot be tested yet.")

    @router.post("/rules/propose")
    async def propose(body: ProposedBody) -> ProposedView:
        raise HTTPException(503, "Rules cannot be weighed yet.")

    return router
