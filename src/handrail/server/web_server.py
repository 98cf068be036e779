"""The uvicorn server, for loopback and for paired devices. The keeper holds the listening ports."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Generator
from typing import Any, cast

import anyio
import uvicorn
from anyio.abc import TaskGroup
from starlette.types import ASGIApp

from handrail.server.connection_limit import ConnectionBudget, HttpConnections
from handrail.server.memory import tune_gc

HANDSHAKES_MAX = 32
HANDSHAKE_SECONDS = 10.0
"""TLS handshakes in progress, and the time for one. Bounds the descriptors that clients take before they are anybody."""
ACCEPT_SECONDS = 0.05
"""Pause when no connection can be accepted."""
WS_BYTES = 1024 * 1024
"""Longest WebSocket frame a client may send. Bounds memory; a paste into a terminal is far smaller."""


class WebServer(uvicorn.Server):
    """Uvicorn without signal handlers: the daemon handles signals and exit."""

    def __init__(self, app: ASGIApp, budget: ConnectionBudget, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=cast("type[asyncio.Protocol]", HttpConnections(budget.http).protocol),
                ws=cast("type[asyncio.Protocol]", _build_websocket),
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
        self._stopping = asyncio.Event()
        self._tls = tls
        self._tls_listeners: list[socket.socket] = []
        self._handshakes: dict[anyio.CancelScope, None] = {}
        tune_gc()

    def stop(self) -> None:
        """Accept nothing more, close every connection, and return from `serve`."""
        self._stopping.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections. Those with TLS are accepted by `main_loop`: uvicorn does not bound handshakes."""
        self._tls_listeners = [] if self._tls is None else list(sockets or ())
        await super().startup(sockets if self._tls is None else [])

    async def main_loop(self) -> None:
        """Sleep until cancelled or stopped. Uvicorn's own loop wakes ten times a second, to keep the date header current."""
        self.server_state.default_headers = self.config.encoded_headers
        async with anyio.create_task_group() as group:
            for listener in self._tls_listeners:
                group.start_soon(self._accept, listener, group)
            await self._stopping.wait()
            group.cancel_scope.cancel()

    async def _accept(self, listener: socket.socket, group: TaskGroup) -> None:
        """Accept TLS connections. Too many that have not shaken hands: the oldest makes room."""
        listener.setblocking(False)
        while True:
            await anyio.wait_readable(listener)
            try:
                connection, _ = listener.accept()
            except OSError:  # it has left, or no descriptor is free
                await anyio.sleep(ACCEPT_SECONDS)
                continue
            scope = anyio.CancelScope(deadline=anyio.current_time() + HANDSHAKE_SECONDS)
            self._handshakes[scope] = None
            if len(self._handshakes) > HANDSHAKES_MAX:
                next(iter(self._handshakes)).cancel()
            group.start_soon(self._shake_hands, connection, scope)

    async def _shake_hands(self, connection: socket.socket, scope: anyio.CancelScope) -> None:
        with scope, contextlib.suppress(OSError):
            await asyncio.get_running_loop().connect_accepted_socket(
                self._build_http, connection, ssl=self._tls, ssl_handshake_timeout=HANDSHAKE_SECONDS
            )
        del self._handshakes[scope]

    def _build_http(self) -> asyncio.Protocol:
        build = cast("Callable[..., asyncio.Protocol]", self.config.http_protocol_class)
        return build(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)


def _build_websocket(**options: Any) -> asyncio.Protocol:
    """The protocol of a WebSocket. Its library is imported with the first one: that would delay the start."""
    from uvicorn.protocols.websockets.auto import AutoWebSocketsProtocol  # noqa: PLC0415 - slow import

    assert AutoWebSocketsProtocol is not None, "websockets is a dependency"
    return AutoWebSocketsProtocol(**options)
