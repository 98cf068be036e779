"""Every terminal the keeper holds.

Owns the terminals from start to forgetting, and their orphans. Does not know who the daemon is, nor whether there
is one.

One terminal as the keeper holds it, from its launch to the end of its tree.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from handrail.framing import LineBuffer
from handrail.keeper.attach import Windows
from handrail.keeper.connection import Growth, close_all
from handrail.keeper.event_loop import READ, WRITE
from handrail.keeper.message_framing import FRAME_MAX, encode
from handrail.keeper.process_tree import look
from handrail.keeper.protocol import (
    NOT_READING,
    TERMINAL_ID,
    Exit,
    Exited,
    Failed,
    Grown,
    Kept,
    RefusalError,
    Report,
    Seen,
    Start,
    Started,
    Stopped,
    Swept,
    Unrecorded,
)
from handrail.keeper.pty import GATHER, launch
from handrail.keeper.spool import Spool
from handrail.keeper.stop_tree import Orphans
from handrail.keeper.warden import (
    EndTree,
    FromWarden,
    Launched,
    LeaderLeft,
    NotLaunched,
    SignalLeader,
    ToWarden,
    TreeEnded,
    from_warden,
)

if TYPE_CHECKING:
    from handrail.keeper.connection import Audience, Connection
    from handrail.keeper.event_loop import Loop
    from handrail.keeper.pty import Launch, PtyEnd


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


ENDED_MAX = 1000
"""Ended terminals held for a daemon that never acknowledges them."""


class Shelf:
    """Terminals by id."""

    def __init__(
        self, loop: Loop, audience: Audience, orphans: Orphans, directory: str, limits: tuple[int, int]
    ) -> None:
        self._loop = loop
        self._audience = audience
        self._orphans = orphans
        self._directory = directory
        self._limits = limits
        self._growth = Growth()
        self._held: dict[str, Held] = {}
        self._by_warden: dict[int, Held] = {}
        self._lost: list[Held] = []

    def all(self) -> list[Held]:
        return list(self._held.values())

    def living(self) -> list[Held]:
        return [held for held in self._held.values() if held.report is None]

    def wardens(self) -> set[tuple[int, int]]:
        return {held.warden for held in self._by_warden.values() if held.warden is not None}

    def start(self, order: Start) -> None:
        """Answered when the program runs, or cannot."""
        directory = self._new_directory(order)
        try:
            launched = launch(order, self._limits)
        except OSError as error:
            raise RefusalError(f"No process could be started: {error.strerror}.") from None
        spool = Spool(directory, order.cap_bytes, order.cap_lines)
        held = Held(order, launched, spool, self._loop, self._growth, self._audience)
        self._held[order.terminal] = held
        self._by_warden[held.warden_pid] = held
        self._orphans.spared.add(held.warden_pid)

    def find(self, terminal: str) -> Held:
        held = self._held.get(terminal)
        if held is None:
            raise RefusalError(f"There is no terminal {terminal}.")
        return held

    def find_running(self, terminal: str) -> Held:
        held = self.find(terminal)
        if held.exit is not None:
            raise RefusalError(f"Terminal {terminal} has ended.")
        return held

    def type(self, terminal: str, data: bytes, person: bool) -> tuple[bool, bool]:
        """Whether the terminal hid what is typed, and whether it was typed: an agent's input is not, where it is hidden."""
        held, pty = self._find_pty(terminal)
        secret = pty.is_secret
        if secret and not person:
            return True, False
        if not pty.type(data, person):
            why = f"Terminal {terminal} is not reading; what was typed before still waits."
            raise RefusalError(why, NOT_READING)
        held.watch_pty()
        return secret, True

    def look(self, terminal: str) -> Seen:
        held, pty = self._find_pty(terminal)
        return look(pty, held.pid, held.warden_pid)

    def resize(self, terminal: str, cols: int, rows: int) -> None:
        held = self.find_running(terminal)
        if not (0 < cols < 65536 and 0 < rows < 65536):
            raise RefusalError(f"A terminal cannot have {cols} columns and {rows} rows.")
        held.size = (cols, rows)
        if held.pty is not None:
            held.pty.resize(cols, rows)

    def signal(self, terminal: str, number: int) -> None:
        """To the leader alone."""
        if number not in signal.valid_signals():
            raise RefusalError(f"There is no signal {number}.")
        self.find_running(terminal).tell_warden(SignalLeader(number))

    def stop(self, peer: Connection, request: int, terminal: str, grace: float) -> None:
        """Answered when nothing of the tree is left."""
        self.find(terminal).stop(peer, request, grace)

    def forget(self, terminal: str, delete: bool = False) -> None:
        held = self.find(terminal)
        if held.report is None:
            raise RefusalError(f"Terminal {terminal} has not ended; stop it first.")
        del self._held[terminal]
        self._growth.forget(terminal)
        held.windows.hang_up()
        if delete:
            held.spool.delete()

    def wake(self, pid: int) -> None:
        """A child of the keeper was stopped. A warden must not be: it alone sees how its program ends."""
        if pid in self._by_warden:
            os.kill(pid, signal.SIGCONT)

    def reaped(self, pid: int) -> None:
        """A child of the keeper is dead. If it was a warden, what it had not ended has fallen to us."""
        self._orphans.spared.discard(pid)
        held = self._by_warden.pop(pid, None)
        if held is not None:
            held.hear_last_words()
            self._orphans.look()
            if held.report is None:
                self._lost.append(held)
            self._drop_ended()

    def tick(self) -> None:
        """What is due by time alone."""
        if self._audience.has_room:
            self._tell_growth()
        self._end_orphans()
        now = time.monotonic()
        for held in self._by_warden.values():
            if held.stuck_at is not None and held.stuck_at < now:
                held.stuck_at = None
                os.kill(held.warden_pid, signal.SIGKILL)

    def wait_at_most(self) -> float | None:
        now = time.monotonic()
        waits = [held.stuck_at - now for held in self._by_warden.values() if held.stuck_at is not None]
        growth = self._growth.wait_at_most() if self._audience.has_room else None
        waits += [wait for wait in (growth, self._orphans.wait_at_most()) if wait is not None]
        return max(0.0, min(waits)) if waits else None

    def _find_pty(self, terminal: str) -> tuple[Held, PtyEnd]:
        held = self.find_running(terminal)
        if held.pty is None:
            raise RefusalError(f"Terminal {terminal} has pipes: nobody types there.")
        return held, held.pty

    def _new_directory(self, order: Start) -> str:
        if not TERMINAL_ID.fullmatch(order.terminal) or not order.argv:
            raise RefusalError("A terminal needs a command, and an id of letters, digits, - and _.")
        directory = os.path.join(self._directory, order.terminal)
        if order.terminal in self._held or os.path.lexists(directory):
            raise RefusalError(f"There already is a terminal {order.terminal}.")
        return directory

    def _tell_growth(self) -> None:
        for terminal in self._growth.take_due():
            spool = self._held[terminal].spool
            spool.note()
            self._audience.tell(Grown(terminal, spool.size))

    def _end_orphans(self) -> None:
        report = self._orphans.go_on()
        if self._lost and self._orphans.wait_at_most() is None:
            for held in self._lost:
                held.lose(report or Report("warden gone"))
            self._lost.clear()
            self._drop_ended()

    def _drop_ended(self) -> None:
        ended = [held for held in self._held.values() if held.report is not None]
        failed = [held for held in ended if held.failed]
        for held in failed + ended[: max(0, len(ended) - ENDED_MAX)]:
            if held.order.terminal in self._held:
                self.forget(held.order.terminal)
