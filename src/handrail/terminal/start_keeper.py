"""Finding the living keeper, or starting one.

Owns the keeper's command line and environment, and the check that who answers is no process that Handrail itself
started. Does not know what is said on the connection.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.abc import SocketAttribute

from handrail.keeper import lineage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anyio.abc import UNIXSocketStream

    from handrail.paths import Places


START_SECONDS = 10.0
"""What a new keeper gets to open its socket, on a machine that is busy with other things."""
PASSED = {"HOME", "PATH", "SHELL", "USER", "LOGNAME", "LANG", "TMPDIR", "PYTHONPATH"}
PASSED_PREFIXES = ("LC_", "XDG_")


class NoKeeperError(Exception):
    """No keeper could be had; the sentence says why."""


def clean_environment(environ: Mapping[str, str], places: Places) -> dict[str, str]:
    """What the keeper, and a daemon it starts, may know of the environment: no secret is among it."""
    passed = {k: v for k, v in environ.items() if k in PASSED or k.startswith(PASSED_PREFIXES)}
    return {**passed, **places.environment}


class Birth:
    """The way to a keeper for these places."""

    def __init__(self, places: Places, idle_seconds: float) -> None:
        self._places = places
        self._idle_seconds = idle_seconds
        self._child = 0

    async def connect(self) -> UNIXSocketStream | None:
        """A connection to the living keeper, if there is one."""
        try:
            stream = await anyio.connect_unix(self._places.keeper_socket)
        except OSError:
            return None
        peer = lineage.Peer.of(stream.extra(SocketAttribute.raw_socket))
        trusted = peer.is_trusted(set(), lineage.own_limit())
        peer.close()
        if not trusted:
            await stream.aclose()
            raise NoKeeperError(
                f"Process {peer.pid} answers on {self._places.keeper_socket}, but it is not a keeper to be trusted: "
                "it was started inside a terminal, or is another user's. End it, then run `handrail up`."
            )
        return stream

    async def start(self) -> UNIXSocketStream:
        """Start a keeper and wait until it answers. Where two are started at once, one of them steps back."""
        self._places.make()
        self.reap()
        self._child = self._spawn()
        with anyio.move_on_after(START_SECONDS):
            while True:
                stream = await self.connect()
                if stream is not None:
                    return stream
                await anyio.sleep(0.005)
        raise NoKeeperError(f"The keeper did not start; {self._places.logs / 'keeper.log'} may say why.")

    def reap(self) -> None:
        """Let go of a keeper of ours that has ended."""
        try:
            if self._child and os.waitpid(self._child, os.WNOHANG)[0]:
                self._child = 0
        except ChildProcessError:
            self._child = 0

    def _spawn(self) -> int:
        program = Path(lineage.__file__).with_name("__main__.py")
        argv = [sys.executable, "-I", "-S", str(program), "--idle", str(self._idle_seconds)]
        log = str(self._places.logs / "keeper.log")
        return os.posix_spawn(
            argv[0],
            argv,
            clean_environment(os.environ, self._places),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsigmask=[],
            setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
        )
