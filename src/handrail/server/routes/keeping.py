"""Routes by which a person keeps conversations in order: rename, branch off, delete."""

from fastapi import APIRouter, BackgroundTasks, HTTPException, Request, Response

from handrail.server.rooms import Rooms
from handrail.server.routes import conversations
from handrail.server.routes.person import by
from handrail.server.thread_wire import ForkBody, RenameBody, ThreadView


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.patch("/threads/{id}")
    async def rename(id: str, body: RenameBody, request: Request) -> ThreadView:
        await conversations.found(rooms, id)
        title = body.title.strip()
        if not title:
            raise HTTPException(422, "There is nothing in that title. Give it a word.")
        rooms.threads.rename(id, title, by(request))
        return await conversations.fresh_view(rooms, id)

    @router.delete("/threads/{id}", status_code=204)
    async def delete(id: str, request: Request, later: BackgroundTasks) -> Response:
        await conversations.found(rooms, id)
        await rooms.prompts.forget(id, by=by(request))
        rooms.access.take_back(id)  # at once: nobody calls for it between
        await rooms.threads.delete(id, by(request))
        later.add_task(rooms.pictures.prune)
        return Response(status_code=204, background=later)

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
