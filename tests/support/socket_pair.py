"""Both ends of a connection on a unix socket: the daemon's end as lines, the peer's end as bytes."""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import SocketStream, UNIXSocketStream

from handrail.server.mcp._lines import Lines

BOUND = 20.0
"""Seconds for anything a test waits for."""


@dataclass(frozen=True, slots=True)
class SocketPair:
    """A peer that connected, and our lines to it."""

    lines: Lines
    peer: SocketStream


@asynccontextmanager
async def connected_pair(folder: Path) -> AsyncGenerator[SocketPair]:
    """A peer connected to a socket in `folder`; everything within is under one bound."""
    path = folder / "s"
    with socket.socket(socket.AF_UNIX) as listener, anyio.fail_after(BOUND):
        listener.bind(str(path))
        listener.listen()
        async with await anyio.connect_unix(path) as peer:
            accepted, _ = listener.accept()
            async with await UNIXSocketStream.from_socket(accepted) as stream:
                yield SocketPair(Lines(stream), peer)
