"""The fork of a warden, with everything its leader will hold.

Owns the descriptors until they are handed over, and leaves none open when something fails. Does not know what
becomes of the terminal afterwards.
"""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handrail.keeper import lineage, warden
from handrail.keeper.pty_end import PtyEnd

if TYPE_CHECKING:
    from handrail.keeper.protocol import Start


@dataclass(frozen=True, slots=True)
class Launch:
    """A warden on its way: our end of its link, and of its leader's PTY or pipes."""

    warden_pid: int
    warden: tuple[int, int] | None
    link: socket.socket
    pty: PtyEnd | None
    pipes: tuple[int, ...]


def launch(order: Start, descriptors: tuple[int, int]) -> Launch:
    """Start a warden whose leader gets this limit on open files. Raises OSError when the system has no room."""
    with ExitStack() as undo:
        pty, pipes, stdio = _pipes(undo) if order.pipes else _pty(order, undo)
        link, theirs = socket.socketpair()
        undo.callback(link.close)
        with theirs:
            pid = os.fork()
            if pid == 0:
                warden.run(order, stdio, theirs, descriptors)
        undo.pop_all()
    if pty is None:
        for fd in stdio:
            os.close(fd)
    link.setblocking(False)
    return Launch(pid, lineage.identity(pid), link, pty, pipes)


def _pty(order: Start, undo: ExitStack) -> tuple[PtyEnd | None, tuple[int, ...], tuple[int, int, int]]:
    pty = PtyEnd(order.cols, order.rows)
    undo.callback(pty.close)
    return pty, (), (pty.slave, pty.slave, pty.slave)


def _pipes(undo: ExitStack) -> tuple[PtyEnd | None, tuple[int, ...], tuple[int, int, int]]:
    pairs: list[tuple[int, int]] = []
    for _ in range(3):
        pairs.append(os.pipe())
        for fd in pairs[-1]:
            undo.callback(os.close, fd)
    (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr) = pairs
    return None, (to_stdin, from_stdout, from_stderr), (stdin, stdout, stderr)
