"""Route of the connected clients that run now."""

from fastapi import APIRouter, Request

from handrail.server.api.client_models import ClientView, build_client_views
from handrail.server.context import ServerContext, person_of


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/clients")
    async def clients(request: Request) -> list[ClientView]:
        return build_client_views(context.clients.current, context.gate, person_of(request))

    return router
