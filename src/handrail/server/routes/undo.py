"""Routes about undo: what taking back a call's file changes would do, and doing it."""

from fastapi import APIRouter, HTTPException, Request

from handrail.server.rooms import Rooms
from handrail.server.rule_wire import UndoBody, UndoView


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/undo/{id}")
    async def preview(id: str) -> UndoView:
        raise HTTPException(503, "Nothing can be undone yet.")

    @router.post("/undo/{id}")
    async def undo(id: str, body: UndoBody, request: Request) -> UndoView:
        raise HTTPException(503, "Nothing can be undone yet.")

    return router
