"""Serving: the guarded application, inside the daemon's own task tree.

Owns the names we answer to and uvicorn's settings. It does not know routes; the port is the keeper's to hold.
"""

import contextlib
import gc
from collections.abc import Generator

import uvicorn
from fastapi import Request
from fastapi.responses import JSONResponse
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from handrail.server import attach, live, thread_live
from handrail.server.body import Bounded
from handrail.server.guard import Guard
from handrail.server.http import application
from handrail.server.page import page_routes
from handrail.server.rooms import Rooms
from handrail.server.streamable import Streamable

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
    for sockets in (live.sockets, attach.sockets, thread_live.sockets):
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
