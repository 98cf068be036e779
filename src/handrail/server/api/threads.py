"""Routes about conversations: list, begin, look. What is done to one is in keeping.py, talking in prompts.py.

Routes by which a person keeps conversations in order: rename, branch off, delete.

Routes by which a conversation is taken elsewhere, and brought here: export, import.

The conversation that a path names, the agent that a body names, and the folder that a thread is begun in.
"""

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import anyio
import anyio.to_thread
from fastapi import APIRouter, BackgroundTasks, HTTPException, Query, Request, Response

from handrail.errors import Unwritable
from handrail.server.api.approvals import folder_of
from handrail.server.api.models import as_json
from handrail.server.api.thread_models import (
    DefaultBody,
    ForkBody,
    RenameBody,
    ThreadBody,
    ThreadDetail,
    ThreadPage,
    ThreadView,
    page_view,
    thread_detail,
    thread_view,
)
from handrail.server.context import Rooms, by
from handrail.server.mcp.local_socket import is_too_wide
from handrail.store.export import Export, export, import_thread
from handrail.store.export_markdown import as_markdown
from handrail.store.threads.thread_records import ThreadRecord
from handrail.store.values import Position

Limit = Annotated[int, Query(ge=1, le=1000)]


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/threads")
    async def threads(
        workspace: Annotated[str | None, Query(max_length=4096)] = None,
        before: Position | None = None,
        limit: Limit = 200,
    ) -> list[ThreadView]:
        await caught_up(rooms)
        listed = await rooms.records.threads.find(workspace, limit, before)
        return [view_of(rooms, record) for record in listed]

    @router.post("/threads", status_code=201)
    async def begin(body: ThreadBody, request: Request) -> ThreadView:
        workspace = await resolve_workspace(body.workspace)
        agent = known_agent(rooms, body.agent or await usual_agent(rooms))
        made = rooms.threads.open(workspace=workspace, title=body.title.strip(), agent=agent, by=by(request))
        return await fresh_view(rooms, made)

    @router.post("/threads/default")
    async def default(body: DefaultBody, request: Request) -> ThreadView:
        workspace = await resolve_workspace(body.workspace)
        agent = known_agent(rooms, body.agent or await usual_agent(rooms))
        return await fresh_view(rooms, await rooms.threads.default(workspace, agent, by(request)))

    @router.get("/threads/{id}", response_model=ThreadDetail)
    async def thread(id: str, limit: Limit = 60) -> Response:
        await caught_up(rooms)
        record = await found(rooms, id)
        snapshot = await rooms.threads.snapshot(id, limit)
        return as_json(thread_detail(view_of(rooms, record), snapshot), ThreadDetail)

    @router.get("/threads/{id}/messages", response_model=ThreadPage)
    async def messages(id: str, before: Position, limit: Limit = 60) -> Response:
        await found(rooms, id)
        return as_json(page_view(await rooms.threads.page(id, before, limit)), ThreadPage)

    return router


def edit_routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.patch("/threads/{id}")
    async def rename(id: str, body: RenameBody, request: Request) -> ThreadView:
        await found(rooms, id)
        title = body.title.strip()
        if not title:
            raise HTTPException(422, "There is nothing in that title. Give it a word.")
        rooms.threads.rename(id, title, by(request))
        return await fresh_view(rooms, id)

    @router.delete("/threads/{id}", status_code=204)
    async def delete(id: str, request: Request, later: BackgroundTasks) -> Response:
        await found(rooms, id)
        await rooms.prompts.forget(id, by=by(request))
        rooms.access.take_back(id)  # at once: nobody calls for it between
        await rooms.threads.delete(id, by(request))
        later.add_task(rooms.pictures.prune)
        return Response(status_code=204, background=later)

    @router.post("/threads/{id}/fork", status_code=201)
    async def fork(id: str, body: ForkBody, request: Request) -> ThreadView:
        record = await found(rooms, id)
        place = await rooms.records.threads.message_position(body.message)
        if place is None or place[0] != id:
            raise HTTPException(404, f"There is no message {body.message} in thread {id}.")
        title = body.title.strip() or record.title
        made = await rooms.threads.fork(id, body.message, body.before, title, by(request))
        return await fresh_view(rooms, made)

    return router


_TYPES = {"md": "text/markdown; charset=utf-8", "json": "application/json"}
_BODY = {"requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}}
"""What `export` gave: it is read as it came, and what is wrong with it is told in words."""


def export_routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/threads/{id}/export", response_class=Response)
    async def export_thread(id: str, format: Literal["md", "json"] = "md") -> Response:
        record = await found(rooms, id)
        whole = await export(rooms.threads, rooms.records, id)
        content = await anyio.to_thread.run_sync(_written, whole, format)
        name = re.sub(r"[^A-Za-z0-9]+", "-", record.title).strip("-")[:40] or "thread"
        headers = {"content-disposition": f'attachment; filename="{name}-{id}.{format}"'}
        return Response(content, media_type=_TYPES[format], headers=headers)

    @router.post("/threads/import", status_code=201, openapi_extra=_BODY)
    async def bring(
        request: Request, workspace: Annotated[str | None, Query(max_length=4096)] = None
    ) -> ThreadView:
        folder = await resolve_workspace(workspace)
        made = await import_thread(rooms.threads, await request.body(), by(request), folder)
        return await fresh_view(rooms, made)

    return router


def _written(whole: Export, format: Literal["md", "json"]) -> str:
    return as_markdown(whole) if format == "md" else whole.model_dump_json(indent=2)


CATCH_UP_SECONDS = 0.5
"""For what was said and told to be on disk; a disk that hangs must not keep anybody from looking."""


async def caught_up(rooms: Rooms) -> None:
    """Let the record know what memory knows: who has just seen something end shall find it ended there."""
    with anyio.move_on_after(CATCH_UP_SECONDS), contextlib.suppress(Unwritable):
        await rooms.threads.written()


async def found(rooms: Rooms, id: str) -> ThreadRecord:
    record = await rooms.records.threads.get(id)
    if record is None:
        raise HTTPException(404, f"There is no thread {id}. `handrail threads` lists what there is.")
    return record


async def fresh_view(rooms: Rooms, id: str) -> ThreadView:
    """A thread as it is now that all of this is written down."""
    await rooms.threads.written()
    return view_of(rooms, await found(rooms, id))


def view_of(rooms: Rooms, record: ThreadRecord) -> ThreadView:
    """What runs and what waits is known in memory, before it is on disk."""
    queued = record.queued
    with contextlib.suppress(LookupError):  # it was deleted since the record was read
        queued = len(rooms.threads.queued(record.id))
    return thread_view(record, rooms.prompts.running(record.id), queued)


def known_agent(rooms: Rooms, name: str, status: int = 422) -> str:
    if rooms.registry.spec(name) is None:
        raise HTTPException(status, f"There is no agent {name}. `handrail agents` lists what there is.")
    return name


async def usual_agent(rooms: Rooms) -> str:
    """Whom a person would talk to: the one they talked to last, or else the first that is there and lacks nothing."""
    last = await rooms.records.threads.find(limit=1)
    if last and rooms.registry.spec(last[0].agent) is not None:
        return last[0].agent
    listed = await rooms.registry.listing()
    return next(agent.name for agent in listed if agent.found and not agent.why)


async def welcome(rooms: Rooms) -> None:
    """On the first run there is a thread already: who just wants to talk needs no setup."""
    if not await rooms.records.threads.find(limit=1):
        with contextlib.suppress(Unwritable):  # whoever begins one is told
            await rooms.threads.default(None, await usual_agent(rooms))


async def resolve_workspace(text: str | None) -> str | None:
    """The folder a thread works in, whole and without links."""
    return None if text is None else await anyio.to_thread.run_sync(_workspace, folder_of(text))


def _workspace(text: str) -> str:
    folder = Path(os.path.realpath(text))
    if not folder.is_dir():
        raise HTTPException(422, f"{text} is no folder. Name one that exists.")
    if is_too_wide(folder):
        raise HTTPException(
            422, f"{text} is your home, or holds it, which is too wide for an agent. Name a folder within."
        )
    return str(folder)


async def files(paths: Iterable[str], below: str | None) -> list[Path]:
    """The files that a prompt points to."""

    def look() -> list[Path]:
        return [_file(path, below) for path in paths]

    return await anyio.to_thread.run_sync(look)


def _file(text: str, below: str | None) -> Path:
    path = Path(below or "/", text)
    if "\0" in text or not path.exists():
        raise HTTPException(422, f"There is no file {text} in {below or '/'}.")
    return path
