"""Routes of editors: those that run, and the answer to a pairing question."""

from fastapi import APIRouter, Request, Response

from handrail.server.api.editor_models import EditorView, PairBody, build_editor_views
from handrail.server.context import ServerContext, actor_of


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/editors")
    async def editors() -> list[EditorView]:
        return build_editor_views(context.editors)

    @router.post("/editors/{id}/pair", status_code=204)
    async def pair(id: str, body: PairBody, request: Request) -> Response:
        """Let this editor decide, as long as its process runs. `number` is the one that its window shows."""
        await context.editors.pair(id, body.number, actor_of(request))
        return Response(status_code=204)

    @router.post("/editors/{id}/refuse", status_code=204)
    async def refuse(id: str, request: Request) -> Response:
        """Let this editor only watch. Takes a pairing back."""
        await context.editors.refuse(id, actor_of(request))
        return Response(status_code=204)

    return router
