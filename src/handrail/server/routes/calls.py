"""Routes about calls: list, look, cancel, complete."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request

from handrail.gate import person_actions
from handrail.gate.call import Call
from handrail.server import views
from handrail.server.rooms import Rooms
from handrail.server.routes.person import by
from handrail.server.shape import Position
from handrail.server.wire import CallDetail, CallView, CompleteBody, Forced
from handrail.store import records as kept
from handrail.store.actor import Actor
from handrail.store.records import Status


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/calls")
    async def calls(
        status: Status | None = None,
        tool: str | None = None,
        agent: str | None = None,
        q: Annotated[str | None, Query(max_length=1000)] = None,
        before: Position | None = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    ) -> list[CallView]:
        found = await rooms.records.calls(status, tool, agent, q, before, limit)
        return [views.call_view(record, rooms.gate.open.get(record.id)) for record in found]

    @router.get("/calls/{id}")
    async def call(id: str) -> CallDetail:
        detail = await _detail(rooms, id)
        return views.call_detail(detail, rooms.gate.open.get(id), rooms.gate, rooms.terminals)

    @router.post("/calls/{id}/cancel")
    async def cancel(id: str, request: Request) -> Forced:
        open_call = rooms.gate.open.get(id)
        won = open_call is not None and person_actions.cancel(rooms.gate, open_call, by(request))
        return await _forced(rooms, id, won, "Cancelled.")

    @router.post("/calls/{id}/complete")
    async def complete(id: str, body: CompleteBody, request: Request) -> Forced:
        open_call = rooms.gate.open.get(id)
        won = open_call is not None and await _complete(rooms, open_call, body, by(request))
        return await _forced(rooms, id, won, "Completed.")

    return router


async def _complete(rooms: Rooms, call: Call, body: CompleteBody, by: Actor) -> bool:
    if body.content is None:
        return person_actions.complete(
            rooms.gate, call, by, stop=body.stop, text=body.text, digest=body.digest
        )
    return await person_actions.accept(rooms.gate, call, by, body.digest or "", body.content, body.comments)


async def _detail(rooms: Rooms, id: str) -> kept.CallDetail:
    detail = await rooms.records.call(id)
    if detail is None:
        raise HTTPException(404, f"There is no call {id}. `handrail calls` lists what there is.")
    return detail


async def _forced(rooms: Rooms, id: str, won: bool, done: str) -> Forced:
    """The call after a verb; a verb that came too late changed nothing and says how it ended.

    Completing what waits for leave to run cancels it, and then that is what is said.
    """
    if won:
        await rooms.journal.committed(rooms.journal.head)
    detail = await _detail(rooms, id)
    view = views.call_view(detail.call, rooms.gate.open.get(id))
    if not won:
        done = f"It had ended before: {view.status}."
    elif view.status == "cancelled":
        done = "Cancelled."
    return Forced(won=won, message=done, call=view)
