"""`handrail agent`: run our own agent, an ACP program on standard input and output.

Hides its memory from other processes before it reads any key. It takes the keys out of the environment, loads
the configuration, serves until the input ends, and then stops everything.
"""

import logging
import os
import signal
import stat
import sys
from collections.abc import Sequence

import anyio

from handrail.config import BadConfig, OwnAgentSection, load
from handrail.hardening import hide_memory
from handrail.own_agent.acp_server import AgentServer
from handrail.own_agent.models.api_keys import Keys
from handrail.own_agent.models.catalog import Models
from handrail.own_agent.session_files import SessionFiles
from handrail.paths import Places

HELP = """\
Examples:
  handrail agent                                   what an editor launches; it speaks on stdin and stdout
  handrail chat --agent handrail                   to talk with it here
  acpx --agent 'handrail agent' exec 'Say hello'
  "agent_servers": {"Handrail": {"type": "custom", "command": "handrail", "args": ["agent"]}}
                                                   in Zed's settings.json

Usage: handrail agent

Handrail's own coding agent, for editors and other programs that speak the Agent Client Protocol (version 1).

It needs a model: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GOOGLE_API_KEY, keep one with `handrail keys set`, or set
OPENAI_BASE_URL or OLLAMA_BASE_URL to a server of your own. HANDRAIL_MODEL=provider:name chooses one.
Its settings stand under [agent] in config.toml."""


def main(argv: Sequence[str]) -> int:
    """Run the program and return its exit status."""
    if argv:
        wants_help = argv[0] in ("-h", "--help")
        words = (
            HELP if wants_help else f"handrail agent takes no {argv[0]!r}; `handrail agent --help` says more."
        )
        print(words, file=sys.stdout if wants_help else sys.stderr)
        return 0 if wants_help else 2
    hide_memory()

    return run()


LEAVE_SECONDS = 5.0
"""Seconds to close all sessions after the host has gone; bounds the wait for an MCP server that does not
exit."""

FOR_PROGRAMS = "This speaks to programs. To talk with it yourself: handrail chat --agent handrail\n"


def run() -> int:
    """Serve until the input ends, then end the process. Returns an exit status only if it could not start."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    keys, places = Keys.take(os.environ), Places.find()
    try:
        settings = load(places.config).agent
    except BadConfig as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if sys.stdin.isatty() or not (_is_stream(0) and _is_stream(1)):
        sys.stderr.write(FOR_PROGRAMS)
    if not (_is_stream(0) and _is_stream(1)):
        return 2
    anyio.run(_serve, keys, places, settings)
    # Exit without cleanup: a thread that waits for a locked keyring would block a normal exit.
    logging.shutdown()
    sys.stderr.flush()
    os._exit(0)


def _is_stream(fd: int) -> bool:
    """Whether a host can be at the other end: a pipe, a socket or a terminal, but not a regular file or
    /dev/null."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)


async def _serve(keys: Keys, places: Places, settings: OwnAgentSection) -> None:
    async with anyio.create_task_group() as group:
        program = AgentServer(
            SessionFiles(places.data / "agent"), Models(keys, settings), keys, settings, group
        )
        with anyio.CancelScope() as listening:
            group.start_soon(_stop_on_signal, listening)
            await program.wire.listen()
        with anyio.move_on_after(LEAVE_SECONDS):
            await program.leave()
        await program.wire.shut()
        group.cancel_scope.cancel()


async def _stop_on_signal(listening: anyio.CancelScope) -> None:
    """Stop listening on SIGTERM or SIGINT, as at the end of the input."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            listening.cancel()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
