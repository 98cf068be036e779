"""The program from its start to its end: keys taken out of the environment, settings read, and everything ended with the
input.

Owns the order of that. It does not know what is served in between (program.py).
"""

import logging
import os
import signal
import stat
import sys

import anyio

from handrail.agents.builtin.hosted.program import Program
from handrail.agents.builtin.hosted.sessions import Sessions
from handrail.agents.builtin.model.keys import Keys
from handrail.agents.builtin.model.models import Models
from handrail.config import BadConfig, OwnAgentSection, load
from handrail.places import Places

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
