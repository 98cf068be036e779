"""A scripted Handrail for windows: a daemon that opens terminals, and a keeper that the test speaks for.

It speaks the keeper's real protocol by the keeper's own classes, and writes a real spool. Every wait is under `BOUND`.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from typing import Any, Self, TypeVar

from tests.door.peer import BOUND

from handrail.keeper.message_framing import encode
from handrail.keeper.protocol import (
    PROTOCOL,
    Exit,
    Exited,
    Grown,
    Hello,
    Input,
    Kept,
    Resize,
    Typed,
    Welcome,
    to_keeper,
)
from handrail.keeper.spool import Spool
from handrail.paths import Places

TERMINAL = "t123"
T = TypeVar("T")


class Keeping:
    """Both of them, for one terminal."""

    def __init__(self, places: Places, answer: tuple[int, object] = (201, {"id": TERMINAL})) -> None:
        places.make()
        self.asked: dict[str, Any] = {}
        """What the daemon was asked for."""
        self.output = Spool(str(places.spool / TERMINAL), 1 << 20)
        self._answer = answer
        self._web = socket.create_server(("127.0.0.1", 0))
        self._daemon = _listening(str(places.daemon_socket))
        self._keeper = _listening(str(places.keeper_socket))
        self._held: list[socket.socket] = [self._web, self._daemon, self._keeper]
        self._peer: socket.socket | None = None
        self._told = b""
        for serve in (self._greet, self._serve):
            threading.Thread(target=serve, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for sock in self._held:
            sock.close()

    def welcome(self) -> Hello:
        """Let the window in."""
        self._keeper.settimeout(BOUND)
        self._peer = self._keeper.accept()[0]
        self._peer.settimeout(BOUND)
        self._held.append(self._peer)
        hello = self.told(Hello)
        kept = Kept(TERMINAL, ("sh",), "/", 1, 0.0, 80, 24, False, self.output.size)
        self.say(Welcome(PROTOCOL, os.getpid(), 1), kept)
        return hello

    def say(self, *messages: object) -> None:
        assert self._peer is not None
        for message in messages:
            self._peer.sendall(encode(message))

    def told(self, kind: type[T]) -> T:
        """The next thing the window says, which is of this kind; a size may come in between."""
        while True:
            message = self._next()
            if isinstance(message, kind):
                return message
            assert isinstance(message, Resize), message

    def typed(self) -> bytes:
        """The next keys, which are taken."""
        keys = self.told(Input)
        self.say(Typed(keys.id, secret=False, typed=True))
        assert keys.person
        return keys.data

    def prints(self, data: bytes) -> None:
        self.output.append(memoryview(data))
        self.say(Grown(TERMINAL, self.output.size))

    def exits(self, code: int | None = 0, signal: str | None = None) -> None:
        self.say(Exited(TERMINAL, Exit(code, signal), self.output.size))

    def dies(self) -> None:
        assert self._peer is not None
        self._peer.close()

    def hung_up(self) -> bool:
        """Whether the window is gone, once all it said before is read."""
        assert self._peer is not None
        while data := self._peer.recv(1 << 16):
            self._told += data
        return True

    def _next(self) -> object:
        assert self._peer is not None
        while b"\n" not in self._told:
            data = self._peer.recv(1 << 16)
            assert data, "the window hung up"
            self._told += data
        line, _, self._told = self._told.partition(b"\n")
        return to_keeper(line)

    def _greet(self) -> None:
        while caller := _accepted(self._daemon):
            self._held.append(caller)
            caller.makefile("rb").readline()
            about = {"handrail": 1, "ok": True, "pid": 1, "version": "0", "bearer": "b"}
            port = self._web.getsockname()[1]
            caller.sendall(json.dumps({**about, "url": f"http://127.0.0.1:{port}"}).encode() + b"\n")

    def _serve(self) -> None:
        while caller := _accepted(self._web):
            with caller, caller.makefile("rb") as lines:
                head = [line.strip().lower() for line in iter(lines.readline, b"\r\n")]
                length = next(int(line[15:]) for line in head if line.startswith(b"content-length:"))
                self.asked = {"head": head, **json.loads(lines.read(length))}
                status, body = self._answer
                sent = json.dumps(body).encode()
                caller.sendall(b"HTTP/1.1 %d Word\r\ncontent-length: %d\r\n\r\n" % (status, len(sent)) + sent)


def _listening(path: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(path)
    made.listen(8)
    return made


def _accepted(listener: socket.socket) -> socket.socket | None:
    try:
        return listener.accept()[0]
    except OSError:
        return None
