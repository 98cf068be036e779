"""Transports of the MCP SDK's client: a program's standard streams, or HTTP. Slow to import."""

import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any, TextIO, cast
from urllib.parse import urlsplit

import httpx2
from mcp.client import Transport
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from handrail.own_agent.models.http_stream import load_certificates
from handrail.own_agent.tools.server_config import Http, ServerConfig, Stdio, server_environment

MOST_EVENT = 32 * 1024 * 1024
"""Bytes of one HTTP message, enough for an image or a very long output; bounds the memory."""
_TIMEOUT = httpx2.Timeout(10, read=600)
"""Seconds. A tool may be silent for long, but a dead connection must be noticed eventually."""
_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=4)
"""Calls run concurrently, each with its own connection; a few stay open for reuse."""


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
