"""MCP sessions through the SDK's client, for the servers of the host, and their transports: a program's standard streams, or
HTTP. Slow to import."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from ipaddress import ip_address
from typing import Any, TextIO, cast
from urllib.parse import urlsplit

import anyio
import httpx2
import mcp_types as types
from anyio.abc import TaskStatus
from mcp.client import Transport
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from pydantic import TypeAdapter, ValidationError

from handrail import __version__
from handrail.own_agent.models.http_stream import load_certificates
from handrail.own_agent.tools.agent_tool import Json
from handrail.own_agent.tools.mcp_session import (
    MOST_TOOLS,
    ConnectionClosed,
    InvalidAnswer,
    Progress,
    ServerError,
    SessionEvents,
    ToolSpec,
)
from handrail.own_agent.tools.server_config import Http, ServerConfig, Stdio, server_environment

MOST_EVENT = 32 * 1024 * 1024
"""Bytes of one HTTP message, enough for an image or a very long output; bounds the memory."""
_TIMEOUT = httpx2.Timeout(10, read=600)
"""Seconds. A tool may be silent for long, but a dead connection must be noticed eventually."""
_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=4)
"""Calls run concurrently, each with its own connection; a few stay open for reuse."""
_CLIENT_INFO = types.Implementation(name="handrail-agent", title="Handrail's agent", version=__version__)
_CONNECTION_LOST = ("Connection closed", "SSE stream ")
"""How the SDK's messages for a lost connection begin; servers use the same error code for their own errors."""
_SESSION_LOST = ("session terminated", "session not found")
"""Errors of an HTTP server that was restarted since the handshake: the request was not executed."""
Answer = types.CallToolResult | types.InputRequiredResult
_ANSWER: TypeAdapter[Answer] = TypeAdapter(Answer)


class SdkSession:
    """A session of the SDK."""

    def __init__(self, session: ClientSession, *, http: bool) -> None:
        self._session, self._http = session, http

    @property
    def instructions(self) -> str:
        return self._session.instructions or ""

    async def shake_hands(self) -> None:
        """Perform the handshake.

        HTTP servers get `discover` first: it keeps no session state that a restart could lose. Programs get
        `initialize` first, since old ones may answer nothing else.
        """
        with _translated():
            if self._http:
                try:
                    await self._session.discover()
                except (MCPError, RuntimeError, ValueError):
                    await self._session.initialize()
            else:
                try:
                    await self._session.initialize()
                except MCPError as refused:
                    if refused.code != types.UNSUPPORTED_PROTOCOL_VERSION:
                        raise
                    await self._session.discover()

    async def list_tools(self) -> list[ToolSpec]:
        capabilities = self._session.server_capabilities
        if capabilities is None or capabilities.tools is None:
            return []
        tools: list[ToolSpec] = []
        cursor: str | None = None
        while len(tools) < MOST_TOOLS:
            with _translated():
                page = await self._session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            tools += map(_spec, page.tools)
            cursor = page.next_cursor
            if not cursor or not page.tools:
                break
        return tools[:MOST_TOOLS]

    async def call(self, tool: str, input: Json, progress: Progress) -> Json:
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=input))
        with _translated():
            answer = await self._session.send_request(request, _ANSWER, progress_callback=progress)
        return answer.model_dump(mode="json", by_alias=True, exclude_none=True)


def _spec(tool: types.Tool) -> ToolSpec:
    return ToolSpec(
        name=tool.name, title=tool.title, description=tool.description, input_schema=tool.input_schema
    )


@contextmanager
def _translated() -> Generator[None]:
    """Raise the SDK's errors as those of `mcp_session`."""
    try:
        yield
    except MCPError as problem:
        words = problem.message
        if problem.code == types.CONNECTION_CLOSED and words.startswith(_CONNECTION_LOST):
            raise ConnectionClosed from None
        if words.lower() in _SESSION_LOST:
            raise ConnectionClosed(unheard=True) from None
        raise ServerError(words) from None
    except ValidationError as problem:
        raise InvalidAnswer(str(problem)) from None


@asynccontextmanager
async def open_sdk_session(
    server: ServerConfig, cwd: str, events: SessionEvents
) -> AsyncGenerator[SdkSession]:
    """Connect to a server. Raises whatever the SDK and the transport raise."""

    async def receive(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            events.tools_changed()

    async with (
        open_transport(server, cwd, events.http_status) as (read, write),
        ClientSession(
            dispatcher=_Dispatcher(read, write, events), client_info=_CLIENT_INFO, message_handler=receive
        ) as session,
    ):
        yield SdkSession(session, http=isinstance(server, Http))


class _Dispatcher(JSONRPCDispatcher[TransportContext]):
    """JSON-RPC dispatcher that reports when the connection ends."""

    def __init__(self, read: Any, write: Any, events: SessionEvents) -> None:
        super().__init__(read, write)
        self._events = events

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        try:
            await super().run(on_request, on_notify, on_notify_intercept, task_status=task_status)
        finally:
            self._events.ended()


def open_transport(server: ServerConfig, cwd: str, answered: Callable[[int], None]) -> Transport:
    """Open the transport of a server. Enter and leave it in one task. `answered` gets each HTTP status."""
    match server:
        case Stdio():
            return _program(server, cwd)
        case Http():
            return _address(server, answered)


def _program(server: Stdio, cwd: str) -> Transport:
    name, *arguments = server.command
    parameters = StdioServerParameters(
        command=name,
        args=arguments,
        env=server_environment(server),
        cwd=cwd,
        encoding_error_handler="replace",
    )
    return stdio_client(parameters, errlog=_stderr())


def _stderr() -> TextIO:
    """Standard error for the servers' programs: ours."""
    return sys.__stderr__ or cast("TextIO", subprocess.DEVNULL)


@asynccontextmanager
async def _address(server: Http, answered: Callable[[int], None]) -> AsyncGenerator[Any]:
    async def check_response(response: httpx2.Response) -> None:
        answered(response.status_code)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _Bounded(cast("httpx2.AsyncByteStream", response.stream))

    async with (
        httpx2.AsyncClient(
            headers=dict(server.headers),
            verify=load_certificates(),
            timeout=_TIMEOUT,
            limits=_LIMITS,
            # No proxy may see local traffic or its credentials.
            trust_env=not is_local(server.url),
            event_hooks={"response": [check_response]},
        ) as http,
        streamable_http_client(server.url, http_client=http, max_sse_event_size=MOST_EVENT) as streams,
    ):
        yield streams


class _Bounded(httpx2.AsyncByteStream):
    """Limits the size of a response body. Event streams have a limit per event instead."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > MOST_EVENT:
                raise httpx2.StreamError(f"it is longer than {MOST_EVENT >> 20} MiB")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


def is_local(url: str) -> bool:
    """Whether the URL's host is this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
