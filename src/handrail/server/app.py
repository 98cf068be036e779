"""Serving: the guarded application, inside the daemon's own task tree.

Owns the names we answer to and uvicorn's settings. It does not know routes; the port is the keeper's to hold.

The routes of `/api` as one application: people's programs, and the page among them.

The page's files, as the build left them.
"""

import contextlib
import gc
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode
from starlette.applications import Starlette
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from handrail import __version__
from handrail.agents.acp.agent_errors import AgentError
from handrail.errors import Conflict, Unwritable
from handrail.gate.rules.rule_builder import BadRule
from handrail.gate.rules.rules import NoRule
from handrail.gate.tool import Refusal, UnknownUndo
from handrail.server.api import (
    agents,
    approvals,
    calls,
    operations,
    prompts,
    rules,
    search,
    sign_in,
    state,
    terminal_output,
    terminals,
    threads,
    undo,
)
from handrail.server.api.call_models import Problem
from handrail.server.api.prompts import NoPicture
from handrail.server.api.terminal_models import SOCKET_SHAPES
from handrail.server.api.thread_models import FLOW_SHAPES
from handrail.server.context import Rooms
from handrail.server.guard import Bounded, Guard
from handrail.server.live import event_stream, terminal_attach, thread_stream
from handrail.server.mcp.streamable_http import Streamable
from handrail.store.export import NotImportable
from handrail.terminal.keeper_client import KeeperError

HOST = "127.0.0.1"
YOUNG = 50_000
"""Objects made since the last collection before there is another: more than the largest list takes."""
WS_BYTES = 1024 * 1024
"""The longest frame a follower may send: more than anybody pastes into a terminal at once."""


def guarded(rooms: Rooms, streamable: Streamable, port: int) -> ASGIApp:
    """Everything that is served, behind the guard."""
    app = Bounded(unguarded(rooms, streamable))
    return Guard(app, rooms.access, (f"{HOST}:{port}", f"localhost:{port}"))


def unguarded(rooms: Rooms, streamable: Streamable) -> Starlette:
    """The route table: what there is, before anybody is let in."""
    api = application(rooms)
    for sockets in (event_stream.sockets, terminal_attach.sockets, thread_stream.sockets):
        api.include_router(sockets(rooms), prefix="/api")
    routes = [Route("/mcp", streamable), *page_routes(), Mount("/", api)]
    return Starlette(routes=routes, exception_handlers={404: _nothing_here})


async def _nothing_here(_request: Request, _problem: Exception) -> JSONResponse:
    """For addresses that no route can take, such as one with a line break in it."""
    return JSONResponse(
        {"detail": "There is nothing at this address. /api/openapi.json says what there is."}, 404
    )


def _collect_rarely() -> None:
    """Modules and routes stay for good, and most of what an answer is made of goes with it: a collection that walks
    them all finds nothing, and makes one answer in twenty late."""
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])


class Web(uvicorn.Server):
    """Uvicorn without hands on the process: signals and exit belong to the daemon."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws_max_size=WS_BYTES,
                ws_per_message_deflate=False,
                timeout_graceful_shutdown=1,
            )
        )
        _collect_rarely()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


_PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem} for code in (400, 401, 403, 404, 409, 422, 502, 503)
}
_ROUTES = (
    state.routes,
    calls.routes,
    operations.routes,
    approvals.routes,
    rules.routes,
    rules.folder_routes,
    undo.routes,
    terminals.routes,
    terminals.sharing_routes,
    terminal_output.routes,
    sign_in.routes,
    sign_in.credential_routes,
    threads.export_routes,
    threads.routes,
    threads.edit_routes,
    prompts.routes,
    agents.routes,
    search.routes,
    prompts.image_routes,
)


def application(rooms: Rooms) -> FastAPI:
    """The routes as an ASGI application, without its guard."""
    app = FastAPI(
        title="Handrail",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses=_PROBLEMS,
    )
    for routes in _ROUTES:
        app.include_router(routes(rooms), prefix="/api")
    app.openapi = partial(_described, app)
    app.add_exception_handler(Unwritable, _unavailable)
    app.add_exception_handler(Conflict, _conflict)
    app.add_exception_handler(BadRule, _unfit)
    app.add_exception_handler(Refusal, _unfit)
    app.add_exception_handler(NoRule, _missing)
    app.add_exception_handler(UnknownUndo, _missing)
    app.add_exception_handler(LookupError, _gone)
    app.add_exception_handler(AgentError, _failed)
    app.add_exception_handler(NoPicture, _unfit)
    app.add_exception_handler(NotImportable, _unfit)
    app.add_exception_handler(KeeperError, _unavailable)
    app.add_exception_handler(RequestValidationError, _invalid)
    return app


def _described(app: FastAPI) -> dict[str, Any]:
    """The description, with what sockets say: FastAPI knows only routes."""
    described = FastAPI.openapi(app)
    shapes: list[tuple[Any, JsonSchemaMode, TypeAdapter[Any]]] = [
        (shape, "serialization", TypeAdapter(shape)) for shape in (*SOCKET_SHAPES, *FLOW_SHAPES)
    ]
    _, said = TypeAdapter.json_schemas(shapes, ref_template="#/components/schemas/{model}")
    described["components"]["schemas"] |= said["$defs"]
    return described


async def _unavailable(_request: Request, problem: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(problem)}, 503)


async def _conflict(_request: Request, problem: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(problem)}, 409)


async def _unfit(_request: Request, problem: Exception) -> JSONResponse:
    """What was sent has the right shape, and cannot be all the same."""
    return JSONResponse({"detail": str(problem)}, 422)


async def _missing(_request: Request, problem: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(problem)}, 404)


async def _gone(_request: Request, problem: Exception) -> JSONResponse:
    """It was there when the route looked. Only what says so itself: a key that is missing is a fault of ours."""
    if type(problem) is not LookupError:
        raise problem
    return JSONResponse({"detail": str(problem)}, 404)


async def _failed(_request: Request, problem: Exception) -> JSONResponse:
    """Somebody else's program could not do it."""
    return JSONResponse({"detail": str(problem)}, 502)


async def _invalid(_request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, RequestValidationError)
    told = "; ".join(
        f"{'.'.join(str(part) for part in error['loc'])}: {error['msg'].lower()}"
        for error in problem.errors()[:5]
    )
    return JSONResponse(
        {"detail": f"The request does not fit: {told}. /api/openapi.json says what does."}, 422
    )


STATIC = Path(__file__).parent / "static"
_PAGES = (
    "/",
    "/c/{id}",
    "/a/{id}",
    "/calls",
    "/x/{id}",
    "/terminals",
    "/threads",
    "/t/{id}",
    "/rules",
    "/gallery",
)
_MISSING = (
    "<!doctype html><title>Handrail</title><p>The page was not built. Run <code>make ui</code>, then reload."
)


def page_routes(static: Path = STATIC) -> list[BaseRoute]:
    index = static / "index.html"

    async def show(_request: Request) -> Response:
        if not index.exists():
            return HTMLResponse(_MISSING, 503)
        return FileResponse(index, headers={"cache-control": "no-cache"})

    pages: list[BaseRoute] = [Route(path, show, methods=["GET"]) for path in _PAGES]
    assets = StaticFiles(directory=static / "assets", check_dir=False)
    return [*pages, Mount("/assets", assets)]
