"""A process tree as an editor's: E, its extension host, and what the extension host starts, each of which may connect.

    with EditorTree(path) as editor:
        host = editor.connect("host")

The tree is driven by lines on the standard input of E: `ROLE PATH` makes a process with that role, which connects to the
unix socket at PATH, sends a hello as a person in an editor, and keeps the connection.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from handrail.framing import HELLO

BOUND = 30.0

CONNECT = textwrap.dedent(
    f"""
    import json, os, socket, sys
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(sys.argv[1])
    hello = {{"handrail": {HELLO}, "want": "person", "place": "VS Code", "ppid": os.getppid(), "workspace": "/w"}}
    sock.sendall(json.dumps(hello).encode() + b"\\n")
    for line in sock.makefile("r"):
        print(line, end="", flush=True)
    """
)
"""Connects, and prints every line that it is told."""
BELOW = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[2], sys.argv[1]])"
TWICE = textwrap.dedent(
    """
    import os, sys
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-c", sys.argv[2], sys.argv[1]])
        os._exit(0)
    os.wait()
    """
)
MARKED = textwrap.dedent(
    """
    import os, sys
    from handrail.keeper import lineage
    lineage.mark()
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[2], sys.argv[1]])
    """
)
EDITOR = textwrap.dedent(
    """
    import subprocess, sys
    for line in sys.stdin:
        role, path = line.split()
        argv = {
            "host": [CONNECT, path],
            "below": [BELOW, path, CONNECT],
            "twice": [TWICE, path, CONNECT],
            "marked": [MARKED, path, CONNECT],
        }[role]
        subprocess.Popen([sys.executable, "-c", *argv], stdin=subprocess.DEVNULL)
    """
)
PROGRAM = f"CONNECT={CONNECT!r}\nBELOW={BELOW!r}\nTWICE={TWICE!r}\nMARKED={MARKED!r}\n{EDITOR}"


class EditorTree:
    """A running E. What its processes are told comes back in the order in which they connect."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """End E and all that it started, but what left its process group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate(timeout=BOUND)

    def connect(self, role: str) -> None:
        """Let a process with this role connect: `host`, `below` it, forked `twice`, or `marked`."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{role} {self._path}\n".encode())
        self.process.stdin.flush()

    def read_reply(self) -> dict[str, Any]:
        """The next line that any of its processes was told."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())


def accept(listener: socket.socket) -> socket.socket:
    """The next connection of a tree, after its hello."""
    connection, _ = listener.accept()
    connection.recv(4096)
    return connection
