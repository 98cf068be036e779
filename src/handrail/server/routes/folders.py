"""Routes about folders: which are known, trust one, and trust it no longer."""

from fastapi import APIRouter, Request

from handrail.gate.rules.trust import Folder
from handrail.server.rooms import Rooms
from handrail.server.routes.made import folder_of
from handrail.server.routes.person import by
from handrail.server.rule_views import folder_view
from handrail.server.rule_wire import FolderBody, FolderView


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/folders")
    async def folders() -> list[FolderView]:
        return await views(rooms, rooms.gate.rules.folders())

    @router.post("/folders/trust")
    async def trust(body: FolderBody, request: Request) -> FolderView:
        await rooms.journal.committed(
            rooms.gate.rules.trust(folder_of(body.folder), body.config, by(request))
        )
        return await _view(rooms, body.folder)

    @router.post("/folders/distrust")
    async def distrust(body: FolderBody, request: Request) -> FolderView:
        await rooms.journal.committed(rooms.gate.rules.distrust(folder_of(body.folder), by(request)))
        return await _view(rooms, body.folder)

    return router


async def views(rooms: Rooms, folders: list[Folder]) -> list[FolderView]:
    trusted = {record.folder: record for record in await rooms.records.folders()}
    return [folder_view(each, trusted.get(each.folder)) for each in folders]


async def _view(rooms: Rooms, folder: str) -> FolderView:
    (view,) = await views(rooms, [rooms.gate.rules.folder(folder)])
    return view
