"""The uvicorn server, for loopback and for paired devices. The keeper holds the listening ports."""

import asyncio
import contextlib
import ssl
from collections.abc import Generator
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from handrail.server.connection_limit import ConnectionBudget, HttpConnections
from handrail.server.memory import tune_gc

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
        if tls is not None:
            self.config.load()
            self.config.ssl = tls
        tune_gc()

    def stop(self) -> None:
        """Accept nothing more, close every connection, and return from `serve`."""
        self._stopping.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def main_loop(self) -> None:
        """Sleep until cancelled or stopped. Uvicorn's own loop wakes ten times a second, to keep the date header current."""
        self.server_state.default_headers = self.config.encoded_headers
        await self._stopping.wait()


def _build_websocket(**options: Any) -> asyncio.Protocol:
    """The protocol of a WebSocket. Its library is imported with the first one: that would delay the start."""
    from uvicorn.protocols.websockets.auto import AutoWebSocketsProtocol  # noqa: PLC0415 - slow import

    assert AutoWebSocketsProtocol is not None, "websockets is a dependency"
    return AutoWebSocketsProtocol(**options)
