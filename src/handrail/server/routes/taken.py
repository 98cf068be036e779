"""Routes by which a conversation is taken elsewhere, and brought here: export, import."""

import re
from typing import Annotated, Literal

import anyio.to_thread
from fastapi import APIRouter, Query, Request, Response

from handrail.server.rooms import Rooms
from handrail.server.routes import conversations
from handrail.server.routes.person import by
from handrail.server.thread_wire import ThreadView
from handrail.store.export.exporting import export, import_thread
from handrail.store.export.markdown import as_markdown
from handrail.store.export.shape import Export

_TYPES = {"md": "text/markdown; charset=utf-8", "json": "application/json"}
_BODY = {"requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}}
"""What `export` gave: it is read as it came, and what is wrong with it is told in words."""


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/threads/{id}/export", response_class=Response)
    async def export_thread(id: str, format: Literal["md", "json"] = "md") -> Response:
        record = await conversations.found(rooms, id)
        whole = await export(rooms.threads, rooms.records, id)
        content = await anyio.to_thread.run_sync(_written, whole, format)
        name = re.sub(r"[^A-Za-z0-9]+", "-", record.title).strip("-")[:40] or "thread"
        headers = {"content-disposition": f'attachment; filename="{name}-{id}.{format}"'}
        return Response(content, media_type=_TYPES[format], headers=headers)

    @router.post("/threads/import", status_code=201, openapi_extra=_BODY)
    async def bring(
        request: Request, workspace: Annotated[str | None, Query(max_length=4096)] = None
    ) -> ThreadView:
        folder = await conversations.workspace(workspace)
        made = await import_thread(rooms.threads, await request.body(), by(request), folder)
        return await conversations.fresh_view(rooms, made)

    return router


def _written(whole: Export, format: Literal["md", "json"]) -> str:
    return as_markdown(whole) if format == "md" else whole.model_dump_json(indent=2)
