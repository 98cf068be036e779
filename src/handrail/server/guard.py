"""ASGI middleware for every route and socket: checks Host, Origin, Sec-Fetch-Site and bearer, and limits body size.

A path under /api without an entry in `area_of` requires a person.
"""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Literal

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from handrail.lazy_dataclass import dataclass
from handrail.server.access import Access, Person

CSP = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; manifest-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types svelte-trusted-html dompurify handrail-worker"
)
_HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
SUBPROTOCOL = "handrail"
SIGN_IN_PATHS = ("/api/sign-in", "/api/sign-in/challenge", "/api/sign-in/key")
"""Open to a page that is not signed in yet."""
DOWN_PATH = "/api/down"
"""The only action open to a command line without `approves`."""
SIGNED_OUT = 4401
"""WebSocket close code for a bearer that is not, or no longer, valid."""
CLOSE_SECONDS = 1.0
"""Time for the close frame. Bounds the wait for a client that does not read."""
_BEARER = "bearer."

_CONTENT = (
    *("/api/terminals/", "/api/undo/", "/api/threads/", "/api/operations/", "/api/images/"),
    "/api/transcripts/",
)
_CONTENT_LISTS = ("/api/threads", "/api/search", "/api/transcripts")
_CONTENT_ENDS = ("/proposal", "/sessions", "/logs")

Area = Literal["page", "open", "person", "content", "agent"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is rejected: HTTP status and detail."""

    code: int
    detail: str


class Guard:
    """ASGI middleware that authenticates requests and adds security headers."""

    def __init__(self, app: ASGIApp, access: Access, hosts: Iterable[str], scheme: str = "http") -> None:
        """The first of `hosts` is the page's only name. A page opened under another one is redirected to it."""
        self._app = app
        self._access = access
        self._scheme = scheme
        self._host, *aliases = hosts
        self._aliases = frozenset(aliases)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self._check(scope)
        if isinstance(refusal, RedirectResponse):
            await refusal(scope, receive, _with_headers(send, scope))
        elif refusal is None and scope["type"] == "websocket":
            await self._serve_socket(scope, receive, send)
        elif refusal is None:
            await self._app(scope, receive, _with_headers(send, scope))
        elif scope["type"] == "websocket":
            await send(
                {"type": "websocket.close", "code": 4000 + refusal.code, "reason": refusal.detail[:120]}
            )
        else:
            response = JSONResponse({"detail": refusal.detail}, refusal.code, _challenge(refusal))
            await response(scope, receive, _with_headers(send, scope))

    async def _serve_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a WebSocket until it ends, or until its bearer is revoked; then close it."""
        revoked = self._access.revocation(_bearer(scope, Headers(scope=scope)) or "")
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_when, revoked, group.cancel_scope)
            await self._app(scope, receive, send)
            group.cancel_scope.cancel()
        if revoked.is_set():
            with anyio.move_on_after(CLOSE_SECONDS), contextlib.suppress(RuntimeError, OSError):
                await send(
                    {"type": "websocket.close", "code": SIGNED_OUT, "reason": "This sign-in has ended."}
                )

    def _check(self, scope: Scope) -> Refusal | RedirectResponse | None:
        headers = Headers(scope=scope)
        area = area_of(scope["path"])
        return (
            self._check_host(scope, headers, area)
            or self._check_origin(scope, headers, area)
            or self._check_bearer(scope, headers, area)
        )

    def _check_host(self, scope: Scope, headers: Headers, area: Area) -> Refusal | RedirectResponse | None:
        """Accept our own name only. An alias may lead to another program, so no page signs in under it."""
        hosts = headers.getlist("host")
        if hosts == [self._host]:
            return None
        if len(hosts) != 1 or hosts[0] not in self._aliases:
            return Refusal(421, self._wrong_name)
        if area == "agent":
            return None
        if area == "page" and scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            return self._redirect(scope)
        return Refusal(421, f"Nobody is signed in under this name; use http://{self._host}.")

    @property
    def _wrong_name(self) -> str:
        return "This is not a name Handrail answers to; open it as http://127.0.0.1 with its port."

    def _redirect(self, scope: Scope) -> RedirectResponse:
        path, query = scope["path"], scope["query_string"].decode("latin-1")
        target = f"http://{self._host}/{path.removeprefix('/')}{f'?{query}' if query else ''}"
        return RedirectResponse(target, 307, {"cache-control": "no-store"})

    def _check_origin(self, scope: Scope, headers: Headers, area: Area) -> Refusal | None:
        # Exactly the requested host: on `localhost` and 127.0.0.1 different programs may listen on one port.
        if headers.getlist("origin") not in ([], [f"{self._scheme}://{headers['host']}"]):
            return Refusal(403, "Another site may not talk to Handrail.")
        sites = headers.getlist("sec-fetch-site")
        if all(site in ("same-origin", "none") for site in sites):
            return None
        if area == "page" and scope["type"] == "http" and _is_navigation(scope, headers):
            return None
        return Refusal(403, "Another site may not talk to Handrail.")

    def _check_bearer(self, scope: Scope, headers: Headers, area: Area) -> Refusal | None:
        """Authenticate, and store the person or client in the scope for the handlers."""
        if area == "page":
            return None if scope["type"] == "http" else Refusal(404, "There is no such socket.")
        bearer = _bearer(scope, headers)
        if area == "agent":
            return self._check_client(scope, bearer)
        person = scope["handrail.person"] = self._find_person(bearer) if bearer else None
        return None if area == "open" else self._check_person(scope, person, area)

    def _find_person(self, bearer: str) -> Person | None:
        """The person with this bearer. That of a device is good on the listener for devices only."""
        person = self._access.person(bearer)
        return None if person is None or person.device else person

    def _check_person(self, scope: Scope, person: Person | None, area: Area) -> Refusal | None:
        if person is None:
            return Refusal(401, self._sign_in_first)
        reads = scope["type"] == "websocket" or scope["method"] in ("GET", "HEAD")
        if person.approves or (reads and area != "content"):
            return None
        if person.ends and scope["path"] == DOWN_PATH:
            return None
        return Refusal(403, self._access.sealed or "Only a person may do this: do it on the page.")

    @property
    def _sign_in_first(self) -> str:
        return "Sign in first: run `handrail open` in a terminal."

    def _check_client(self, scope: Scope, bearer: str | None) -> Refusal | None:
        client = self._access.client(bearer) if bearer else None
        scope["handrail.client"] = client
        if client is None:
            return Refusal(
                401, "This needs a call credential: `handrail credential` makes one for a workspace."
            )
        return None


async def _cancel_when(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


def area_of(path: str) -> Area:
    """Who may use a path. Everything in /api that is not listed here requires a person.

    "person" may be read without `approves`. "content" (terminal output, file contents, threads) may not: an agent
    that runs the command line must not read content without approval.
    """
    if path == "/mcp":
        return "agent"
    if path in ("/api/health", *SIGN_IN_PATHS):
        return "open"
    if path.startswith(_CONTENT) or path in _CONTENT_LISTS or path.endswith(_CONTENT_ENDS):
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
    """The bearer from the Authorization header, or from a WebSocket subprotocol: browsers cannot set headers there."""
    values = headers.getlist("authorization")
    if len(values) == 1 and values[0][:7].lower() == "bearer ":
        return values[0][7:].strip()
    offered: Iterable[str] = scope.get("subprotocols", ()) if scope["type"] == "websocket" else ()
    bearers = [name.removeprefix(_BEARER) for name in offered if name.startswith(_BEARER)]
    return bearers[0] if len(bearers) == 1 else None


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
"""Longest request body. Bounds memory; far above any file the tools write."""
SIGN_IN_BYTES = 4096
"""Longest body of a sign-in, which needs no credential. A code is short."""


class BodyLimit:
    """ASGI middleware that limits the size of request bodies."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = SIGN_IN_BYTES if scope["path"] in SIGN_IN_PATHS else MOST_BYTES
        if _content_length(scope) > most:
            await _send_too_large(scope, receive, send, most)
        else:
            await _Body(self._app, most).serve(scope, receive, send)


class _Body:
    """Counts the bytes of one request's body, and cuts it off at the limit."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most
        self._received = 0
        self._answered = False

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def receive_counted() -> Message:
            message = await receive()
            self._received += len(message.get("body", b""))
            return message if self._received <= self._most else {"type": "http.disconnect"}

        async def send_within_limit(message: Message) -> None:
            if self._received <= self._most:
                self._answered = True
                await send(message)

        try:
            await self._app(scope, receive_counted, send_within_limit)
        except Exception:
            if self._received <= self._most:
                raise
        if self._received > self._most and not self._answered:
            await _send_too_large(scope, receive, send, self._most)


def _content_length(scope: Scope) -> int:
    length = Headers(scope=scope).get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else 0


async def _send_too_large(scope: Scope, receive: Receive, send: Send, most: int) -> None:
    detail = f"The request is longer than {most:,} bytes, which is more than anything here needs."
    headers = {"connection": "close"}  # the rest of the body is not read
    await JSONResponse({"detail": detail}, 413, headers)(scope, receive, send)
