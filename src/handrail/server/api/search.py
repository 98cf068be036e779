"""Route of the full-text search over threads, calls and terminal output."""

from typing import Annotated

from fastapi import APIRouter, Query

from handrail.server.api.thread_models import SearchView, search_view
from handrail.server.context import ServerContext


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/search")
    async def search(
        q: Annotated[str, Query(max_length=1000)],
        workspace: Annotated[str | None, Query(max_length=4096)] = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
    ) -> SearchView:
        return search_view(await context.index.search(q, workspace, limit))

    return router
