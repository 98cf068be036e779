"""Ending a whole process tree: ask, ask once more, and when the grace is over kill until nothing is left.

Owns the order of signals and the report of what they did. Works on the descendants of the calling process, which
must be a child subreaper. Does not wait by itself: its owner calls `go_on` when something may have changed.

Killing walks the tree again and again instead of scanning it once: a process that forks and exits faster than we
look is caught with its process group, or by one of the next rounds, since what it leaves behind falls to us.

What falls to the keeper itself when a warden is killed, and its end.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from handrail.keeper import lineage, process_tree
from handrail.keeper.protocol import Process, Report, Sent

if TYPE_CHECKING:
    from collections.abc import Set


ASK = (signal.SIGHUP, signal.SIGTERM, signal.SIGCONT)
"""An interactive shell ignores TERM and obeys HUP; a stopped process sees neither before CONT."""
LISTED_MAX = 64
"""Processes named in a report: a fork bomb's thousands are only counted."""
UNKILLABLE_AFTER = 1.0
"""Seconds of killing without any change when what lives is reported as left (another user's, or stuck in the kernel)."""
CHASE_MAX = 20.0
"""Seconds of killing after which even a tree that still changes is reported as left, so that every stop is answered."""
ROUND = 0.002
"""Seconds between rounds of killing when no round finds anything new."""


class Ending:
    """One tree's end, from the first signal to the report."""

    # `spared` is read anew in every round: its owner may go on adding to it.
    def __init__(self, why: str, grace: float, spared: Set[int] = frozenset()) -> None:
        self._why = why
        self._began = time.monotonic()
        self._due = self._began + grace
        self._killing = False
        self._signals: list[Sent] = []
        self._seen: dict[int, str] = {}
        self._left: dict[int, str] = {}
        self._spared = spared
        self._fresh = False
        self._changed = self._due
        self._ask_again: float | None = None
        if grace > 0:
            self._ask()
            self._ask_again = self._began + grace / 2

    def hurry(self, grace: float) -> None:
        """Shorten the grace; never lengthen it."""
        self._due = min(self._due, time.monotonic() + grace)

    def wait_at_most(self) -> float:
        """Seconds until `go_on` should be called even if nothing is heard of."""
        if self._killing:
            return 0 if self._fresh else ROUND
        next_step = self._due if self._ask_again is None else min(self._due, self._ask_again)
        return max(0.0, next_step - time.monotonic())

    def go_on(self) -> bool:
        """Do what is due by now. True when what is left cannot be killed."""
        now = time.monotonic()
        if now < self._due:
            if self._ask_again is not None and now >= self._ask_again:
                self._ask_again = None
                self._ask()
            return False
        self._killing = True
        self._kill(now)
        return now - max(self._changed, self._due) > UNKILLABLE_AFTER or now - self._due > CHASE_MAX

    def report(self, left: bool = False) -> Report:
        remaining = self._left if left else {}
        stopped = [Process(pid, name) for pid, name in self._seen.items() if pid not in remaining]
        return Report(
            why=self._why,
            signals=tuple(self._signals),
            stopped=tuple(stopped[:LISTED_MAX]),
            left=tuple(Process(pid, name) for pid, name in list(remaining.items())[:LISTED_MAX]),
            duration_ms=self._elapsed_ms(),
            more=max(0, len(stopped) - LISTED_MAX),
        )

    def _ask(self) -> None:
        """The second time: those forked since, and by HUP alone a shell that was between its prompt and its read."""
        living = self._living()
        fresh = {pid: parent for pid, parent in living.items() if pid not in self._seen}
        self._name(living)
        self._send(fresh, ASK)
        self._send({pid: living[pid] for pid in living.keys() - fresh.keys()}, (signal.SIGHUP,))

    def _kill(self, now: float) -> None:
        living = self._living()
        # Names come after the signal here: a process that forks and exits gains nothing from our reading.
        process_tree.kill_groups(living)
        self._send(living, (signal.SIGKILL,))
        self._fresh = not living.keys() <= self._seen.keys()
        if living.keys() != self._left.keys():
            self._changed = now
        self._name(living)
        self._left = {pid: self._seen[pid] for pid in living}

    def _living(self) -> dict[int, int]:
        return process_tree.descendants(os.getpid(), self._spared)

    def _name(self, living: dict[int, int]) -> None:
        for pid in living.keys() - self._seen.keys():
            self._seen[pid] = process_tree.name_of(pid)

    def _send(self, living: dict[int, int], numbers: tuple[signal.Signals, ...]) -> None:
        at_ms = self._elapsed_ms()
        for pid, parent in living.items():
            process_tree.send(pid, parent, numbers)
        said = {sent.signal for sent in self._signals}
        if living:
            self._signals += [Sent(number.name, at_ms) for number in numbers if number.name not in said]

    def _elapsed_ms(self) -> float:
        return round((time.monotonic() - self._began) * 1000, 3)


class Orphans:
    """Marked processes whose warden is dead: they are killed without a grace."""

    def __init__(self, reference: int) -> None:
        self.spared: set[int] = set()
        """Wardens, daemons we started, and what cannot be killed."""
        self._reference = reference
        self._ending: Ending | None = None

    def look(self) -> None:
        """Begin to end what has fallen to us, if anything has."""
        for pid in set(process_tree.children(os.getpid())) - self.spared:
            if not lineage.is_marked(pid, self._reference):
                self.spared.add(pid)  # a daemon's own child: not ours to end
            elif self._ending is None:
                self._ending = Ending("warden gone", 0, self.spared)

    def go_on(self) -> Report | None:
        """Another round of killing; the report once nothing of them is left."""
        if self._ending is None:
            return None
        stuck = self._ending.go_on()
        living = set(process_tree.children(os.getpid())) - self.spared
        if living and not stuck:
            return None
        report = self._ending.report(left=bool(living))
        self.spared |= living
        self._ending = None
        return report

    def wait_at_most(self) -> float | None:
        return None if self._ending is None else self._ending.wait_at_most()
