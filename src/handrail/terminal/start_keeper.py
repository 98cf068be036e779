"""Connect to the running keeper, or start one.

Defines the keeper's command line and environment, and checks that the process behind the socket was not itself
started inside a terminal. The messages on the connection are in keeper_client.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.abc import SocketAttribute

from handrail.keeper import lineage
from handrail.launcher.child import spawn_detached
from handrail.paths import own_python

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anyio.abc import UNIXSocketStream

    from handrail.paths import Places


CONNECT_SECONDS = 2.0
"""Time limit for a connection: the queue of a hung keeper may be full."""
START_SECONDS = 10.0
"""Time limit for a new keeper to open its socket, generous enough for a busy machine."""
PASSED = {"HOME", "PATH", "SHELL", "USER", "LOGNAME", "LANG", "TMPDIR", "PYTHONPATH"}
PASSED_PREFIXES = ("LC_", "XDG_")


class NoKeeperError(Exception):
    """No keeper could be reached or started; the message gives the reason."""


def clean_environment(environ: Mapping[str, str], places: Places) -> dict[str, str]:
    """The environment for the keeper and for a daemon it starts: an allow list, without secrets."""
    passed = {k: v for k, v in environ.items() if k in PASSED or k.startswith(PASSED_PREFIXES)}
    return {**passed, **places.environment}


class KeeperLauncher:
    """Connects to the keeper of one home directory and starts it if needed."""

    def __init__(self, places: Places, idle_seconds: float) -> None:
        self._places = places
        self._idle_seconds = idle_seconds
        self._reference = lineage.own_reference()
        self._child = 0

    async def connect(self) -> UNIXSocketStream | None:
        """Connect to the running keeper; None when there is no keeper.

        Raises NoKeeperError for an untrusted peer, or if the keeper accepts no connection.
        """
        try:
            with anyio.fail_after(CONNECT_SECONDS):
                stream = await anyio.connect_unix(self._places.keeper_socket)
        except TimeoutError:
            raise NoKeeperError(
                f"The keeper accepts no connection on {self._places.keeper_socket}. `handrail down --force` ends it and "
                "everything that it started; then run `handrail up`."
            ) from None
        except OSError:
            return None
        peer = lineage.Peer.of(stream.extra(SocketAttribute.raw_socket))
        trusted = peer.is_trusted(set(), self._reference)
        peer.close()
        if not trusted:
            await stream.aclose()
            raise NoKeeperError(
                f"Process {peer.pid} answers on {self._places.keeper_socket}, but it is not a trusted keeper: "
                "it carries the mark of what Handrail starts, or is another user's. End it with `kill`, then run `handrail up`."
            )
        return stream

    async def start(self) -> UNIXSocketStream:
        """Start a keeper and wait until it accepts a connection. If two start concurrently, one of them exits."""
        self._places.make()
        self.reap()
        self._child = self._spawn()
        socket = str(self._places.keeper_socket)
        with anyio.move_on_after(START_SECONDS):
            while True:
                # Cheaper than an attempt to connect, which is repeated while the keeper starts.
                stream = await self.connect() if os.path.exists(socket) else None  # noqa: ASYNC240, PTH110
                if stream is not None:
                    return stream
                await anyio.sleep(0.005)
        raise NoKeeperError(f"The keeper did not start; {self._places.logs / 'keeper.log'} may say why.")

    def reap(self) -> None:
        """Reap the keeper we started, if it has exited."""
        try:
            if self._child and os.waitpid(self._child, os.WNOHANG)[0]:
                self._child = 0
        except ChildProcessError:
            self._child = 0

    def _spawn(self) -> int:
        program = Path(lineage.__file__).with_name("__main__.py")
        options = ["--idle", str(self._idle_seconds), "--reference", str(self._reference)]
        options += ["--python-option", own_python()[1]]
        argv = [sys.executable, "-I", "-S", str(program), *options]
        environment = clean_environment(os.environ, self._places)
        return spawn_detached(argv, environment, self._places.logs / "keeper.log")
