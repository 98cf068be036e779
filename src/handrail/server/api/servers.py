"""Routes of the MCP servers behind the gate: list, test, restart, standard error; add and remove entries."""

import os
from functools import cache

from fastapi import APIRouter, HTTPException, Request, Response

from handrail.config import McpServerSection
from handrail.errors import Conflict
from handrail.paths import Places
from handrail.server.api.models import now_ms
from handrail.server.api.server_models import (
    AcceptToolBody,
    ServerLogView,
    ServerTrialView,
    ServerView,
    build_log_view,
    build_server_view,
    build_trial_view,
)
from handrail.server.context import ServerContext, actor_of
from handrail.server.server_entries import ServerEntries
from handrail.store.calls import ServerCounts
from handrail.upstream.server_state import ServerState
from handrail.upstream.server_trial import try_server

HOUR_MS = 3_600_000


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/servers")
    async def servers() -> list[ServerView]:
        counts = await context.records.call_counts.by_server(now_ms() - HOUR_MS)
        found = context.servers.configured
        return [
            build_server_view(found[name], context.servers, counts.get(name, _NO_CALLS))
            for name in sorted(found)
        ]

    @router.get("/servers/{name}/logs")
    async def logs(name: str) -> ServerLogView:
        """The last lines of standard error."""
        _require(context, name)
        return build_log_view(context.servers.states.get(name, ServerState()), context.servers.uses(name))

    @router.post("/servers/{name}/restart", status_code=204)
    async def restart(name: str) -> Response:
        """End its processes. The next use starts it again."""
        _require(context, name)
        await context.servers.restart(name)
        return Response(status_code=204)

    @router.post("/servers/{name}/test")
    async def try_out(name: str) -> ServerTrialView:
        """Start a process of its own, list its tools, and end it."""
        _require(context, name)
        trial = await try_server(context.servers, name, "handrail")
        return build_trial_view(trial, await _view(context, name))

    @router.post("/servers/{name}/tools/{tool}/accept")
    async def accept(name: str, tool: str, body: AcceptToolBody, request: Request) -> ServerView:
        """Accept a new or changed definition, after a person saw the difference."""
        current = context.servers.get(name, tool) if name in context.servers.configured else None
        if current is None:
            raise HTTPException(404, f"There is no tool {name}__{tool[:100]}.")
        if current.digest != body.digest:
            raise Conflict("The server describes this tool in other words now. Look at the difference again.")
        context.servers.accept(current, str(actor_of(request)))
        return await _view(context, name)

    return router


def entry_routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @cache
    def entries() -> ServerEntries:
        return ServerEntries(Places.find(os.environ).config, context.policy, context.servers)

    @router.post("/servers", status_code=201)
    async def add(body: McpServerSection, request: Request) -> ServerView:
        """Add an entry to config.toml, in force at once."""
        await entries().add(body, actor_of(request))
        return await _view(context, body.name)

    @router.delete("/servers/{name}", status_code=204)
    async def remove(name: str, request: Request) -> Response:
        """Remove an entry from config.toml, and end its processes."""
        _require(context, name)
        await entries().remove(name, actor_of(request))
        return Response(status_code=204)

    return router


_NO_CALLS = ServerCounts(calls=0, errors=0)


def _require(context: ServerContext, name: str) -> None:
    if name not in context.servers.configured:
        raise HTTPException(404, f"There is no MCP server {name[:100]}. `handrail servers` lists them.")


async def _view(context: ServerContext, name: str) -> ServerView:
    _require(context, name)
    counts = await context.records.call_counts.by_server(now_ms() - HOUR_MS)
    return build_server_view(context.servers.configured[name], context.servers, counts.get(name, _NO_CALLS))
