"""The route to pictures that conversations point to."""

import anyio.to_thread
from fastapi import APIRouter, HTTPException, Response

from handrail.server.pictures import mime_of
from handrail.server.rooms import Rooms
from handrail.store.blobs import NotKept


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/images/{sha}")
    async def image(sha: str) -> Response:
        try:
            content = await anyio.to_thread.run_sync(rooms.images.get, sha)
        except NotKept:
            raise HTTPException(404, f"There is no picture {sha[:100]}.") from None
        mime = mime_of(content)
        if mime is None:
            raise HTTPException(404, f"What is kept as {sha} is no picture that a page shows.")
        return Response(content, media_type=mime)

    return router
