"""The guard: stands in front of every route and every socket, before any handler.

Owns which requests get through: by Host, Origin, Sec-Fetch-Site and bearer. It does not know what the routes
do; one under /api that it has no entry for is for people alone.

How much a request may carry.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from handrail.server.access import Access, Person

CSP = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types svelte-trusted-html dompurify"
)
_HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
SUBPROTOCOL = "handrail"
ENDING = "/api/down"
"""What a person may still do where nobody is taken for one."""
_BEARER = "bearer."

_CONTENT = ("/api/terminals/", "/api/undo/", "/api/threads/", "/api/operations/", "/api/images/")

Area = Literal["page", "open", "person", "content", "agent"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request does not get through."""

    code: int
    detail: str


class Guard:
    """An ASGI application around the real one."""

    def __init__(self, app: ASGIApp, access: Access, hosts: Iterable[str]) -> None:
        self._app = app
        self._access = access
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self._judge(scope)
        if refusal is None:
            await self._app(scope, receive, _with_headers(send, scope))
        elif scope["type"] == "websocket":
            await send(
                {"type": "websocket.close", "code": 4000 + refusal.code, "reason": refusal.detail[:120]}
            )
        else:
            response = JSONResponse({"detail": refusal.detail}, refusal.code, _challenge(refusal))
            await response(scope, receive, _with_headers(send, scope))

    def _judge(self, scope: Scope) -> Refusal | None:
        headers = Headers(scope=scope)
        area = area_of(scope["path"])
        return (
            self._foreign(headers)
            or self._crossing(scope, headers, area)
            or self._stranger(scope, headers, area)
        )

    def _foreign(self, headers: Headers) -> Refusal | None:
        match headers.getlist("host"):
            case [host] if host in self._hosts:
                return None
            case _:
                pass
        return Refusal(
            421, "This is not a name Handrail answers to; open it as http://127.0.0.1 with its port."
        )

    def _crossing(self, scope: Scope, headers: Headers, area: Area) -> Refusal | None:
        # The origin of this very host: on a port of our other name somebody else may be listening.
        if headers.getlist("origin") not in ([], [f"http://{headers['host']}"]):
            return Refusal(403, "Another site may not talk to Handrail.")
        sites = headers.getlist("sec-fetch-site")
        if all(site in ("same-origin", "none") for site in sites):
            return None
        if area == "page" and scope["type"] == "http" and _is_navigation(scope, headers):
            return None
        return Refusal(403, "Another site may not talk to Handrail.")

    def _stranger(self, scope: Scope, headers: Headers, area: Area) -> Refusal | None:
        """Who it is; remembered in the scope for the handlers."""
        if area == "page":
            return None if scope["type"] == "http" else Refusal(404, "There is no such socket.")
        bearer = _bearer(scope, headers)
        if area == "agent":
            return self._agent(scope, bearer)
        person = scope["handrail.person"] = self._access.person(bearer) if bearer else None
        return None if area == "open" else self._person(scope, person, area)

    def _person(self, scope: Scope, person: Person | None, area: Area) -> Refusal | None:
        if person is None:
            return Refusal(401, "Sign in first: run `handrail open` in a terminal.")
        looks = scope["type"] == "websocket" or scope["method"] in ("GET", "HEAD")
        if person.approves or (looks and area != "content"):
            return None
        if person.ends and scope["path"] == ENDING:
            return None
        return Refusal(403, self._access.sealed or "Only a person may do this: do it on the page.")

    def _agent(self, scope: Scope, bearer: str | None) -> Refusal | None:
        client = self._access.client(bearer) if bearer else None
        scope["handrail.client"] = client
        if client is None:
            return Refusal(
                401, "This needs a call credential: `handrail credential` makes one for a workspace."
            )
        return None


def area_of(path: str) -> Area:
    """What kind of place a path is. In /api, whatever is not named here belongs to people.

    They all may look, but not at what a terminal shows, a file holds or a conversation says: for that one must be taken
    for a person, since agents have to ask for it.
    """
    if path == "/mcp":
        return "agent"
    if path in ("/api/health", "/api/sign-in"):
        return "open"
    if path.startswith(_CONTENT) or path in ("/api/threads", "/api/search") or path.endswith("/proposal"):
        return "content"
    if path == "/api" or path.startswith("/api/"):
        return "person"
    return "page"


def _is_navigation(scope: Scope, headers: Headers) -> bool:
    return (
        scope["method"] in ("GET", "HEAD")
        and headers.getlist("sec-fetch-mode") == ["navigate"]
        and headers.getlist("sec-fetch-dest") == ["document"]
    )


def _bearer(scope: Scope, headers: Headers) -> str | None:
    """A header, or for sockets of a browser, which cannot set one, a subprotocol."""
    given = headers.getlist("authorization")
    if len(given) == 1 and given[0][:7].lower() == "bearer ":
        return given[0][7:].strip()
    offered: Iterable[str] = scope.get("subprotocols", ()) if scope["type"] == "websocket" else ()
    found = [name.removeprefix(_BEARER) for name in offered if name.startswith(_BEARER)]
    return found[0] if len(found) == 1 else None


def _challenge(refusal: Refusal) -> Mapping[str, str] | None:
    return {"www-authenticate": "Bearer"} if refusal.code == 401 else None


def _with_headers(send: Send, scope: Scope) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            if scope["path"].startswith("/api"):
                headers["cache-control"] = "no-store"
        await send(message)

    return wrapped


MOST_BYTES = 32 * 1024 * 1024
"""Far above any file our tools write, far below what would hurt."""
SIGN_IN_BYTES = 4096
"""Anybody on this machine may send one: a code is short."""


class Bounded:
    """An ASGI application around the real one, which hears no more than it should."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = SIGN_IN_BYTES if scope["path"] == "/api/sign-in" else MOST_BYTES
        if _announced(scope) > most:
            await _refuse(scope, receive, send, most)
        else:
            await _Body(self._app, most).serve(scope, receive, send)


class _Body:
    """One request's body, while it is counted."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most
        self._heard = 0
        self._answered = False

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def hear() -> Message:
            message = await receive()
            self._heard += len(message.get("body", b""))
            return message if self._heard <= self._most else {"type": "http.disconnect"}

        async def tell(message: Message) -> None:
            if self._heard <= self._most:
                self._answered = True
                await send(message)

        try:
            await self._app(scope, hear, tell)
        except Exception:
            if self._heard <= self._most:
                raise
        if self._heard > self._most and not self._answered:
            await _refuse(scope, receive, send, self._most)


def _announced(scope: Scope) -> int:
    told = Headers(scope=scope).get("content-length", "")
    return int(told) if told.isascii() and told.isdigit() else 0


async def _refuse(scope: Scope, receive: Receive, send: Send, most: int) -> None:
    detail = f"The request is longer than {most:,} bytes, which is more than anything here needs."
    headers = {"connection": "close"}  # the rest of it is not read
    await JSONResponse({"detail": detail}, 413, headers)(scope, receive, send)
