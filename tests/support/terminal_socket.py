"""The WebSocket of a terminal, as the page uses it: output, state, keys and sizes.

Every frame's offset is checked: no byte may be missing or come twice.
"""

import json
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import anyio.to_thread
from tests.support.daemon_home import BOUND
from tests.support.person_client import Json, Person
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect


@contextmanager
def open_websocket(person: Person, path: str) -> Generator[ClientConnection]:
    """A WebSocket with this person's bearer."""
    url = f"{person.home.url.replace('http', 'ws', 1)}/api/{path}"
    protocols: Any = ["handrail", f"bearer.{person.bearer}"]
    with connect(url, subprotocols=protocols, open_timeout=BOUND, max_size=None) as follower:
        assert follower.subprotocol == "handrail"
        yield follower


class TerminalSocket:
    """One socket on a terminal. `at` is the offset after the last byte it was sent."""

    def __init__(self, connection: ClientConnection) -> None:
        self._socket = connection
        first = self._text(connection.recv(timeout=BOUND))
        self.states: list[Json] = [first["state"]]
        self.sizes: bool = first["sizes"]
        self.alternate: bool = first["alternate"]
        self.begin: int = first["begin"]
        self.at: int = first["begin"]
        self.shown = bytearray()
        self.refused: list[Json] = []
        self.closed: int | None = None
        self.gap = 0

    @property
    def state(self) -> Json:
        return self.states[-1]

    def type(self, keys: bytes) -> None:
        self._socket.send(keys)

    def resize(self, cols: int, rows: int) -> None:
        self._socket.send(json.dumps({"size": [cols, rows]}))

    def say(self, text: str) -> None:
        self._socket.send(text)

    def cut(self) -> None:
        """As when a laptop is shut: no goodbye."""
        self._socket.socket.shutdown(socket.SHUT_RDWR)

    def until(self, condition: Callable[["TerminalSocket"], object], within: float = BOUND) -> None:
        """Take frames until this holds."""
        while not condition(self):
            self.take(within)

    def until_shown(self, words: bytes) -> None:
        self.until(lambda page: words in page.shown)

    def take(self, within: float = BOUND) -> None:
        """Take one frame. Sets `closed` if the socket closes."""
        assert self.closed is None, "it closed before what was waited for came"
        try:
            frame = self._socket.recv(timeout=within)
        except ConnectionClosed as end:
            self.closed = end.rcvd.code if end.rcvd else 1006
            return
        if isinstance(frame, bytes):
            self._output(int.from_bytes(frame[:8], "big"), frame[8:])
        else:
            self._heard(self._text(frame))

    def to_end(self) -> bytes:
        """All that is still printed; the terminal has ended then."""
        self.until(lambda page: page.closed is not None)
        return bytes(self.shown)

    def _output(self, offset: int, data: bytes) -> None:
        assert 0 < len(data) <= 65536
        if self.shown or offset < self.at:
            assert offset == self.at, "frames follow each other"
        self.gap += offset - self.at
        self.shown += data
        self.at = offset + len(data)

    def _heard(self, message: Json) -> None:
        if "refused" in message:
            self.refused.append(message)
        else:
            assert message["begin"] is None
            self.states.append(message["state"])
            self.sizes = message["sizes"]

    @staticmethod
    def _text(frame: str | bytes) -> Json:
        assert isinstance(frame, str)
        return json.loads(frame)


@contextmanager
def attach_terminal(person: Person, terminal: str, query: str = "after=0") -> Generator[TerminalSocket]:
    with open_websocket(person, f"terminals/{terminal}/attach?{query}") as connection:
        yield TerminalSocket(connection)


async def open_terminal(person: Person, *command: str, **more: Any) -> str:
    """A terminal of this person's own, running a program; its id."""
    return (await person.post("terminals", {"command": list(command), "cwd": "/", **more}))["id"]


async def run_in_thread(work: Callable[[], Any]) -> Any:
    """Run blocking socket code in a thread."""
    return await anyio.to_thread.run_sync(work)
