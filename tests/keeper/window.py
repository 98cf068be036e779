"""A person's own window on a terminal, as a test holds one: blocking, and every wait under a bound."""

import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.keeper.scene import BOUND

from handrail.framing import LineBuffer
from handrail.keeper.message_framing import FRAME_MAX, encode
from handrail.keeper.protocol import PROTOCOL, Hello, Kept, Refused, Welcome, from_keeper
from handrail.paths import Places

M = TypeVar("M")


@dataclass
class Peer:
    """A connection to the keeper; `heard` is all it was told and nobody has asked for yet."""

    sock: socket.socket
    heard: list[Any] = field(default_factory=list[Any])
    _lines: LineBuffer = field(default_factory=lambda: LineBuffer(FRAME_MAX))

    def say(self, message: object) -> None:
        self.sock.sendall(encode(message))

    def wait_for(self, kind: type[M], **wanted: object) -> M:
        """The first message of this kind, with these fields, that was or will be told."""
        while True:
            for message in self.heard:
                if (
                    isinstance(message, kind)
                    and wanted.items() <= {name: getattr(message, name) for name in wanted}.items()
                ):
                    self.heard.remove(message)
                    return message
            self.listen()

    def listen(self) -> None:
        data = self.sock.recv(65536)
        if not data:
            raise EOFError("The keeper hung up.")
        self.heard += [from_keeper(line) for line in self._lines.feed(data)]


@dataclass
class Window(Peer):
    kept: Kept | None = None


@contextmanager
def connected(places: Places) -> Generator[Peer]:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(BOUND)
        sock.connect(str(places.keeper_socket))
        yield Peer(sock)


@contextmanager
def attached(places: Places, terminal: str, *, ends: bool = False) -> Generator[Window]:
    with connected(places) as peer:
        window = Window(peer.sock)
        window.say(Hello(PROTOCOL, "attach", terminal=terminal, ends=ends))
        assert window.wait_for(Welcome).kept == 1
        window.kept = window.wait_for(Kept)
        yield window


def refusal(places: Places, hello: Hello) -> str:
    with connected(places) as peer:
        peer.say(hello)
        return peer.wait_for(Refused).why
