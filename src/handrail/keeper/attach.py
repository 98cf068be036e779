"""Windows: connections through which a person sees and types into one terminal, with or without a daemon.

A window can only reach its own terminal. Input typed in a window is reported to the daemon, or queued for the next one.
The server decides which peers may attach.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from handrail.keeper.connection import Growth
from handrail.keeper.protocol import (
    PROTOCOL,
    Attached,
    Done,
    Failed,
    Grown,
    Hello,
    Input,
    Overheard,
    RefusalError,
    Resize,
    Resized,
    Signal,
    Stop,
    Typed,
    Welcome,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from handrail.keeper.connection import Audience, Connection
    from handrail.keeper.protocol import Exited, Request, Swept, Unrecorded
    from handrail.keeper.spool import Spool
    from handrail.keeper.terminals import Held, Shelf


class Attachments:
    """The connections that are windows, each with its terminal."""

    def __init__(self, shelf: Shelf, audience: Audience) -> None:
        self._shelf, self._audience = shelf, audience
        self._attached: dict[Connection, tuple[Held, Window]] = {}

    def __contains__(self, peer: Connection) -> bool:
        return peer in self._attached

    @property
    def peers(self) -> list[Connection]:
        return list(self._attached)

    def attach(self, peer: Connection, hello: Hello) -> None:
        """Open a window: send the welcome and the terminal's state. Raises RefusalError."""
        held = self._shelf.find(hello.terminal)
        if held.order.pipes:
            raise RefusalError(f"Terminal {hello.terminal} has pipes: there is nothing to see in a window.")
        if len(held.windows) >= WINDOWS_MAX:
            raise RefusalError(f"Terminal {hello.terminal} has {WINDOWS_MAX} windows already.")
        self._attached[peer] = held, held.windows.open(peer, hello.ends)
        peer.send(Welcome(PROTOCOL, os.getpid(), kept=1))
        peer.send(held.state())
        if len(held.windows) == 1:
            self._audience.tell_latest(Attached(hello.terminal, attached=True))

    def answer(self, peer: Connection, request: Request) -> None:
        terminal = self._attached[peer][0].order.terminal
        try:
            self._do(peer, terminal, request)
        except RefusalError as refusal:
            peer.send(Failed(request.id, str(refusal), refusal.code))
        except OSError as error:
            peer.send(Failed(request.id, f"The system refused: {error.strerror}."))

    def left(self, peer: Connection) -> None:
        held, window = self._attached.pop(peer)
        held.windows.close(window)
        held.forget_stops(peer)
        if not held.windows:
            self._audience.tell_latest(Attached(held.order.terminal, attached=False))
        if window.ends and held.report is None:
            held.end(held.order.grace)

    def tick(self) -> None:
        for _, window in self._attached.values():
            window.catch_up()

    def wait_at_most(self) -> float | None:
        waits = (window.wait_at_most() for _, window in self._attached.values())
        return min((wait for wait in waits if wait is not None), default=None)

    def _do(self, peer: Connection, terminal: str, request: Request) -> None:
        match request:
            case Input(id, of, data) if of == terminal:
                peer.send(Typed(id, self._type(terminal, data), typed=True))
            case Resize(id, of, cols, rows) if of == terminal:
                self._resize(peer, terminal, cols, rows)
                peer.send(Done(id))
            case Signal(id, of, number) if of == terminal:
                self._shelf.signal(terminal, number)
                peer.send(Done(id))
            case Stop(id, of, grace) if of == terminal:
                self._shelf.stop(peer, id, terminal, grace)
            case _:
                raise RefusalError(
                    f"A window on terminal {terminal} may type, resize, signal and stop there, and nothing else."
                )

    def _type(self, terminal: str, data: bytes) -> bool:
        """Type as a person, whatever `Input.person` is. Returns True if the echo was off: then the text is not reported."""
        size = self._shelf.find(terminal).spool.size
        secret, _ = self._shelf.type(terminal, data, person=True)
        if data:
            self._audience.overhear(Overheard(terminal, b"" if secret else data, secret, size))
        return secret

    def _resize(self, peer: Connection, terminal: str, cols: int, rows: int) -> None:
        held = self._shelf.find(terminal)
        if held.size == (cols, rows):
            return
        self._shelf.resize(terminal, cols, rows)
        self._audience.tell_latest(Resized(terminal, cols, rows))
        for window in held.windows:
            if window.peer is not peer:
                window.resized(cols, rows)


APART = 0.005
"""Seconds between two growth notices to one window. Short, because a person waits for the echo of each key."""
WINDOWS_MAX = 32
"""Windows on one terminal; each takes one of the keeper's file descriptors."""


class Window:
    """One peer's view of a terminal; with `ends`, the terminal ends when the window closes."""

    def __init__(self, peer: Connection, terminal: str, spool: Spool, ends: bool) -> None:
        self.peer = peer
        self.ends = ends
        self._terminal = terminal
        self._spool = spool
        self._growth = Growth(APART)
        self._resized: Resized | None = None

    def grew(self) -> None:
        self._growth.grew(self._terminal)

    def resized(self, cols: int, rows: int) -> None:
        self._resized = Resized(self._terminal, cols, rows)
        self.catch_up()

    def catch_up(self) -> None:
        """Send the notices that are due, unless earlier messages are still unsent."""
        if not self.peer.wants_to_send and self._resized is not None:
            self.peer.send(self._resized)
            self._resized = None
        if not self.peer.wants_to_send and self._growth.take_due():
            self.peer.send(Grown(self._terminal, self._spool.size))

    def wait_at_most(self) -> float | None:
        return None if self.peer.wants_to_send else self._growth.wait_at_most()


class Windows:
    """All windows on one terminal; false if empty."""

    def __init__(self, terminal: str, spool: Spool) -> None:
        self._terminal, self._spool = terminal, spool
        self._open: list[Window] = []

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Window]:
        return iter(self._open)

    def open(self, peer: Connection, ends: bool) -> Window:
        window = Window(peer, self._terminal, self._spool, ends)
        self._open.append(window)
        return window

    def close(self, window: Window) -> None:
        self._open.remove(window)

    def tell(self, fact: Exited | Swept | Unrecorded) -> None:
        for window in self._open:
            window.peer.send(fact)

    def grew(self) -> None:
        for window in self._open:
            window.grew()

    def hang_up(self) -> None:
        """Close each window once its queued messages are sent."""
        for window in self._open:
            window.peer.closing = True
