"""The routes of the application, and the area that each belongs to.

A route that only the application or only this table has fails the tests.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast

from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute, Mount
from starlette.types import Receive, Scope, Send

from handrail.server.api_app import build_api
from handrail.server.app import build_app
from handrail.server.context import ServerContext
from handrail.server.mcp.mcp_endpoints import McpEndpoints

Area = Literal["page", "open", "person", "content", "agent"]
EVERY_METHOD = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

WHOSE: dict[str, Area] = {
    "GET /": "page",
    "GET /a/{id}": "page",
    "GET /c/{id}": "page",
    "GET /calls": "page",
    "GET /rules": "page",
    "GET /servers": "page",
    "GET /settings": "page",
    "GET /terminals": "page",
    "GET /threads": "page",
    "GET /t/{id}": "page",
    "GET /x/{id}": "page",
    "GET /gallery": "page",
    "GET /assets/{path}": "page",
    **{f"GET /icon-{name}.png": "page" for name in ("192", "512", "maskable")},
    **{
        f"GET /{name}": "page"
        for name in ("apple-touch-icon.png", "manifest.webmanifest", "offline.html", "sw.js")
    },
    "GET /api/push": "person",
    "PUT /api/push": "person",
    "DELETE /api/push": "person",
    "GET /api/health": "open",
    "POST /api/sign-in": "open",
    "POST /api/sign-in/challenge": "open",
    "POST /api/sign-in/key": "open",
    "GET /api/sign-ins": "person",
    "PATCH /api/sign-ins/{id}": "person",
    "DELETE /api/sign-ins/{id}": "person",
    "GET /api/devices": "person",
    "POST /api/devices/listener": "person",
    "DELETE /api/devices/listener": "person",
    "GET /api/editors": "person",
    "POST /api/editors/{id}/pair": "person",
    "POST /api/editors/{id}/refuse": "person",
    "GET /api/servers": "person",
    "POST /api/servers": "person",
    "DELETE /api/servers/{name}": "person",
    "GET /api/servers/{name}/logs": "content",
    "POST /api/servers/{name}/restart": "person",
    "POST /api/servers/{name}/test": "person",
    "POST /api/servers/{name}/tools/{tool}/accept": "person",
    "GET /api/openapi.json": "person",
    "GET /api/state": "person",
    "GET /api/events": "person",
    "POST /api/down": "person",
    "POST /api/stop": "person",
    "GET /api/keys": "person",
    "PUT /api/keys/{provider}": "person",
    "DELETE /api/keys/{provider}": "person",
    "GET /api/secrets": "person",
    "PUT /api/secrets/{name}": "person",
    "DELETE /api/secrets/{name}": "person",
    "GET /api/logins": "person",
    "POST /api/logins/{server}": "person",
    "DELETE /api/logins/{server}": "person",
    "PUT /api/pause": "person",
    "DELETE /api/pause": "person",
    "GET /api/settings": "person",
    "POST /api/clients/demo": "person",
    "GET /api/clients/known": "person",
    "PATCH /api/settings": "person",
    "POST /api/settings/agents": "person",
    "DELETE /api/settings/agents/{name}": "person",
    "GET /api/calls": "person",
    "GET /api/calls/table": "person",
    "GET /api/calls/counts": "person",
    "GET /api/calls/export": "person",
    "GET /api/calls/{id}": "person",
    "POST /api/calls/{id}/cancel": "person",
    "POST /api/calls/{id}/complete": "person",
    "GET /api/operations": "person",
    "GET /api/operations/{id}": "content",
    "POST /api/operations/{id}/cancel": "content",
    "POST /api/operations/{id}/activities/{activity}/cancel": "content",
    "GET /api/approvals": "person",
    "GET /api/approvals/{id}": "person",
    "POST /api/approvals/{id}/answer": "person",
    "POST /api/approvals/{id}/edit": "person",
    "GET /api/approvals/{id}/proposal": "content",
    "POST /api/approvals/allow-low": "person",
    "GET /api/rules": "person",
    "POST /api/rules": "person",
    "DELETE /api/rules/{id}": "person",
    "PATCH /api/rules/{id}": "person",
    "POST /api/rules/{id}/move": "person",
    "POST /api/rules/test": "person",
    "POST /api/rules/propose": "person",
    "GET /api/folders": "person",
    "POST /api/folders/trust": "person",
    "POST /api/folders/distrust": "person",
    "GET /api/policy": "person",
    "POST /api/policy/accept": "person",
    "POST /api/policy/expect": "person",
    "GET /api/undo/{id}": "content",
    "POST /api/undo/{id}": "content",
    "GET /api/terminals": "person",
    "POST /api/terminals": "person",
    "GET /api/terminals/{id}": "content",
    "GET /api/terminals/{id}/output": "content",
    "GET /api/terminals/{id}/search": "content",
    "POST /api/terminals/{id}/input": "content",
    "POST /api/terminals/{id}/size": "content",
    "POST /api/terminals/{id}/take": "content",
    "POST /api/terminals/{id}/release": "content",
    "POST /api/terminals/{id}/close": "content",
    "POST /api/terminals/close": "content",
    "GET /api/threads": "content",
    "POST /api/threads": "content",
    "POST /api/threads/default": "content",
    "POST /api/threads/import": "content",
    "GET /api/threads/{id}": "content",
    "PATCH /api/threads/{id}": "content",
    "DELETE /api/threads/{id}": "content",
    "GET /api/threads/{id}/messages": "content",
    "GET /api/threads/{id}/files": "content",
    "GET /api/threads/{id}/export": "content",
    "POST /api/threads/{id}/fork": "content",
    "POST /api/threads/{id}/prompt": "content",
    "POST /api/threads/{id}/setting": "content",
    "POST /api/threads/{id}/queue/{message}/send": "content",
    "POST /api/threads/{id}/queue/{message}/steer": "content",
    "DELETE /api/threads/{id}/queue/{message}": "content",
    "GET /api/search": "content",
    "GET /api/images/{sha}": "content",
    "GET /api/transcripts": "content",
    "GET /api/transcripts/{client}/{session}": "content",
    "GET /api/transcripts/{client}/{session}/export": "content",
    "GET /api/clients": "person",
    "GET /api/agents": "person",
    "POST /api/agents/{name}/login": "person",
    "GET /api/agents/{name}/sessions": "content",
    "POST /api/agents/{name}/sessions": "content",
    "POST /api/code": "person",
    "GET /api/credentials": "person",
    "POST /api/credentials": "person",
    "DELETE /api/credentials/{id}": "person",
    "WEBSOCKET /api/live": "person",
    "WEBSOCKET /api/terminals/{id}/attach": "content",
    "WEBSOCKET /api/threads/{id}/live": "content",
    **{f"{method} /mcp": "agent" for method in EVERY_METHOD},
}


@dataclass(frozen=True, slots=True)
class Target:
    """One method of one route."""

    method: str
    template: str

    @property
    def path(self) -> str:
        return re.sub(r"\{\w+\}", "x1", self.template.replace("{path}", "index.js"))

    @property
    def area(self) -> Area:
        return WHOSE[str(self)]

    @property
    def is_socket(self) -> bool:
        return self.method == "WEBSOCKET"

    def __str__(self) -> str:
        return f"{self.method} {self.template}"


def targets() -> list[Target]:
    """Every route and socket. HEAD is left out where GET exists."""
    app = build_app(build_api(cast("ServerContext", None)), cast("McpEndpoints", _Unreached()))
    return sorted(set(_walk(app.routes)), key=str)


class _Unreached:
    """In the place of MCP over HTTP: the table needs only its path."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError


def _walk(routes: list[BaseRoute]) -> Iterator[Target]:
    for context in iter_route_contexts(routes):
        route = context.original_route
        if isinstance(route, Mount):
            inside: list[BaseRoute] = getattr(route.app, "routes", [])
            yield from _walk(inside) if inside else [Target("GET", f"{route.path}/{{path}}")]
        else:
            yield from _of(cast("Any", context), route)


def _of(context: Any, route: BaseRoute) -> Iterator[Target]:
    path: str = context.path
    if "WebSocket" in type(route).__name__:
        yield Target("WEBSOCKET", path)
    else:
        methods: set[str] | None = context.methods
        for method in methods or EVERY_METHOD:
            if method != "HEAD" or methods is None:
                yield Target(method, path)
