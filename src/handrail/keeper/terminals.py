"""The keeper's terminals: each with its warden, PTY or pipes, spool and windows, from launch until it is forgotten.

They run with or without a connected daemon.
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
from handrail.keeper.connection import GrowthThrottle, close_descriptors
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
from handrail.keeper.pty import GATHER, Launcher
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
    from collections.abc import Callable

    from handrail.keeper.connection import Connection, DaemonChannel
    from handrail.keeper.event_loop import Loop
    from handrail.keeper.pty import Launch, PtyMaster, WardenProcess


PATIENCE = 5.0
"""Seconds after the grace for a warden to stop its tree, and again to exit; after that it counts as stuck and is killed."""
PASS_BYTES = 1024 * 1024
"""Bytes read from all terminals in one pass of the loop: a hundred output storms must not delay a message."""
SPARE_SECONDS = 0.05
"""Seconds after a start before an idle warden is forked, if none is left; it must not delay a command's first messages."""
_LOST = Exit(lost="Its warden was killed, so how it ended is not known.")


class Terminal:
    """One terminal: its warden, its output and its windows."""

    def __init__(
        self,
        order: Start,
        launched: Launch,
        spool: Spool,
        loop: Loop,
        growth: GrowthThrottle,
        channel: DaemonChannel,
        on_idle: Callable[[WardenProcess, bool], None],
    ) -> None:
        """`on_idle` takes the warden when the tree has ended, and whether a process of the tree has changed it."""
        self.order = replace(order, env={})  # the program has its environment; do not keep secrets in memory
        self.warden: WardenProcess | None = launched.warden
        """None once the tree has ended, because the warden may then have another; kept if processes are left."""
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
        self._lines = LineBuffer(FRAME_MAX)
        self._start_id: int | None = order.id
        self._stops: list[tuple[Connection, int]] = []
        self._reported_unrecorded = False
        self._altered = False
        self._loop, self._growth, self._channel = loop, growth, channel
        self._on_idle = on_idle
        loop.watch(launched.warden.link.fileno(), READ, self._on_link)
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
        """Stop the tree, and reply with `Stopped` when it has ended."""
        if self.report is not None:
            peer.send(Stopped(request, self.report))
        else:
            self._stops.append((peer, request))
            self.end(grace)

    def end(self, grace: float) -> None:
        """Request the warden to stop the tree."""
        self.send_to_warden(EndTree(max(0.0, grace)))
        self._expect_end(max(0.0, grace))

    def send_to_warden(self, message: ToWarden) -> None:
        if self.warden is None or self.warden.link.fileno() < 0:
            return  # the warden is dead, and its pid may be reused
        with contextlib.suppress(OSError):
            self.warden.wake()
            self.warden.link.send(encode(message))

    def read_last_messages(self) -> None:
        """Read the messages that a dead warden has left in the socket."""
        while self.warden is not None and self.warden.link.fileno() >= 0:
            self._on_link(is_dead=True)

    def lose(self, report: Report) -> None:
        """End the terminal after its warden was killed and its orphans were stopped."""
        if self.pid == 0:
            self._never_ran("Its warden was killed before it had started.")
        elif self.exit is None:
            self._on_leader_left(_LOST)
        self._on_tree_ended(report)

    def forget_stops(self, peer: Connection) -> None:
        """Drop the stop requests of a peer that has disconnected."""
        self._stops = [(waiter, request) for waiter, request in self._stops if waiter is not peer]

    def forget_daemon(self, daemon: Connection) -> None:
        """Drop the requests of a daemon that has disconnected; stop the tree if the daemon held its pipes."""
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
            self._read_output(self.pty)

    def _read_output(self, pty: PtyMaster) -> None:
        """Read the available output. In a flood, go on while there is nothing else to do and no notice is due."""
        budget = min(max(PASS_BYTES // self._loop.ready_count, 16 * 1024), GATHER)
        with contextlib.closing(self._loop.wait_alone(pty.fd, self._quiet_until(pty))) as more:
            is_open = pty.pump(self.spool, budget, more)
        if not is_open:
            self._loop.watch(pty.fd, 0, self._on_pty)
        self._note_growth()

    def _quiet_until(self, pty: PtyMaster) -> float:
        """The time until which this terminal alone may be read: 0 if others have output too, or if input waits."""
        if self._loop.ready_count > 1 or pty.wants_to_write:
            return 0.0
        return min(self._growth.due_at(self.order.terminal), self.windows.due_at)

    def _on_link(self, _events: int = 0, *, is_dead: bool = False) -> None:
        """Handle what the warden has sent. Of a dead one, a child that has not executed yet may hold the link open."""
        assert self.warden is not None
        link = self.warden.link
        try:
            data = link.recv(65536)
        except BlockingIOError:
            if not is_dead:
                return
            data = b""
        except OSError:
            data = b""
        with self._channel.batch():
            for line in self._lines.feed(data):
                self._on_warden(from_warden(line))
        if not data:
            self._loop.watch(link.fileno(), 0, self._on_link)
            link.close()
        elif self.report is not None and not self.report.left:
            self._release_warden(self.warden)

    def _release_warden(self, warden: WardenProcess) -> None:
        self._loop.watch(warden.link.fileno(), 0, self._on_link)
        self.warden = self.stuck_at = None
        self._on_idle(warden, self._altered)

    def _on_warden(self, message: FromWarden) -> None:
        match message:
            case Launched(pid):
                self._on_launched(pid)
            case NotLaunched(why):
                self._never_ran(why)
            case LeaderLeft(exit):
                self._on_leader_left(exit)
            case TreeEnded(report, altered):
                self._altered = altered
                self._on_tree_ended(report)

    def _on_launched(self, pid: int) -> None:
        self.pid = pid
        if self._start_id is None:
            close_descriptors(self._pipes)
        else:
            self._channel.send(Started(self._start_id, pid, len(self._pipes)), self._pipes)
        self._pipes, self._start_id = (), None

    def _never_ran(self, why: str) -> None:
        self.failed = True
        if self._start_id is not None:
            self._channel.send(Failed(self._start_id, why))
        close_descriptors(self._pipes)
        self._pipes, self._start_id = (), None

    def _on_leader_left(self, exit: Exit) -> None:
        if self.pid == 0:
            self._never_ran("It was stopped before it had started.")
        self._drain()
        self.exit = exit
        self._expect_end(self.order.grace)
        if not self.failed:
            self._notify(Exited(self.order.terminal, exit, self.spool.size))

    def _on_tree_ended(self, report: Report) -> None:
        self._drain()
        self._close_pty()
        self.report, self.stuck_at = report, time.monotonic() + PATIENCE
        if not self.failed:
            self._notify(Swept(self.order.terminal, report, self.spool.size))
        for peer, request in self._stops:
            peer.send(Stopped(request, report))
        self._stops.clear()

    def _expect_end(self, grace: float) -> None:
        due = time.monotonic() + grace + PATIENCE
        self.stuck_at = due if self.stuck_at is None else min(due, self.stuck_at)

    def _drain(self) -> None:
        if self.pty is not None:
            before = self.spool.size
            self.pty.drain(self.spool)
            if self.spool.size > before or self.spool.unrecorded is not None:
                self._note_growth()

    def _note_growth(self) -> None:
        self._growth.grew(self.order.terminal)
        self.windows.grew()
        if self.spool.unrecorded is not None and not self._reported_unrecorded:
            self._reported_unrecorded = True
            self._notify(Unrecorded(self.order.terminal, self.spool.size, self.spool.unrecorded))

    def _notify(self, fact: Exited | Swept | Unrecorded) -> None:
        self._channel.send(fact)
        self.windows.send(fact)

    def _close_pty(self) -> None:
        if self.pty is not None:
            self._loop.watch(self.pty.fd, 0, self._on_pty)
            self.pty.close()
            self.pty = None
        self.spool.close()


ENDED_MAX = 1000
"""Ended terminals kept in memory for a daemon that never sends `Forget`."""


class Terminals:
    """All terminals by id. Methods that take an id raise RefusalError if there is no such terminal."""

    def __init__(
        self, loop: Loop, channel: DaemonChannel, orphans: Orphans, directory: str, limits: tuple[int, int]
    ) -> None:
        self._loop = loop
        self._channel = channel
        self._orphans = orphans
        self._directory = directory
        self._launcher = Launcher(limits)
        self._fork_at: float | None = None
        """When an idle warden is forked, unless one has returned from its tree by then."""
        self._growth = GrowthThrottle()
        self._by_id: dict[str, Terminal] = {}
        self._by_warden: dict[int, Terminal] = {}
        self._lost: list[Terminal] = []

    def all(self) -> list[Terminal]:
        return list(self._by_id.values())

    def living(self) -> list[Terminal]:
        return [terminal for terminal in self._by_id.values() if terminal.report is None]

    def wardens(self) -> set[tuple[int, int]]:
        wardens = [terminal.warden for terminal in self._by_warden.values()]
        return {warden.identity for warden in wardens if warden is not None and warden.identity is not None}

    def start(self, order: Start) -> None:
        """Launch a terminal. The reply is sent when the program runs or has failed to start. Raises RefusalError."""
        directory = self._new_directory(order)
        try:
            launched = self._launcher.launch(order)
        except OSError as error:
            raise RefusalError(f"No process could be started: {error.strerror}.") from None
        spool = Spool(directory, order.cap_bytes, order.cap_lines)
        growth, channel = self._growth, self._channel
        terminal = Terminal(order, launched, spool, self._loop, growth, channel, self._on_idle)
        self._by_id[order.terminal] = terminal
        self._by_warden[launched.warden.pid] = terminal
        self._orphans.spared.add(launched.warden.pid)
        self._fork_at = time.monotonic() + SPARE_SECONDS

    def find(self, terminal_id: str) -> Terminal:
        terminal = self._by_id.get(terminal_id)
        if terminal is None:
            raise RefusalError(f"There is no terminal {terminal_id}.")
        return terminal

    def find_running(self, terminal_id: str) -> Terminal:
        terminal = self.find(terminal_id)
        if terminal.exit is not None:
            raise RefusalError(f"Terminal {terminal_id} has ended.")
        return terminal

    def type(self, terminal_id: str, data: bytes, person: bool) -> tuple[bool, bool]:
        """Type into a terminal. Returns (secret, typed): at a password prompt, an agent's input is not typed."""
        terminal, pty = self._find_pty(terminal_id)
        secret = pty.is_secret
        if secret and not person:
            return True, False
        if not pty.type(data, person):
            why = f"Terminal {terminal_id} is not reading; what was typed before still waits."
            raise RefusalError(why, NOT_READING)
        terminal.watch_pty()
        return secret, True

    def look(self, terminal_id: str) -> Seen:
        terminal, pty = self._find_pty(terminal_id)
        assert terminal.warden is not None, "it runs"
        return look(pty, terminal.pid, terminal.warden.pid)

    def resize(self, terminal_id: str, cols: int, rows: int) -> None:
        terminal = self.find_running(terminal_id)
        if not (0 < cols < 65536 and 0 < rows < 65536):
            raise RefusalError(f"A terminal cannot have {cols} columns and {rows} rows.")
        terminal.size = (cols, rows)
        if terminal.pty is not None:
            terminal.pty.resize(cols, rows)

    def signal(self, terminal_id: str, number: int) -> None:
        """Send a signal to the leader only."""
        if number not in signal.valid_signals():
            raise RefusalError(f"There is no signal {number}.")
        self.find_running(terminal_id).send_to_warden(SignalLeader(number))

    def stop(self, peer: Connection, request: int, terminal_id: str, grace: float) -> None:
        """Stop a terminal's tree. The reply is sent when the tree has ended."""
        self.find(terminal_id).stop(peer, request, grace)

    def forget(self, terminal_id: str, delete: bool = False) -> None:
        terminal = self.find(terminal_id)
        if terminal.report is None:
            raise RefusalError(f"Terminal {terminal_id} has not ended; stop it first.")
        del self._by_id[terminal_id]
        self._growth.forget(terminal_id)
        terminal.windows.hang_up()
        if delete:
            terminal.spool.delete()

    def wake(self, pid: int) -> None:
        """Continue a stopped child if it is a warden: only the warden can report how its program ends."""
        if pid in self._by_warden or pid in self._launcher.idle:
            os.kill(pid, signal.SIGCONT)

    def reaped(self, pid: int) -> None:
        """Handle the death of a child of the keeper. The keeper adopts the remaining processes of a dead warden."""
        self._orphans.spared.discard(pid)
        terminal = self._by_warden.pop(pid, None)
        if terminal is not None:
            terminal.read_last_messages()
            self._orphans.look()
            if terminal.report is None:
                self._lost.append(terminal)
            self._drop_ended()
        idle = self._launcher.idle.pop(pid, None)
        if idle is not None:
            idle.link.close()

    def tick(self) -> None:
        """Run everything that is due: growth notices, killing of orphans, killing of stuck wardens."""
        if self._channel.has_room:
            self._notify_growth()
        self._end_orphans()
        now = time.monotonic()
        if self._fork_at is not None and self._fork_at <= now:
            self._fork_at = None
            self._fork_idle()
        for pid, terminal in self._by_warden.items():
            if terminal.stuck_at is not None and terminal.stuck_at < now:
                terminal.stuck_at = None
                os.kill(pid, signal.SIGKILL)

    def wait_at_most(self) -> float | None:
        now = time.monotonic()
        waits = [
            terminal.stuck_at - now for terminal in self._by_warden.values() if terminal.stuck_at is not None
        ]
        growth = self._growth.wait_at_most() if self._channel.has_room else None
        fork = None if self._fork_at is None else self._fork_at - now
        waits += [wait for wait in (growth, fork, self._orphans.wait_at_most()) if wait is not None]
        return max(0.0, min(waits)) if waits else None

    def _fork_idle(self) -> None:
        if not self._launcher.idle:
            process = self._launcher.fork_idle()
            if process is not None:
                self._orphans.spared.add(process.pid)

    def _on_idle(self, process: WardenProcess, altered: bool) -> None:
        """Keep a warden whose tree has ended for the next order, or end it."""
        is_reaped = (
            self._by_warden.pop(process.pid, None) is None
        )  # then its pid may belong to another process
        self._fork_at = None
        if is_reaped:
            process.link.close()
        elif altered or not self._launcher.keep(process):
            process.kill()
            process.link.close()
        self._drop_ended()

    def _find_pty(self, terminal_id: str) -> tuple[Terminal, PtyMaster]:
        terminal = self.find_running(terminal_id)
        if terminal.pty is None:
            raise RefusalError(f"Terminal {terminal_id} has pipes and takes no typed input.")
        return terminal, terminal.pty

    def _new_directory(self, order: Start) -> str:
        if not TERMINAL_ID.fullmatch(order.terminal) or not order.argv:
            raise RefusalError("A terminal needs a command, and an id of letters, digits, - and _.")
        directory = os.path.join(self._directory, order.terminal)
        if order.terminal in self._by_id or os.path.lexists(directory):
            raise RefusalError(f"Terminal {order.terminal} already exists.")
        return directory

    def _notify_growth(self) -> None:
        for terminal_id in self._growth.take_due():
            spool = self._by_id[terminal_id].spool
            spool.note()
            self._channel.send(Grown(terminal_id, spool.size))

    def _end_orphans(self) -> None:
        report = self._orphans.advance()
        if self._lost and self._orphans.wait_at_most() is None:
            for terminal in self._lost:
                terminal.lose(report or Report("warden gone"))
            self._lost.clear()
            self._drop_ended()

    def _drop_ended(self) -> None:
        ended = [terminal for terminal in self._by_id.values() if terminal.report is not None]
        failed = [terminal for terminal in ended if terminal.failed]
        for terminal in failed + ended[: max(0, len(ended) - ENDED_MAX)]:
            if terminal.order.terminal in self._by_id:
                self.forget(terminal.order.terminal)
