"""The way to an MCP server: a program's standard streams, or HTTP.

Owns processes and sockets of servers, and the bounds of both. It does not know what is said on them (link.py).
"""

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

from handrail.agents.builtin.tools.wanted import Http, Stdio, Wanted, environment_of

MOST_EVENT = 32 * 1024 * 1024
"""Bytes of one message over HTTP: an image, or a very long output."""
_TIMEOUT = httpx2.Timeout(10, read=600)
"""Seconds. Reading: a tool may say nothing for long, but a line that is dead must be noticed some day."""
_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=4)
"""Calls run concurrently, each with its own request; few are kept for later."""


def transport(server: Wanted, cwd: str, answered: Callable[[int], None]) -> Transport:
    """The way to a server, to be entered and left in one task; `answered` hears each status of HTTP."""
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
        env=environment_of(server),
        cwd=cwd,
        encoding_error_handler="replace",
    )
    return stdio_client(parameters, errlog=_complaints())


def _complaints() -> TextIO:
    """Where servers' programs may complain: where we do ourselves."""
    return sys.__stderr__ or cast("TextIO", subprocess.DEVNULL)


@asynccontextmanager
async def _address(server: Http, answered: Callable[[int], None]) -> AsyncGenerator[Any]:
    async def heard(response: httpx2.Response) -> None:
        answered(response.status_code)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _Bounded(cast("httpx2.AsyncByteStream", response.stream))

    async with (
        httpx2.AsyncClient(
            headers=dict(server.headers),
            timeout=_TIMEOUT,
            limits=_LIMITS,
            # No proxy is to see what is said to this machine, nor the credentials it is said with.
            trust_env=not is_local(server.url),
            event_hooks={"response": [heard]},
        ) as http,
        streamable_http_client(server.url, http_client=http, max_sse_event_size=MOST_EVENT) as streams,
    ):
        yield streams


class _Bounded(httpx2.AsyncByteStream):
    """One whole answer, given up where it has no end in sight; streams of events have a bound for each."""

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
    """Whether it names this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
