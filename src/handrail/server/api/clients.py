"""Routes of clients: those that run now, and those that can be connected."""

import os
from pathlib import Path

from anyio import to_thread
from fastapi import APIRouter, HTTPException, Request

from handrail.clients.client_facts import Machine
from handrail.clients.config_file import FileProblem
from handrail.clients.connections import Connections
from handrail.clients.known_clients import NAMES, find_client
from handrail.paths import Places
from handrail.server.api.client_models import ClientView, DemoView, KnownClientView, build_client_views
from handrail.server.context import ServerContext, actor_of, person_of
from handrail.terminal.open_shell import OpenRefused


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/clients")
    async def clients(request: Request) -> list[ClientView]:
        return build_client_views(context.clients.current, context.gate, person_of(request))

    @router.get("/clients/known")
    async def known_clients() -> list[KnownClientView]:
        """The clients that `handrail connect` knows; those that are installed come first."""
        return await to_thread.run_sync(_list_known)

    @router.post("/clients/demo", status_code=201)
    async def start_demo(request: Request) -> DemoView:
        """Start the scripted agent, as `handrail demo` does. If it runs already, nothing is started."""
        try:
            terminal = await context.demo.start(actor_of(request))
        except OpenRefused as problem:
            raise HTTPException(422, str(problem)) from None
        return DemoView(terminal=terminal.id)

    return router


def _list_known() -> list[KnownClientView]:
    machine = Machine.of(os.environ, Path("/"))
    try:
        set_up = {each.client for each in Connections(Places.find(os.environ).data).all()}
    except FileProblem:
        set_up = set[str]()
    views = [
        KnownClientView(
            name=name,
            title=find_client(name).title,
            found=find_client(name).is_found(machine),
            set_up=name in set_up,
        )
        for name in NAMES
    ]
    return sorted(views, key=lambda view: not view.found)
