"""MCP over streamable HTTP: the SDK's transport, behind the guard.

Detects that a client closed its response stream, which cancels the request.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Message, Receive, Scope, Send

from handrail.server.access import Client
from handrail.server.mcp.mcp_server import Callers, ConnectionHooks, Context, McpServers, client_name
from handrail.store.values import Caller

_GONE = "handrail.gone"


class StreamableHttp:
    """The ASGI application at /mcp."""

    def __init__(self, mcp: McpServers, callers: Callers) -> None:
        self._callers = callers
        self._server: Server[Any] = mcp.server(ConnectionHooks(caller=self._caller, gone=_gone))
        # The guard has already checked Host and Origin, more strictly than the SDK does.
        lenient = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._sessions = StreamableHTTPSessionManager(self._server, security_settings=lenient)

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        async with self._sessions.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = anyio.Event()
        scope[_GONE] = gone

        async def receive_watched() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                gone.set()
            return message

        await self._sessions.handle_request(scope, receive_watched, send)

    def _caller(self, context: Context) -> Caller:
        assert context.request is not None
        client: Client = context.request.scope["handrail.client"]
        return self._callers.caller_of(client, "http", client_name(context))


def _gone(context: Context) -> anyio.Event | None:
    return context.request.scope.get(_GONE) if context.request is not None else None
