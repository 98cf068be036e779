"""How much a request may carry.

Owns the bounds, by path, and the answer to whoever passes them. A body is counted as it comes, so that no more of it
is ever held; what it means is not known here.
"""

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
