"""`handrail agent`: our own agent as a program that speaks the Agent Client Protocol on standard input and output.

Owns the command line, and that nobody can read our memory from the first moment on: there will be keys in it.

The program from its start to its end: keys taken out of the environment, settings read, and everything
ended with the input.
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
from handrail.own_agent.acp_server import Program
from handrail.own_agent.models.api_keys import Keys
from handrail.own_agent.models.catalog import Models
from handrail.own_agent.session_files import Sessions
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
    """The exit status."""
    if argv:
        asked = argv[0] in ("-h", "--help")
        words = HELP if asked else f"handrail agent takes no {argv[0]!r}; `handrail agent --help` says more."
        print(words, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    hide_memory()

    return run()


LEAVE_SECONDS = 5.0
"""For everything to end once the host is gone; bounds the wait for a server that does not."""

FOR_PROGRAMS = "This speaks to programs. To talk with it yourself: handrail chat --agent handrail\n"


def run() -> int:
    """The exit status where it could not begin; else it ends the process."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    keys, places = Keys.take(os.environ), Places.find()
    try:
        settings = load(places.config).agent
    except BadConfig as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if sys.stdin.isatty() or not (_is_line(0) and _is_line(1)):
        sys.stderr.write(FOR_PROGRAMS)
    if not (_is_line(0) and _is_line(1)):
        return 2
    anyio.run(_serve, keys, places, settings)
    # At once: a thread that waits for a locked keyring would hold us, and nobody needs modules taken down one by one.
    logging.shutdown()
    sys.stderr.flush()
    os._exit(0)


def _is_line(fd: int) -> bool:
    """Whether there may be somebody at the other end: a file, and nothing at all, never answer."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)


async def _serve(keys: Keys, places: Places, settings: OwnAgentSection) -> None:
    async with anyio.create_task_group() as group:
        program = Program(Sessions(places.data / "agent"), Models(keys, settings), keys, settings, group)
        with anyio.CancelScope() as listening:
            group.start_soon(_until_told, listening)
            await program.wire.listen()
        with anyio.move_on_after(LEAVE_SECONDS):
            await program.leave()
        await program.wire.shut()
        group.cancel_scope.cancel()


async def _until_told(listening: anyio.CancelScope) -> None:
    """A signal ends it as the end of the input does."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            listening.cancel()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
