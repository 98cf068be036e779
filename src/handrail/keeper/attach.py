"""Windows: connections through which a person sees and types into one terminal, with or without a daemon.

A window can only reach its own terminal. Input typed in a window is reported to the daemon, or queued for the next one.
The server decides which peers may attach.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from handrail.keeper.connection import GrowthThrottle
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

    from handrail.keeper.connection import Connection, DaemonChannel
    from handrail.keeper.protocol import Exited, Request, Swept, Unrecorded
    from handrail.keeper.spool import Spool
    from handrail.keeper.terminals import Terminal, Terminals


class Attachments:
    """The connections that are windows, each with its terminal."""

    def __init__(self, terminals: Terminals, channel: DaemonChannel) -> None:
        self._terminals, self._channel = terminals, channel
        self._attached: dict[Connection, tuple[Terminal, Window]] = {}

    def __contains__(self, peer: Connection) -> bool:
        return peer in self._attached

    @property
    def peers(self) -> list[Connection]:
        return list(self._attached)

    def attach(self, peer: Connection, hello: Hello) -> None:
        """Open a window: send the welcome and the terminal's state. Raises RefusalError."""
        terminal = self._terminals.find(hello.terminal)
        if terminal.order.pipes:
            raise RefusalError(f"Terminal {hello.terminal} has pipes: there is nothing to see in a window.")
        if len(terminal.windows) >= WINDOWS_MAX:
            raise RefusalError(f"Terminal {hello.terminal} has {WINDOWS_MAX} windows already.")
        self._attached[peer] = terminal, terminal.windows.open(peer, hello.ends)
        peer.send(Welcome(PROTOCOL, os.getpid(), kept=1))
        peer.send(terminal.state())
        if len(terminal.windows) == 1:
            self._channel.send_latest(Attached(hello.terminal, attached=True))

    def answer(self, peer: Connection, request: Request) -> None:
        terminal_id = self._attached[peer][0].order.terminal
        try:
            self._execute(peer, terminal_id, request)
        except RefusalError as refusal:
            peer.send(Failed(request.id, str(refusal), refusal.code))
        except OSError as error:
            peer.send(Failed(request.id, f"The system refused: {error.strerror}."))

    def left(self, peer: Connection) -> None:
        terminal, window = self._attached.pop(peer)
        terminal.windows.close(window)
        terminal.forget_stops(peer)
        if not terminal.windows:
            self._channel.send_latest(Attached(terminal.order.terminal, attached=False))
        if window.ends and terminal.report is None:
            terminal.end(terminal.order.grace)

    def tick(self) -> None:
        for _, window in self._attached.values():
            window.catch_up()

    def wait_at_most(self) -> float | None:
        waits = (window.wait_at_most() for _, window in self._attached.values())
        return min((wait for wait in waits if wait is not None), default=None)

    def _execute(self, peer: Connection, terminal_id: str, request: Request) -> None:
        match request:
            case Input(id, of, data) if of == terminal_id:
                peer.send(Typed(id, self._type(terminal_id, data), typed=True))
            case Resize(id, of, cols, rows) if of == terminal_id:
                self._resize(peer, terminal_id, cols, rows)
                peer.send(Done(id))
            case Signal(id, of, number) if of == terminal_id:
                self._terminals.signal(terminal_id, number)
                peer.send(Done(id))
            case Stop(id, of, grace) if of == terminal_id:
                self._terminals.stop(peer, id, terminal_id, grace)
            case _:
                raise RefusalError(
                    f"A window on terminal {terminal_id} may type, resize, signal and stop there, and nothing else."
                )

    def _type(self, terminal_id: str, data: bytes) -> bool:
        """Type as a person, whatever `Input.person` is. Returns True if the echo was off: then the text is not reported."""
        size = self._terminals.find(terminal_id).spool.size
        secret, _ = self._terminals.type(terminal_id, data, person=True)
        if data:
            self._channel.queue_input(Overheard(terminal_id, b"" if secret else data, secret, size))
        return secret

    def _resize(self, peer: Connection, terminal_id: str, cols: int, rows: int) -> None:
        terminal = self._terminals.find(terminal_id)
        if terminal.size == (cols, rows):
            return
        self._terminals.resize(terminal_id, cols, rows)
        self._channel.send_latest(Resized(terminal_id, cols, rows))
        for window in terminal.windows:
            if window.peer is not peer:
                window.resized(cols, rows)


GROWTH_INTERVAL = 0.005
"""Seconds between two growth notices to one window. Short, because a person waits for the echo of each key."""
WINDOWS_MAX = 32
"""Windows on one terminal; each takes one of the keeper's file descriptors."""


class Window:
    """One peer's view of a terminal; with `ends`, the terminal ends when the window closes."""

    def __init__(self, peer: Connection, terminal_id: str, spool: Spool, ends: bool) -> None:
        self.peer = peer
        self.ends = ends
        self._terminal = terminal_id
        self._spool = spool
        self._growth = GrowthThrottle(GROWTH_INTERVAL)
        self._resized: Resized | None = None

    @property
    def due_at(self) -> float:
        """The time before which output causes no notice."""
        return self._growth.due_at(self._terminal)

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

    def __init__(self, terminal_id: str, spool: Spool) -> None:
        self._terminal, self._spool = terminal_id, spool
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

    def send(self, fact: Exited | Swept | Unrecorded) -> None:
        for window in self._open:
            window.peer.send(fact)

    @property
    def due_at(self) -> float:
        """The time before which output causes no notice to any window."""
        return min((window.due_at for window in self._open), default=math.inf)

    def grew(self) -> None:
        for window in self._open:
            window.grew()

    def hang_up(self) -> None:
        """Close each window once its queued messages are sent."""
        for window in self._open:
            window.peer.closing = True
