"""Routes about folders: which are known, trust one, and trust it no longer."""

from fastapi import APIRouter, HTTPException, Request

from handrail.server.rooms import Rooms
from handrail.server.rule_wire import FolderBody, FolderView


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/folders")
    async def folders() -> list[FolderView]:
        raise HTTPException(503, "Folders cannot be listed yet.")

    @router.post("/folders/trust")
    async def trust(body: FolderBody, request: Request) -> FolderView:
        raise HTTPException(503, "Folders cannot be trusted yet.")

    @router.post("/folders/distrust")
    async def distrust(body: FolderBody, request: Request) -> FolderView:
        raise HTTPException(503, "Folders cannot be distrusted yet.")

    return router
