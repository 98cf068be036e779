"""Routes of undo: preview and run the reversal of file changes."""

from fastapi import APIRouter, Request

from handrail.server.api.rule_models import UndoBody, UndoView, undo_view
from handrail.server.context import ServerContext, actor_of


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/undo/{id}")
    async def preview(id: str) -> UndoView:
        return undo_view(await context.undo.preview(id))

    @router.post("/undo/{id}")
    async def undo(id: str, body: UndoBody, request: Request) -> UndoView:
        return undo_view(await context.undo.undo(id, body.digest, actor_of(request)))

    return router
