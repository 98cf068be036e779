"""Routes of threads: list, create, get, rename, fork, delete, export, import. Prompts are in `prompts`.

Also the lookups of threads, agents, workspaces and files that other routes share.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import anyio
import anyio.to_thread
from fastapi import APIRouter, BackgroundTasks, HTTPException, Query, Request, Response

from handrail.errors import Unwritable
from handrail.server.api.approvals import require_absolute
from handrail.server.api.models import as_json
from handrail.server.api.thread_models import (
    ASKING_STATE,
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
from handrail.server.context import ServerContext, actor_of
from handrail.server.first_thread import default_agent
from handrail.server.mcp.local_socket import is_too_wide
from handrail.store.actor import Actor
from handrail.store.export import Export, export, import_thread
from handrail.store.export_markdown import as_markdown
from handrail.store.threads.thread_records import ThreadRecord
from handrail.store.values import Json, Position

Limit = Annotated[int, Query(ge=1, le=1000)]


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/threads")
    async def threads(
        workspace: Annotated[str | None, Query(max_length=4096)] = None,
        before: Position | None = None,
        limit: Limit = 200,
    ) -> list[ThreadView]:
        await wait_for_writes(context)
        listed = await context.records.threads.find(workspace, limit, before)
        states = await context.records.threads.states([record.id for record in listed], ASKING_STATE)
        return [build_view(context, record, states.get(record.id, {})) for record in listed]

    @router.post("/threads", status_code=201)
    async def begin(body: ThreadBody, request: Request) -> ThreadView:
        workspace = await resolve_workspace(body.workspace)
        agent = require_agent(context, body.agent or await default_agent(context))
        thread_id = context.threads.open(
            workspace=workspace, title=body.title.strip(), agent=agent, by=actor_of(request)
        )
        context.agents.prepare(agent)
        return await load_fresh_view(context, thread_id)

    @router.post("/threads/default")
    async def default(body: DefaultBody, request: Request) -> ThreadView:
        workspace = await resolve_workspace(body.workspace)
        agent = require_agent(context, body.agent or await default_agent(context))
        context.agents.prepare(agent)
        return await load_fresh_view(
            context, await context.threads.default(workspace, agent, actor_of(request))
        )

    @router.get("/threads/{id}", response_model=ThreadDetail)
    async def thread(id: str, limit: Limit = 60) -> Response:
        await wait_for_writes(context)
        record = await get_record(context, id)
        snapshot = await context.threads.snapshot(id, limit)
        return as_json(thread_detail(build_view(context, record, snapshot.state), snapshot), ThreadDetail)

    @router.get("/threads/{id}/messages", response_model=ThreadPage)
    async def messages(id: str, before: Position, limit: Limit = 60) -> Response:
        await get_record(context, id)
        return as_json(page_view(await context.threads.page(id, before, limit)), ThreadPage)

    return router


def edit_routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.patch("/threads/{id}")
    async def rename(id: str, body: RenameBody, request: Request) -> ThreadView:
        await get_record(context, id)
        title = body.title.strip()
        if not title:
            raise HTTPException(422, "There is nothing in that title. Give it a word.")
        context.threads.rename(id, title, actor_of(request))
        return await load_fresh_view(context, id)

    @router.delete("/threads/{id}", status_code=204)
    async def delete(id: str, request: Request, later: BackgroundTasks) -> Response:
        await get_record(context, id)
        await delete_thread(context, id, actor_of(request))
        later.add_task(context.pictures.prune)
        return Response(status_code=204, background=later)

    @router.post("/threads/{id}/fork", status_code=201)
    async def fork(id: str, body: ForkBody, request: Request) -> ThreadView:
        record = await get_record(context, id)
        if body.message is not None:
            place = await context.records.threads.message_position(body.message)
            if place is None or place[0] != id:
                raise HTTPException(404, f"There is no message {body.message} in thread {id}.")
        title = body.title.strip() or record.title
        fork_id = await context.threads.fork(id, body.message, body.before, title, actor_of(request))
        shared = len(await context.threads.transcript(fork_id))
        await context.prompts.fork_session(fork_id, id, shared)
        return await load_fresh_view(context, fork_id)

    return router


_MIME_TYPES = {"md": "text/markdown; charset=utf-8", "json": "application/json"}
_IMPORT_BODY = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
}
"""OpenAPI body of an import. The route parses the raw body itself, for readable error messages."""


def export_routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/threads/{id}/export", response_class=Response)
    async def export_thread(id: str, format: Literal["md", "json"] = "md") -> Response:
        record = await get_record(context, id)
        exported = await export(context.threads, context.records, id)
        content = await anyio.to_thread.run_sync(_serialize_export, exported, format)
        name = re.sub(r"[^A-Za-z0-9]+", "-", record.title).strip("-")[:40] or "thread"
        headers = {"content-disposition": f'attachment; filename="{name}-{id}.{format}"'}
        return Response(content, media_type=_MIME_TYPES[format], headers=headers)

    @router.post("/threads/import", status_code=201, openapi_extra=_IMPORT_BODY)
    async def bring(
        request: Request, workspace: Annotated[str | None, Query(max_length=4096)] = None
    ) -> ThreadView:
        folder = await resolve_workspace(workspace)
        thread_id = await import_thread(context.threads, await request.body(), actor_of(request), folder)
        return await load_fresh_view(context, thread_id)

    return router


def _serialize_export(exported: Export, format: Literal["md", "json"]) -> str:
    return as_markdown(exported) if format == "md" else exported.model_dump_json(indent=2)


CATCH_UP_SECONDS = 0.5
"""How long a read waits for pending writes. A hanging disk must not block reads."""


async def wait_for_writes(context: ServerContext) -> None:
    """Wait briefly for pending writes, so that a read shows what the live socket has already sent."""
    with anyio.move_on_after(CATCH_UP_SECONDS), contextlib.suppress(Unwritable):
        await context.threads.written()


async def get_record(context: ServerContext, id: str) -> ThreadRecord:
    record = await context.records.threads.get(id)
    if record is None:
        raise HTTPException(404, f"There is no thread {id}. `handrail threads` lists what there is.")
    return record


async def delete_thread(context: ServerContext, id: str, by: Actor) -> None:
    """End all work for a thread, and delete it."""
    await context.prompts.forget(id, by=by)
    context.access.take_back(id)  # before the delete: no call for the thread in between
    await context.threads.delete(id, by)


async def load_fresh_view(context: ServerContext, id: str) -> ThreadView:
    """The view of a thread after pending writes are on disk."""
    await context.threads.written()
    state = (await context.threads.snapshot(id, 1)).state
    return build_view(context, await get_record(context, id), state)


def build_view(context: ServerContext, record: ThreadRecord, state: Mapping[str, Json]) -> ThreadView:
    """Build the view of a thread. The operation and queue come from memory, which is ahead of the disk."""
    queued = record.queued
    with contextlib.suppress(LookupError):  # the thread was deleted after the record was read
        queued = len(context.threads.queued(record.id))
    return thread_view(record, context.prompts.running(record.id), queued, state)


def require_agent(context: ServerContext, name: str, status: int = 422) -> str:
    if context.registry.spec(name) is None:
        raise HTTPException(status, f"There is no agent {name}. `handrail agents` lists what there is.")
    return name


async def resolve_workspace(text: str | None) -> str | None:
    """The real path of a thread's workspace."""
    return None if text is None else await anyio.to_thread.run_sync(_resolve_folder, require_absolute(text))


def _resolve_folder(text: str) -> str:
    folder = Path(os.path.realpath(text))
    if not folder.is_dir():
        raise HTTPException(422, f"{text} is no folder. Name one that exists.")
    if is_too_wide(folder):
        raise HTTPException(
            422, f"{text} is your home, or holds it, which is too wide for an agent. Name a folder within."
        )
    return str(folder)


async def resolve_files(paths: Iterable[str], below: str | None) -> list[Path]:
    """Resolve the files of a prompt."""

    def resolve() -> list[Path]:
        return [_resolve_file(path, below) for path in paths]

    return await anyio.to_thread.run_sync(resolve)


def _resolve_file(text: str, below: str | None) -> Path:
    path = Path(below or "/", text)
    if "\0" in text or not path.exists():
        raise HTTPException(422, f"There is no file {text} in {below or '/'}.")
    return path
