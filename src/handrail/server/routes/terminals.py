"""Routes about terminals: list, close."""

from fastapi import APIRouter, HTTPException, Request

from handrail.server.rooms import Rooms
from handrail.server.routes.person import by
from handrail.server.terminal_views import terminal_view
from handrail.server.terminal_wire import TerminalView
from handrail.store.event import TerminalClosed


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/terminals")
    async def terminals(running: bool = False) -> list[TerminalView]:
        found = await rooms.records.terminals(running_only=running)
        return [terminal_view(record, rooms.terminals.get(record.id)) for record in found]

    @router.post("/terminals/{id}/close")
    async def close(id: str, request: Request) -> TerminalView:
        record = await rooms.records.terminal(id)
        if record is None:
            raise HTTPException(404, f"There is no terminal {id}.")
        live = rooms.terminals.get(id)
        if live is not None and live.exit is None:
            await rooms.journal.committed(rooms.journal.append(TerminalClosed(terminal=id, by=by(request))))
            await live.stop()
        return terminal_view(record, live)

    return router
