"""Routes about conversations: list, begin, look. What is done to one is in keeping.py, talking in prompts.py."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from handrail.server.large import as_json
from handrail.server.rooms import Rooms
from handrail.server.routes import conversations
from handrail.server.routes.person import by
from handrail.server.shape import Position
from handrail.server.thread_views import page_view, thread_detail
from handrail.server.thread_wire import (
    DefaultBody,
    ThreadBody,
    ThreadDetail,
    ThreadPage,
    ThreadView,
)

Limit = Annotated[int, Query(ge=1, le=1000)]


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/threads")
    async def threads(
        workspace: Annotated[str | None, Query(max_length=4096)] = None,
        before: Position | None = None,
        limit: Limit = 200,
    ) -> list[ThreadView]:
        await conversations.caught_up(rooms)
        listed = await rooms.records.threads(workspace, limit, before)
        return [conversations.view_of(rooms, record) for record in listed]

    @router.post("/threads", status_code=201)
    async def begin(body: ThreadBody, request: Request) -> ThreadView:
        workspace = await conversations.workspace(body.workspace)
        agent = conversations.known_agent(rooms, body.agent or await conversations.usual_agent(rooms))
        made = rooms.threads.open(workspace=workspace, title=body.title.strip(), agent=agent, by=by(request))
        return await conversations.fresh_view(rooms, made)

    @router.post("/threads/default")
    async def default(body: DefaultBody, request: Request) -> ThreadView:
        workspace = await conversations.workspace(body.workspace)
        agent = conversations.known_agent(rooms, body.agent or await conversations.usual_agent(rooms))
        return await conversations.fresh_view(
            rooms, await rooms.threads.default(workspace, agent, by(request))
        )

    @router.get("/threads/{id}", response_model=ThreadDetail)
    async def thread(id: str, limit: Limit = 60) -> Response:
        await conversations.caught_up(rooms)
        record = await conversations.found(rooms, id)
        snapshot = await rooms.threads.snapshot(id, limit)
        return as_json(thread_detail(conversations.view_of(rooms, record), snapshot), ThreadDetail)

    @router.get("/threads/{id}/messages", response_model=ThreadPage)
    async def messages(id: str, before: Position, limit: Limit = 60) -> Response:
        await conversations.found(rooms, id)
        return as_json(page_view(await rooms.threads.page(id, before, limit)), ThreadPage)

    return router
