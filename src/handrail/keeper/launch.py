"""Launch of terminals: a warden, and a PTY or pipes for its leader.

A warden is forked for its order, or was forked before: after the first command a spare one waits for the next, because
two forks of a Python process take longer than a short command. The spare is marked, unreadable and without a PTY, holds
no order, is used once, and ends with the keeper.
"""

from __future__ import annotations

import contextlib
import os
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from handrail.keeper import lineage, warden
from handrail.keeper.message_framing import encode
from handrail.keeper.pty import PtyMaster

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from handrail.keeper.protocol import Start

ORDER_MAX = 64 * 1024
"""Bytes of an order for a spare warden. It fits into the buffer of a socket, so that sending it never waits."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A forked warden: our end of its link, and of its leader's PTY or pipes."""

    warden_pid: int
    warden: tuple[int, int] | None
    link: socket.socket
    pty: PtyMaster | None
    pipes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Spare:
    """A warden without an order; its leader waits for one at the other end of `orders`."""

    pid: int
    warden: tuple[int, int] | None
    link: socket.socket
    orders: socket.socket

    @classmethod
    def fork(cls, descriptors: tuple[int, int]) -> Spare:
        with ExitStack() as undo:
            orders, theirs = socket.socketpair()
            undo.callback(orders.close)
            with theirs:
                lead = partial(warden.wait_for_order, theirs, descriptors)
                pid, link = _fork_warden({theirs.fileno()}, 0.0, lead)
            undo.pop_all()
        orders.setblocking(False)
        return cls(pid, lineage.identity(pid), link, orders)

    def send(self, order: Start, slave: int) -> bool:
        """Send the order and the PTY; False if it is too long, or if the warden or its leader is gone."""
        line = encode(order)
        try:
            return (
                len(line) <= ORDER_MAX
                and self.link.send(encode(warden.Begin(order.grace))) > 0
                and socket.send_fds(self.orders, [line], [slave]) == len(line)
            )
        except OSError:
            return False

    def close(self) -> None:
        """Close both sockets, on which warden and leader exit."""
        self.link.close()
        self.orders.close()


class Launcher:
    """Launches terminals; their leaders get this limit on open files."""

    def __init__(self, descriptors: tuple[int, int]) -> None:
        self.spare: Spare | None = None
        self._descriptors = descriptors

    def launch(self, order: Start) -> Launch:
        """Start the order with the spare warden, or with a new one. Raises OSError if the system lacks resources."""
        if order.pipes:
            return self._launch_pipes(order)
        with ExitStack() as undo:
            pty = PtyMaster(order.cols, order.rows)
            undo.callback(pty.close)
            launched = self._use_spare(order, pty) or self._launch_pty(order, pty)
            undo.pop_all()
        return launched

    def fork_spare(self) -> None:
        with contextlib.suppress(OSError):  # the next launch forks, and reports the reason
            self.spare = self.spare or Spare.fork(self._descriptors)

    def drop_spare(self) -> None:
        if self.spare is not None:
            self.spare.close()
            self.spare = None

    def _use_spare(self, order: Start, pty: PtyMaster) -> Launch | None:
        """Use the spare warden; None if there is none, or if it cannot be used."""
        spare = self.spare
        if spare is None or not spare.send(order, pty.slave):
            self.drop_spare()
            return None
        self.spare = None
        spare.orders.close()
        return Launch(spare.pid, spare.warden, spare.link, pty, ())

    def _launch_pty(self, order: Start, pty: PtyMaster) -> Launch:
        lead = partial(warden.become, order, (pty.slave, pty.slave, pty.slave), self._descriptors)
        pid, link = _fork_warden({pty.slave}, order.grace, lead)
        return Launch(pid, lineage.identity(pid), link, pty, ())

    def _launch_pipes(self, order: Start) -> Launch:
        with ExitStack() as undo:
            pipes, stdio = _open_pipes(undo)
            lead = partial(warden.become, order, stdio, self._descriptors)
            pid, link = _fork_warden(set(stdio), order.grace, lead)
            undo.pop_all()
        for fd in stdio:
            os.close(fd)
        return Launch(pid, lineage.identity(pid), link, None, pipes)


def _fork_warden(
    descriptors: set[int], grace: float, lead: Callable[[int], NoReturn]
) -> tuple[int, socket.socket]:
    """Fork a warden that keeps these descriptors for its leader; return its pid, and our end of its link."""
    link, theirs = socket.socketpair()
    with theirs:
        try:
            pid = os.fork()
        except OSError:
            link.close()
            raise
        if pid == 0:
            warden.run(theirs, descriptors, grace, lead)
    link.setblocking(False)
    return pid, link


def _open_pipes(undo: ExitStack) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Our ends and the leader's ends of stdin, stdout and stderr."""
    pairs: list[tuple[int, int]] = []
    for _ in range(3):
        pairs.append(os.pipe())
        for fd in pairs[-1]:
            undo.callback(os.close, fd)
    (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr) = pairs
    return (to_stdin, from_stdout, from_stderr), (stdin, stdout, stderr)
