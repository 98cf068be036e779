"""The page's files, as the build left them.

Owns which paths are the page. It does not know what the page shows.
"""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

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
