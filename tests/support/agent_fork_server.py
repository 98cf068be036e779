"""A fork server for our own agent: one process with all imports done, which saves two seconds for each agent.

It owns that process. A fork runs `handrail agent` like a new process, with a separate environment, folder and streams.
Tests of the start itself, and tests that find processes by their environment, use a new interpreter.
"""

import asyncio
import importlib
import json
import os
import random
import select
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

LIMIT = 64 << 20
"""Bytes of one message."""
ORDER_MAX = 1 << 16
LEAVE_SECONDS = 10.0
"""Seconds for an agent to end after its input."""


class ForkedAgent:
    """An agent that is not our child, with the streams of its host."""

    def __init__(self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.pid, self.reader, self.writer = pid, reader, writer
        self._fd = os.pidfd_open(pid)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._fd, signal.SIGKILL)

    async def end(self) -> None:
        """End its input and wait for its exit. Raises TimeoutError after a kill."""
        self.writer.close()
        ended = await asyncio.to_thread(select.select, [self._fd], [], [], LEAVE_SECONDS)
        if not ended[0]:
            self.kill()
        os.close(self._fd)
        if not ended[0]:
            raise TimeoutError(f"agent {self.pid} did not end with its input")


@asynccontextmanager
async def forked_agent(environment: Mapping[str, str], cwd: Path) -> AsyncGenerator[ForkedAgent]:
    """An agent that ends with this context."""
    (stdin, ours_in), (ours_out, stdout) = os.pipe(), os.pipe()
    try:
        pid = _order({"environment": dict(environment), "cwd": str(cwd)}, stdin, stdout)
    finally:
        os.close(stdin)
        os.close(stdout)
    agent = ForkedAgent(pid, await _reader(ours_out), await _writer(ours_in))
    try:
        yield agent
    finally:
        await agent.end()


async def _reader(fd: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(LIMIT)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(fd, "rb", 0))
    return reader


async def _writer(fd: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    transport, _ = await loop.connect_write_pipe(lambda: protocol, os.fdopen(fd, "wb", 0))
    return asyncio.StreamWriter(transport, protocol, None, loop)


def _order(order: dict[str, Any], stdin: int, stdout: int) -> int:
    server = _fork_server()
    socket.send_fds(server, [json.dumps(order).encode()], [stdin, stdout])
    return int(server.recv(ORDER_MAX))


@cache
def _fork_server() -> socket.socket:
    from tests.support.fork_server import start_server  # noqa: PLC0415 - the server itself runs as a script

    return start_server([sys.executable, "-P", str(Path(__file__).resolve())])


def main(descriptor: int) -> None:
    """Fork an agent for each order, until the other end is closed."""
    from handrail.own_agent.acp_server import SLOW_MODULES  # noqa: PLC0415

    for name in (*SLOW_MODULES, "pydantic_ai.models.anthropic", "pydantic_ai.models.openai"):
        importlib.import_module(name)
    os.set_inheritable(descriptor, False)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    with socket.socket(fileno=descriptor) as tests:
        while True:
            order, streams, _, _ = socket.recv_fds(tests, ORDER_MAX, 2)
            if not order:
                return
            pid = os.fork()
            if pid == 0:
                tests.close()
                _be_agent(json.loads(order), streams)
            for stream in streams:
                os.close(stream)
            tests.send(str(pid).encode())


def _be_agent(order: dict[str, Any], streams: list[int]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["cwd"])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    random.seed()
    from handrail.own_agent.__main__ import main as run  # noqa: PLC0415

    status = 1
    try:
        status = run([])
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main(int(sys.argv[1]))
