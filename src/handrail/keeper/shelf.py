"""Every terminal the keeper holds.

Owns the terminals from start to forgetting, and their orphans. Does not know who the daemon is, nor whether there
is one.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from handrail.keeper.facts import Report, Seen
from handrail.keeper.growth import Growth
from handrail.keeper.held import Held
from handrail.keeper.launch import launch
from handrail.keeper.link import SignalLeader
from handrail.keeper.look import look
from handrail.keeper.orphans import Orphans
from handrail.keeper.protocol import NOT_READING, TERMINAL_ID, Grown, Start
from handrail.keeper.spool import Spool

if TYPE_CHECKING:
    from handrail.keeper.audience import Audience
    from handrail.keeper.connection import Connection
    from handrail.keeper.loop import Loop
    from handrail.keeper.pty_end import PtyEnd

ENDED_MAX = 1000
"""Ended terminals held for a daemon that never acknowledges them."""


class RefusalError(Exception):
    """A request that cannot be met. Its sentence and its code are the answer; see `protocol.Failed`."""

    def __init__(self, why: str, code: str = "") -> None:
        super().__init__(why)
        self.code = code


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
