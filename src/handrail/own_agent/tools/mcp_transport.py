"""MCP server configurations and their transports: a program's standard streams, or HTTP.

The servers are those that the host names, plus our own if the host did not name it.
"""

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from ipaddress import ip_address
from typing import Any, TextIO, cast
from urllib.parse import urlsplit

import httpx2
from mcp.client import Transport
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from handrail.lazy_dataclass import dataclass
from handrail.own_agent.acp_requests import HostServer, HttpServer, StdioServer
from handrail.own_agent.models.http_stream import load_certificates
from handrail.paths import Places, own_python

OURS = "handrail"
"""The name of our own server, whose gate asks for approval."""

_INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER", "XDG_RUNTIME_DIR")
"""Environment variables that every server gets; anything else, above all keys, must be given explicitly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stdio:
    """A server started as a program, connected over its standard streams."""

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """A server reached by URL."""

    name: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


ServerConfig = Stdio | Http


def select_servers(given: Sequence[HostServer], cwd: str) -> tuple[list[ServerConfig], list[str]]:
    """The servers to connect to, our own first, and a sentence for each that is not supported."""
    servers = [each for each in map(_config, given) if each is not None]
    if not any(each.name == OURS for each in servers):
        servers.append(own_server(cwd))
    notes = [_unsupported_sentence(each.name) for each in given if _config(each) is None]
    return sorted(servers, key=lambda each: each.name != OURS), notes


def own_server(cwd: str) -> Stdio:
    """The configuration of our own server."""
    command = (*own_python(), "-m", "handrail", "mcp", "--workspace", cwd)
    return Stdio(name=OURS, command=command, env=Places.find().environment)


def server_environment(server: Stdio) -> dict[str, str]:
    """The environment of the server's process."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in _INHERITED or (name.startswith("LC_") and name.isupper())
    }
    return {**inherited, **server.env}


def _config(given: HostServer) -> ServerConfig | None:
    match given:
        case StdioServer():
            env = {each.name: each.value for each in given.env}
            return Stdio(name=given.name, command=(given.command, *given.args), env=env)
        case HttpServer():
            headers = {each.name: each.value for each in given.headers}
            return Http(name=given.name, url=given.url, headers=headers)
        case _:
            return None


def _unsupported_sentence(name: str) -> str:
    return f"The MCP server “{name}” is left out: this agent speaks to servers on stdio and streamable HTTP alone."


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
