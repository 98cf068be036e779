"""Routes about conversations: list, begin, look, rename, branch off, delete."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response

from handrail.server.large import as_json
from handrail.server.rooms import Rooms
from handrail.server.routes import conversations
from handrail.server.routes.person import by
from handrail.server.shape import Position
from handrail.server.thread_views import page_view, thread_detail
from handrail.server.thread_wire import ForkBody, RenameBody, ThreadBody, ThreadDetail, ThreadPage, ThreadView

Limit = Annotated[int, Query(ge=1, le=1000)]


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/threads")
    async def threads(
        workspace: Annotated[str | None, Query(max_length=4096)] = None,
        before: Position | None = None,
        limit: Limit = 200,
    ) -> list[ThreadView]:
        listed = await rooms.records.threads(workspace, limit, before)
        return [conversations.view_of(rooms, record) for record in listed]

    @router.post("/threads", status_code=201)
    async def begin(body: ThreadBody, request: Request) -> ThreadView:
        workspace = await conversations.workspace(body.workspace)
        agent = conversations.known_agent(rooms, body.agent or await conversations.usual_agent(rooms))
        made = rooms.threads.open(workspace=workspace, title=body.title.strip(), agent=agent, by=by(request))
        return await conversations.fresh_view(rooms, made)

    @router.get("/threads/{id}", response_model=ThreadDetail)
    async def thread(id: str, limit: Limit = 60) -> Response:
        record = await conversations.found(rooms, id)
        snapshot = await rooms.threads.snapshot(id, limit)
        return as_json(thread_detail(conversations.view_of(rooms, record), snapshot), ThreadDetail)

    @router.get("/threads/{id}/messages", response_model=ThreadPage)
    async def messages(id: str, before: Position, limit: Limit = 60) -> Response:
        await conversations.found(rooms, id)
        return as_json(page_view(await rooms.threads.page(id, before, limit)), ThreadPage)

    @router.patch("/threads/{id}")
    async def rename(id: str, body: RenameBody, request: Request) -> ThreadView:
        await conversations.found(rooms, id)
        title = body.title.strip()
        if not title:
            raise HTTPException(422, "There is nothing in that title. Give it a word.")
        rooms.threads.rename(id, title, by(request))
        return await conversations.fresh_view(rooms, id)

    @router.delete("/threads/{id}", status_code=204)
    async def delete(id: str, request: Request) -> Response:
        await conversations.found(rooms, id)
        await rooms.prompts.forget(id)
        rooms.access.take_back(id)
        await rooms.threads.delete(id, by(request))
        return Response(status_code=204)

    @router.post("/threads/{id}/fork", status_code=201)
    async def fork(id: str, body: ForkBody, request: Request) -> ThreadView:
        record = await conversations.found(rooms, id)
        place = await rooms.records.message_place(body.message)
        if place is None or place[0] != id:
            raise HTTPException(404, f"There is no message {body.message} in thread {id}.")
        title = body.title.strip() or record.title
        made = await rooms.threads.fork(id, body.message, body.before, title, by(request))
        return await conversations.fresh_view(rooms, made)

    return router
