"""The ASGI application: `/api`, `/mcp`, the live sockets and the page's files, and the uvicorn server that runs it.

The only place that turns exceptions into HTTP responses. The keeper holds the listening port.
"""

import asyncio
import contextlib
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
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
from handrail.gate.rules.rules import UnknownRule
from handrail.gate.tool import Refusal, UnknownUndo
from handrail.server.api import (
    agents,
    approvals,
    calls,
    operations,
    policy_changes,
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
from handrail.server.api.prompts import BadImage
from handrail.server.api.terminal_models import SOCKET_SHAPES
from handrail.server.api.thread_models import FLOW_SHAPES
from handrail.server.connection_limit import ConnectionBudget, HttpConnections
from handrail.server.context import ServerContext
from handrail.server.guard import BodyLimit, Guard
from handrail.server.live import event_stream, terminal_attach, thread_stream
from handrail.server.mcp.mcp_endpoints import McpEndpoints
from handrail.server.memory import tune_gc
from handrail.store.export import NotImportable
from handrail.terminal.keeper_client import KeeperError

HOST = "127.0.0.1"
WS_BYTES = 1024 * 1024
"""Longest WebSocket frame a client may send. Bounds memory; a paste into a terminal is far smaller."""


def build_guarded_app(context: ServerContext, mcp: McpEndpoints, port: int) -> ASGIApp:
    """Build the complete application, behind the guard."""
    app = BodyLimit(build_app(context, mcp))
    return Guard(app, context.access, (f"{HOST}:{port}", f"localhost:{port}", f"[::1]:{port}"))


def build_app(context: ServerContext, mcp: McpEndpoints) -> Starlette:
    """Build the application without the guard."""
    api = build_api(context)
    for sockets in (event_stream.sockets, terminal_attach.sockets, thread_stream.sockets):
        api.include_router(sockets(context), prefix="/api")
    routes = [Route("/mcp", mcp), *page_routes(), Mount("/", api)]
    return Starlette(routes=routes, exception_handlers={404: _no_route})


async def _no_route(_request: Request, _problem: Exception) -> JSONResponse:
    """Handle paths that no route matches, such as one with a line break."""
    return JSONResponse(
        {"detail": "There is nothing at this address. /api/openapi.json says what there is."}, 404
    )


class WebServer(uvicorn.Server):
    """Uvicorn without signal handlers: the daemon handles signals and exit."""

    def __init__(self, app: ASGIApp, budget: ConnectionBudget) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=cast("type[asyncio.Protocol]", HttpConnections(budget.http).protocol),
                backlog=budget.backlog,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                ws_max_size=WS_BYTES,
                ws_per_message_deflate=False,
                timeout_graceful_shutdown=1,
            )
        )
        tune_gc()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def main_loop(self) -> None:
        """Sleep until cancelled. Uvicorn's own loop wakes ten times a second, to keep the date header current."""
        self.server_state.default_headers = self.config.encoded_headers
        await anyio.sleep_forever()


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
    policy_changes.routes,
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


def build_api(context: ServerContext) -> FastAPI:
    """Build the FastAPI application of `/api`, without the guard."""
    app = FastAPI(
        title="Handrail",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses=_PROBLEMS,
    )
    for routes in _ROUTES:
        app.include_router(routes(context), prefix="/api")
    app.openapi = partial(_build_openapi, app)
    app.add_exception_handler(Unwritable, _unavailable)
    app.add_exception_handler(Conflict, _conflict)
    app.add_exception_handler(BadRule, _unprocessable)
    app.add_exception_handler(Refusal, _unprocessable)
    app.add_exception_handler(UnknownRule, _not_found)
    app.add_exception_handler(UnknownUndo, _not_found)
    app.add_exception_handler(LookupError, _lookup_failed)
    app.add_exception_handler(AgentError, _bad_gateway)
    app.add_exception_handler(BadImage, _unprocessable)
    app.add_exception_handler(NotImportable, _unprocessable)
    app.add_exception_handler(KeeperError, _unavailable)
    app.add_exception_handler(RequestValidationError, _invalid)
    return app


def _build_openapi(app: FastAPI) -> dict[str, Any]:
    """Build the OpenAPI document. Adds the socket messages, which FastAPI does not describe."""
    document = FastAPI.openapi(app)
    shapes: list[tuple[Any, JsonSchemaMode, TypeAdapter[Any]]] = [
        (shape, "serialization", TypeAdapter(shape)) for shape in (*SOCKET_SHAPES, *FLOW_SHAPES)
    ]
    _, schemas = TypeAdapter.json_schemas(shapes, ref_template="#/components/schemas/{model}")
    document["components"]["schemas"] |= schemas["$defs"]
    return document


async def _unavailable(_request: Request, problem: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(problem)}, 503)


async def _conflict(_request: Request, problem: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(problem)}, 409)


async def _unprocessable(_request: Request, problem: Exception) -> JSONResponse:
    """The request is well-formed, but its content is not valid."""
    return JSONResponse({"detail": str(problem)}, 422)


async def _not_found(_request: Request, problem: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(problem)}, 404)


async def _lookup_failed(_request: Request, problem: Exception) -> JSONResponse:
    """The object disappeared after the route looked it up. Subclasses such as KeyError are bugs and are raised again."""
    if type(problem) is not LookupError:
        raise problem
    return JSONResponse({"detail": str(problem)}, 404)


async def _bad_gateway(_request: Request, problem: Exception) -> JSONResponse:
    """An agent's program failed."""
    return JSONResponse({"detail": str(problem)}, 502)


async def _invalid(_request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, RequestValidationError)
    errors = "; ".join(
        f"{'.'.join(str(part) for part in error['loc'])}: {error['msg'].lower()}"
        for error in problem.errors()[:5]
    )
    return JSONResponse(
        {"detail": f"The request does not fit: {errors}. /api/openapi.json says what does."}, 422
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
_NOT_BUILT = (
    "<!doctype html><title>Handrail</title><p>The page was not built. Run <code>make ui</code>, then reload."
)


def page_routes(static: Path = STATIC) -> list[BaseRoute]:
    index = static / "index.html"

    async def show(_request: Request) -> Response:
        if not index.exists():
            return HTMLResponse(_NOT_BUILT, 503)
        return FileResponse(index, headers={"cache-control": "no-cache"})

    pages: list[BaseRoute] = [Route(path, show, methods=["GET"]) for path in _PAGES]
    assets = StaticFiles(directory=static / "assets", check_dir=False)
    return [*pages, Mount("/assets", assets)]
