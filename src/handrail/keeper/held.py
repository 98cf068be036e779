"""One terminal as the keeper holds it, from its launch to the end of its tree.

Owns its PTY, its spool, the link to its warden and the facts so far, and tells the daemon of each as it becomes
known. Does not know other terminals, nor what a request looks like.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from handrail.framing import LineBuffer
from handrail.keeper.connection import close_all
from handrail.keeper.facts import Exit, Report
from handrail.keeper.frames import FRAME_MAX, encode
from handrail.keeper.link import (
    EndTree,
    FromWarden,
    Launched,
    LeaderLeft,
    NotLaunched,
    ToWarden,
    TreeEnded,
    from_warden,
)
from handrail.keeper.loop import READ, WRITE
from handrail.keeper.protocol import Exited, Failed, Kept, Start, Started, Stopped, Swept, Unrecorded
from handrail.keeper.pty_end import GATHER
from handrail.keeper.windows import Windows

if TYPE_CHECKING:
    from handrail.keeper.audience import Audience
    from handrail.keeper.connection import Connection
    from handrail.keeper.growth import Growth
    from handrail.keeper.launch import Launch
    from handrail.keeper.loop import Loop
    from handrail.keeper.spool import Spool

PATIENCE = 5.0
"""Seconds past its grace after which a warden that has not ended its tree, or not left after that, is taken for stuck."""
PASS_BYTES = 1024 * 1024
"""Bytes taken from all terminals in one pass of the loop, so that a hundred storms do not delay a message."""
_LOST = Exit(lost="Its warden was killed, so how it ended is not known.")


class Held:
    """A terminal, its warden and its output."""

    def __init__(
        self, order: Start, launched: Launch, spool: Spool, loop: Loop, growth: Growth, audience: Audience
    ) -> None:
        self.order = replace(order, env={})  # it has what it needs; secrets need not lie here too
        self.warden_pid = launched.warden_pid
        self.warden = launched.warden
        self.pty = launched.pty
        self.size = (order.cols, order.rows)
        self.spool = spool
        self.windows = Windows(order.terminal, spool)
        self.exit: Exit | None = None
        self.report: Report | None = None
        self.failed = False
        self.stuck_at: float | None = None
        self.pid = 0
        self._created_at = time.time()
        self._pipes = launched.pipes
        self._link = launched.link
        self._lines = LineBuffer(FRAME_MAX)
        self._start_id: int | None = order.id
        self._stops: list[tuple[Connection, int]] = []
        self._told_unrecorded = False
        self._loop, self._growth, self._audience = loop, growth, audience
        loop.watch(self._link.fileno(), READ, self._on_link)
        self.watch_pty()

    def state(self) -> Kept:
        return Kept(
            terminal=self.order.terminal,
            argv=self.order.argv,
            cwd=self.order.cwd,
            pid=self.pid,
            created_at=self._created_at,
            cols=self.size[0],
            rows=self.size[1],
            pipes=self.order.pipes,
            size=self.spool.size,
            exit=self.exit,
            report=self.report,
            unrecorded=self.spool.unrecorded,
            note=self.order.note,
            attached=bool(self.windows),
        )

    def stop(self, peer: Connection, request: int, grace: float) -> None:
        """Have the tree ended, and answer when nothing of it is left."""
        if self.report is not None:
            peer.send(Stopped(request, self.report))
        else:
            self._stops.append((peer, request))
            self.end(grace)

    def end(self, grace: float) -> None:
        """Have the warden end the tree."""
        self.tell_warden(EndTree(max(0.0, grace)))
        self._expect_end(max(0.0, grace))

    def tell_warden(self, message: ToWarden) -> None:
        if self._link.fileno() < 0:
            return  # it is gone, and its pid may be another's
        # A child of the same user may have stopped its warden.
        with contextlib.suppress(OSError):
            os.kill(self.warden_pid, signal.SIGCONT)
            self._link.send(encode(message))

    def hear_last_words(self) -> None:
        """The warden is dead: take what it said before."""
        while self._link.fileno() >= 0:
            self._on_link()

    def lose(self, report: Report) -> None:
        """The warden was killed and its orphans have been ended."""
        if self.pid == 0:
            self._never_ran("Its warden was killed before it had started.")
        elif self.exit is None:
            self._on_leader_left(_LOST)
        self._on_tree_ended(report)

    def forget_stops(self, peer: Connection) -> None:
        """Whoever asked is gone."""
        self._stops = [(asker, request) for asker, request in self._stops if asker is not peer]

    def forget_daemon(self, daemon: Connection) -> None:
        """The daemon is gone; and where it held pipes, so is the other end of them."""
        self._start_id = None
        self.forget_stops(daemon)
        if self.order.pipes and self.report is None:
            self.end(self.order.grace)

    def watch_pty(self) -> None:
        if self.pty is not None:
            writing = WRITE if self.pty.wants_to_write else 0
            self._loop.watch(self.pty.fd, READ | writing, self._on_pty)

    def _on_pty(self, events: int) -> None:
        assert self.pty is not None
        if events & WRITE:
            self.pty.write_input()
            self.watch_pty()
        if events & READ:
            budget = min(max(PASS_BYTES // self._loop.crowd, 16 * 1024), GATHER)
            if not self.pty.pump(self.spool, budget):
                self._loop.watch(self.pty.fd, 0, self._on_pty)
            self._note_growth()

    def _on_link(self, _events: int = 0) -> None:
        try:
            data = self._link.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        for line in self._lines.feed(data):
            self._on_warden(from_warden(line))
        if not data:
            self._loop.watch(self._link.fileno(), 0, self._on_link)
            self._link.close()

    def _on_warden(self, message: FromWarden) -> None:
        match message:
            case Launched(pid):
                self._on_launched(pid)
            case NotLaunched(why):
                self._never_ran(why)
            case LeaderLeft(exit):
                self._on_leader_left(exit)
            case TreeEnded(report):
                self._on_tree_ended(report)

    def _on_launched(self, pid: int) -> None:
        self.pid = pid
        if self._start_id is None:
            close_all(self._pipes)
        else:
            self._audience.tell(Started(self._start_id, pid, len(self._pipes)), self._pipes)
        self._pipes, self._start_id = (), None

    def _never_ran(self, why: str) -> None:
        self.failed = True
        if self._start_id is not None:
            self._audience.tell(Failed(self._start_id, why))
        close_all(self._pipes)
        self._pipes, self._start_id = (), None

    def _on_leader_left(self, exit: Exit) -> None:
        if self.pid == 0:
            self._never_ran("It was stopped before it had started.")
        self._drain()
        self.exit = exit
        self._expect_end(self.order.grace)
        if not self.failed:
            self._tell(Exited(self.order.terminal, exit, self.spool.size))

    def _on_tree_ended(self, report: Report) -> None:
        self._drain()
        self._close_pty()
        self.report, self.stuck_at = report, time.monotonic() + PATIENCE
        if not self.failed:
            self._tell(Swept(self.order.terminal, report, self.spool.size))
        for peer, request in self._stops:
            peer.send(Stopped(request, report))
        self._stops.clear()

    def _expect_end(self, grace: float) -> None:
        due = time.monotonic() + grace + PATIENCE
        self.stuck_at = due if self.stuck_at is None else min(due, self.stuck_at)

    def _drain(self) -> None:
        if self.pty is not None:
            self.pty.drain(self.spool)
            self._note_growth()

    def _note_growth(self) -> None:
        self._growth.grew(self.order.terminal)
        self.windows.grew()
        if self.spool.unrecorded is not None and not self._told_unrecorded:
            self._told_unrecorded = True
            self._tell(Unrecorded(self.order.terminal, self.spool.size, self.spool.unrecorded))

    def _tell(self, fact: Exited | Swept | Unrecorded) -> None:
        self._audience.tell(fact)
        self.windows.tell(fact)

    def _close_pty(self) -> None:
        if self.pty is not None:
            self._loop.watch(self.pty.fd, 0, self._on_pty)
            self.pty.close()
            self.pty = None
        self.spool.close()
