"""Routes about operations: list, look at what one is busy with, cancel it or any part of it."""

from fastapi import APIRouter, HTTPException, Request, Response

from handrail.server.large import as_json
from handrail.server.operation_views import operation_detail
from handrail.server.rooms import Rooms
from handrail.server.routes import conversations
from handrail.server.routes.person import by
from handrail.server.wire import OperationDetail, OperationView


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/operations")
    async def operations() -> list[OperationView]:
        return [
            OperationView(
                id=operation.id,
                caller=operation.caller,
                calls=tuple(c.id for c in rooms.gate.open.values() if c.caller.operation == operation.id),
            )
            for operation in rooms.gate.operations.values()
        ]

    @router.post("/operations/{id}/cancel")
    async def cancel_operation(id: str, request: Request) -> dict[str, bool]:
        operation = rooms.gate.operations.get(id)
        if operation is None:
            raise HTTPException(404, f"There is no open operation {id}; it has ended, or never was.")
        return {"won": operation.cancel(by(request))}

    @router.get("/operations/{id}", response_model=OperationDetail)
    async def operation(id: str) -> Response:
        await conversations.caught_up(rooms)
        found = await rooms.records.operation_detail(id)
        if found is None:
            raise HTTPException(404, f"There is no operation {id}.")
        return as_json(operation_detail(found), OperationDetail)

    @router.post("/operations/{id}/activities/{activity}/cancel")
    async def cancel_activity(id: str, activity: str, request: Request) -> dict[str, bool]:
        if await rooms.records.operation(id) is None:
            raise HTTPException(404, f"There is no operation {id}.")
        await rooms.prompts.cancel_activity(id, activity, by=by(request))
        return {"won": True}

    return router
