"""A fork server for daemons: one process with all imports done, which makes a start ten times cheaper.

It owns that process and the daemons' exits. A fork runs `handrail up --foreground` like a new process, with a separate
environment, folder and output. Tests that need a new interpreter use `Home.start`; so does every restart by a door.
"""

import atexit
import importlib
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TextIO, cast

PRELOADED = (
    "handrail.daemon.daemon",
    "handrail.server.api_app",
    "handrail.server.mcp.door_connection",
    "handrail.server.mcp.mcp_server",
    "handrail.server.mcp.streamable_http",
    "anyio._backends._asyncio",
    "pydantic.v1",
    "uvicorn.protocols.websockets.auto",
    "uvloop",
)
"""Modules that import all that a daemon needs, also what it imports only for its first client or request."""
ARGUMENTS = ["handrail", "up", "--foreground", "--no-open"]


class ForkedDaemon:
    """A daemon that is not our child; what tests use of `Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        try:
            self._fd: int | None = os.pidfd_open(pid)
        except ProcessLookupError:
            self._fd = None

    def poll(self) -> int | None:
        """None while it runs. Its exit status is not known."""
        return None if self._fd is not None and not select.select([self._fd], [], [], 0)[0] else 0

    def wait(self, timeout: float) -> None:
        if self._fd is None:
            return
        if not select.select([self._fd], [], [], timeout)[0]:
            raise TimeoutError(f"process {self.pid} did not end within {timeout:g} s")
        os.close(self._fd)
        self._fd = None


def fork_daemon(environment: dict[str, str], log: Path) -> ForkedDaemon:
    server = _fork_server()
    server.write(json.dumps({"environment": environment, "log": str(log)}) + "\n")
    server.flush()
    return ForkedDaemon(int(server.readline()))


@cache
def _fork_server() -> TextIO:
    ours, theirs = socket.socketpair()
    argv = [sys.executable, str(Path(__file__).resolve()), str(theirs.fileno())]
    with theirs:
        process = subprocess.Popen(argv, cwd="/", stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])

    def end() -> None:
        ours.close()
        process.wait(10)

    peer = ours.makefile("rw", encoding="utf-8")
    atexit.register(end)
    atexit.register(peer.close)
    return peer


def main(descriptor: int) -> None:
    """Fork a daemon for each line, until the other end is closed."""
    for name in PRELOADED:
        importlib.import_module(name)
    os.set_inheritable(descriptor, False)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    with socket.socket(fileno=descriptor) as tests, tests.makefile("rw", encoding="utf-8") as peer:
        for line in peer:
            pid = os.fork()
            if pid == 0:
                os.close(descriptor)
                _be_daemon(json.loads(line))
            peer.write(f"{pid}\n")
            peer.flush()


def _be_daemon(order: dict[str, object]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(cast("dict[str, str]", order["environment"]))
    out = os.open(str(order["log"]), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.close(out)
    random.seed()
    sys.argv = ARGUMENTS
    from handrail.__main__ import main as run  # noqa: PLC0415

    status = 1
    try:
        status = run()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main(int(sys.argv[1]))
