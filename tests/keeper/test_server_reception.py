"""A keeper without descriptors turns peers away instead of spinning, and takes them in again later."""

import os
import socket
from pathlib import Path

from tests.support.keeper_terminals import BOUND

from handrail.keeper.connection import Connection
from handrail.keeper.event_loop import Loop
from handrail.keeper.protocol import Hello, Request
from handrail.keeper.server import Connections


class Nobody:
    def greet(self, connection: Connection, hello: Hello) -> None: ...
    def left(self, connection: Connection) -> None: ...
    def answer(self, connection: Connection, request: Request) -> bool:
        del connection, request
        return False


def exhausted() -> list[int]:
    """Every descriptor this process may still have."""
    held: list[int] = []
    while True:
        try:
            held.append(os.dup(0))
        except OSError:
            return held


def highest_held() -> int:
    folder = Path("/proc/self/fd") if Path("/proc/self/fd").is_dir() else Path("/dev/fd")
    return max(int(entry.name) for entry in folder.iterdir())


def test_out_of_descriptors_a_peer_is_turned_away_and_the_loop_rests(home: Path) -> None:
    import resource  # noqa: PLC0415  (its limit is lowered for this test alone)

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(home / "socket"))
    listener.listen()
    listener.setblocking(False)
    loop = Loop()
    Connections(listener, loop, Nobody())
    peer, later = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    held: list[int] = []
    try:
        # Above whatever other tests of this process still hold: the limit is on a descriptor's number.
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(highest_held() + 64, soft), hard))
        peer.connect(str(home / "socket"))
        held = exhausted()
        loop.once(0)
        peer.settimeout(BOUND)
        assert peer.recv(1) == b"", "it was hung up on"
        for descriptor in held:
            os.close(descriptor)
        held = []
        later.connect(str(home / "socket"))
        loop.once(0)
        later.setblocking(False)
        try:
            later.recv(1)
        except BlockingIOError:
            taken_in = True
        else:
            taken_in = False
        assert taken_in
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        peer.close()
        later.close()
        loop.once(0)  # hears that it has gone, and closes its own end
        listener.close()
