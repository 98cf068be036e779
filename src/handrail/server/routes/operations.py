"""Routes about operations: list, cancel."""

from fastapi import APIRouter, HTTPException, Request

from handrail.server.rooms import Rooms
from handrail.server.routes.person import by
from handrail.server.wire import OperationView


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

    return router
