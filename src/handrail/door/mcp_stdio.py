"""`handrail mcp`: what an MCP client launches and talks to on stdin and stdout.

Owns the command line and the meeting with the daemon. Does not know MCP: `pump` moves the bytes.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from handrail.door.connect import HelloRefused, connect, say_hello
from handrail.door.proxy import Pump
from handrail.paths import Places

TYPE_CHECKING = False

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable


USAGE = """\
handrail mcp                      speak MCP on stdin and stdout; the workspace is the current directory
handrail mcp --workspace DIR      the same for another directory (or set HANDRAIL_WORKSPACE)

An MCP client launches this. Its configuration is: {"command": "handrail", "args": ["mcp"]}
"""

CREDENTIAL = "HANDRAIL_CREDENTIAL"
"""Set where Handrail itself had an agent launch this: whose calls these are."""

GREETINGS = 3
"""Times a daemon may hang up on us: one that was just ending, and its successor; bounds a loop with a third."""


def main(arguments: list[str]) -> int:
    """Run the door until its client is gone; returns the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if arguments in (["--help"], ["-h"]):
        sys.stdout.write(USAGE)
        return 0
    try:
        workspace = _workspace(arguments)
    except ValueError as error:
        sys.stderr.write(f"handrail mcp: {error}\n")
        return 2
    if os.isatty(0):
        sys.stderr.write("This is the door for MCP clients: it waits for JSON-RPC lines. Ctrl-C ends it.\n")
    Pump(_way_to_daemon(workspace)).run()
    return 0


def _workspace(arguments: list[str]) -> str | None:
    match arguments:
        case []:
            named = os.environ.get("HANDRAIL_WORKSPACE")
        case ["--workspace", named]:
            pass
        case [argument] if argument.startswith("--workspace="):
            named = argument.removeprefix("--workspace=")
        case _:
            raise ValueError(f"{' '.join(arguments)} is not understood. Use: handrail mcp [--workspace DIR]")
    if not named:
        return None
    if not os.path.isdir(named):
        raise ValueError(f"the workspace {named} is not a directory. Name one that exists.")
    return os.path.abspath(named)


def _way_to_daemon(workspace: str | None) -> Callable[[Callable[[], bool]], socket.socket]:
    """How the pump gets a daemon that has greeted us; the same door to every one of them."""
    door, credential = os.urandom(8).hex(), os.environ.get(CREDENTIAL, "")

    def reach(abandon: Callable[[], bool]) -> socket.socket:
        for attempt in range(1, GREETINGS + 1):
            sock = connect(Places.find(os.environ), abandon=abandon)
            try:
                say_hello(sock, "mcp", workspace=workspace, door=door, credential=credential)
            except HelloRefused as refused:
                sock.close()
                if not refused.hung_up or attempt == GREETINGS:
                    raise
                time.sleep(0.1 * attempt)
            else:
                return sock
        raise AssertionError("unreachable")

    return reach
