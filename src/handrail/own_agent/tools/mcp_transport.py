"""The way to an MCP server: a program's standard streams, or HTTP.

Owns processes and sockets of servers, and the bounds of both. It does not know what is said on them (link.py).

The MCP servers that a session is to have: those its host names, and our own door where it is not among
them.
"""

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, TextIO, cast
from urllib.parse import urlsplit

import httpx2
from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer
from mcp.client import Transport
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from handrail.paths import Places

OURS = "handrail"
"""The name of our own server, whose gate asks for itself."""
Given = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio
"""As `session/new` has them."""

_INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER", "XDG_RUNTIME_DIR")
"""What every program may know; anything else, keys above all, has to be given to it by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stdio:
    """A server that is a program, spoken to on its standard streams."""

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """A server at an address."""

    name: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


Wanted = Stdio | Http


def wanted(given: Sequence[Given], cwd: str) -> tuple[list[Wanted], list[str]]:
    """What to connect to, our own first; and a sentence for each that cannot be."""
    found = [each for each in map(_read, given) if each is not None]
    if not any(each.name == OURS for each in found):
        found.append(own_door(cwd))
    notes = [_unfit(each.name) for each in given if _read(each) is None]
    return sorted(found, key=lambda each: each.name != OURS), notes


def own_door(cwd: str) -> Stdio:
    """Our own server for a host that did not name it."""
    command = (sys.executable, "-P", "-m", "handrail", "mcp", "--workspace", cwd)
    return Stdio(name=OURS, command=command, env=Places.find().environment)


def environment_of(server: Stdio) -> dict[str, str]:
    """All that its process sees."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in _INHERITED or (name.startswith("LC_") and name.isupper())
    }
    return {**inherited, **server.env}


def _read(given: Given) -> Wanted | None:
    match given:
        case McpServerStdio():
            env = {each.name: each.value for each in given.env}
            return Stdio(name=given.name, command=(given.command, *given.args), env=env)
        case HttpMcpServer():
            headers = {each.name: each.value for each in given.headers}
            return Http(name=given.name, url=given.url, headers=headers)
        case _:
            return None


def _unfit(name: str) -> str:
    return f"The MCP server “{name}” is left out: this agent speaks to servers on stdio and streamable HTTP alone."


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
