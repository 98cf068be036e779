"""`handrail mcp`: the stdio server that MCP clients launch. Parses the command line and connects; `proxy` does the rest."""

from __future__ import annotations

import os
import signal
import sys

from handrail.door.client_process import ClientProcesses
from handrail.door.connect import HelloRefused, connect, repeat_greeting, say_hello
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
"""Set if an agent that Handrail hosts launched this program: identifies the thread of its calls."""


def main(arguments: list[str]) -> int:
    """Run the door until its client disconnects; return the exit status."""
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
    Pump(_daemon_connector(workspace), client=ClientProcesses()).run()
    return 0


def _workspace(arguments: list[str]) -> str | None:
    match arguments:
        case []:
            directory = os.environ.get("HANDRAIL_WORKSPACE")
        case ["--workspace", directory]:
            pass
        case [argument] if argument.startswith("--workspace="):
            directory = argument.removeprefix("--workspace=")
        case _:
            raise ValueError(f"{' '.join(arguments)} is not understood. Use: handrail mcp [--workspace DIR]")
    if not directory:
        return None
    if not os.path.isdir(directory):
        raise ValueError(f"the workspace {directory} is not a directory. Name one that exists.")
    return os.path.abspath(directory)


def _daemon_connector(workspace: str | None) -> Callable[[Callable[[], bool]], socket.socket]:
    """Build the function that connects the pump to a daemon; every daemon sees the same door id."""
    door, credential = os.urandom(8).hex(), os.environ.get(CREDENTIAL, "")

    def greet(abandon: Callable[[], bool]) -> socket.socket:
        sock = connect(Places.find(os.environ), abandon=abandon)
        try:
            say_hello(sock, "mcp", workspace=workspace, door=door, credential=credential)
        except HelloRefused:
            sock.close()
            raise
        return sock

    return lambda abandon: repeat_greeting(lambda: greet(abandon))
