"""The ASGI applications: `/api`, `/mcp` and the page's files for this machine, and without `/mcp` for paired devices."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from handrail.server.context import ServerContext
from handrail.server.device_guard import CA_PATH, DeviceGuard
from handrail.server.device_listener import DeviceAddress
from handrail.server.guard import BodyLimit, Guard
from handrail.server.health import build_health
from handrail.server.mcp.mcp_endpoints import McpEndpoints
from handrail.server.memory import tune_gc

HOST = "127.0.0.1"
HEALTH_PATH = "/api/health"


def build_guarded_app(context: ServerContext, api: ASGIApp, mcp: McpEndpoints, port: int) -> ASGIApp:
    """Build the complete application, behind the guard."""
    app = BodyLimit(build_app(api, mcp))
    return Guard(app, context.access, (f"{HOST}:{port}", f"localhost:{port}", f"[::1]:{port}"))


def build_device_app(context: ServerContext, api: ASGIApp, address: DeviceAddress) -> ASGIApp:
    """Build the application for paired devices: without `/mcp`, and behind a guard of its own."""
    listener = context.devices

    async def ca(_request: Request) -> Response:
        """The certificate that a phone installs. It is public."""
        if address.behind_proxy:
            return JSONResponse({"detail": "The proxy has its own certificate."}, 404)
        return FileResponse(listener.ca_file, media_type="application/x-x509-ca-cert")

    routes = [Route(CA_PATH, ca, methods=["GET"]), *page_routes(), Mount("/", api)]
    app = BodyLimit(Starlette(routes=routes, exception_handlers={404: _no_route}))
    return DeviceGuard(
        app, context.access, address.host, proxied=address.behind_proxy, limited=listener.limited
    )


def build_app(api: ASGIApp, mcp: McpEndpoints) -> Starlette:
    """Build the application without the guard."""
    routes = [Route("/mcp", mcp), *page_routes(), Mount("/", api)]
    return Starlette(routes=routes, exception_handlers={404: _no_route})


async def _no_route(_request: Request, _problem: Exception) -> JSONResponse:
    """Handle paths that no route matches, such as one with a line break."""
    return JSONResponse(
        {"detail": "There is nothing at this address. /api/openapi.json says what there is."}, 404
    )


class LazyApi:
    """The application of `/api`, built for its first request; only the health is answered before.

    FastAPI and the models take a third of a daemon's start, and agents do not use them. Therefore they are imported
    only then and in a thread, so that MCP clients are served meanwhile.
    """

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._app: ASGIApp | None = None
        self._building = anyio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None and _asks_for_health(scope):
            await self._send_health(scope, receive, send)
        else:
            await (self._app or await self._get_app())(scope, receive, send)

    async def _send_health(self, scope: Scope, receive: Receive, send: Send) -> None:
        health = await build_health(self._context.pulse, Request(scope))
        await Response(health.model_dump_json(), media_type="application/json")(scope, receive, send)

    async def _get_app(self) -> ASGIApp:
        async with self._building:
            if self._app is None:
                self._app = await anyio.to_thread.run_sync(self._build)
        return self._app

    def _build(self) -> ASGIApp:
        from handrail.server.api_app import build_api  # noqa: PLC0415

        app = build_api(self._context)
        tune_gc()
        return app


def _asks_for_health(scope: Scope) -> bool:
    return scope["type"] == "http" and scope["method"] == "GET" and scope["path"] == HEALTH_PATH


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
    "/servers",
    "/settings",
    "/gallery",
)
_FILES = {
    "manifest.webmanifest": "application/manifest+json",
    "sw.js": "text/javascript",
    "offline.html": "text/html",
    "icon-192.png": "image/png",
    "icon-512.png": "image/png",
    "icon-maskable.png": "image/png",
    "apple-touch-icon.png": "image/png",
}
"""Files of the installed page, which have fixed names."""
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
    files: list[BaseRoute] = [Route(f"/{name}", _file(static / name), methods=["GET"]) for name in _FILES]
    assets = StaticFiles(directory=static / "assets", check_dir=False)
    return [*pages, *files, Mount("/assets", assets)]


def _file(path: Path) -> Callable[[Request], Awaitable[Response]]:
    async def send(_request: Request) -> Response:
        return FileResponse(path, media_type=_FILES[path.name], headers={"cache-control": "no-cache"})

    return send
