"""Stop a process tree: SIGTERM, once more after half the grace, then SIGKILL until no process is left; with a report.

Works on the descendants of the calling process, which must be a child subreaper. Never blocks: the owner calls `advance`
on every change and timer.

Killing repeats the walk of the tree instead of scanning it once. A process that forks and exits faster than the walk dies
with its process group or in a later round, because the subreaper adopts its children.
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
"""An interactive shell ignores TERM but exits on HUP; a stopped process receives both only after CONT."""
LISTED_MAX = 64
"""Processes listed in a report; the thousands of a fork bomb are only counted."""
UNKILLABLE_AFTER = 1.0
"""Seconds of killing without a change after which survivors are reported as left (another user's, or stuck in the kernel)."""
CHASE_MAX = 20.0
"""Seconds of killing after which a tree that still changes is reported as left, so that every stop gets a reply."""
ROUND = 0.002
"""Seconds between rounds of killing if the last round found no new process."""


class TreeStop:
    """The stop of one tree, from the first signal to the report."""

    # Every round reads `spared` again: the owner may add to it meanwhile.
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
        """Seconds after which `advance` must be called even without a change."""
        if self._killing:
            return 0 if self._fresh else ROUND
        next_step = self._due if self._ask_again is None else min(self._due, self._ask_again)
        return max(0.0, next_step - time.monotonic())

    def advance(self) -> bool:
        """Send the signals that are due. True if the remaining processes cannot be killed."""
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
        """Send ASK to processes not signalled before, and HUP to the others.

        A shell may miss the first HUP between its shell prompt and its read, so the second call repeats it.
        """
        living = self._living()
        fresh = {pid: parent for pid, parent in living.items() if pid not in self._seen}
        self._record_names(living)
        self._send(fresh, ASK)
        self._send({pid: living[pid] for pid in living.keys() - fresh.keys()}, (signal.SIGHUP,))

    def _kill(self, now: float) -> None:
        living = self._living()
        # Signal first, read names later: a process that forks and exits must not gain time.
        process_tree.kill_groups(living)
        self._send(living, (signal.SIGKILL,))
        self._fresh = not living.keys() <= self._seen.keys()
        if living.keys() != self._left.keys():
            self._changed = now
        self._record_names(living)
        self._left = {pid: self._seen[pid] for pid in living}

    def _living(self) -> dict[int, int]:
        return process_tree.descendants(os.getpid(), self._spared)

    def _record_names(self, living: dict[int, int]) -> None:
        for pid in living.keys() - self._seen.keys():
            self._seen[pid] = process_tree.name_of(pid)

    def _send(self, living: dict[int, int], numbers: tuple[signal.Signals, ...]) -> None:
        at_ms = self._elapsed_ms()
        for pid, parent in living.items():
            process_tree.send(pid, parent, numbers)
        reported = {sent.signal for sent in self._signals}
        if living:
            self._signals += [Sent(number.name, at_ms) for number in numbers if number.name not in reported]

    def _elapsed_ms(self) -> float:
        return round((time.monotonic() - self._began) * 1000, 3)


class Orphans:
    """Marked processes whose warden was killed, adopted by the keeper: they are killed without a grace."""

    def __init__(self, reference: int) -> None:
        self.spared: set[int] = set()
        """Pids not to kill: wardens, daemons the keeper started, and processes that cannot be killed."""
        self._reference = reference
        self._stop: TreeStop | None = None

    def look(self) -> None:
        """Begin to kill adopted orphans, if there are any."""
        for pid in set(process_tree.children(os.getpid())) - self.spared:
            if not lineage.is_marked(pid, self._reference):
                self.spared.add(pid)  # started by a daemon, not by a terminal
            elif self._stop is None:
                self._stop = TreeStop("warden gone", 0, self.spared)

    def advance(self) -> Report | None:
        """Run another round of killing; return the report once no orphan is left, or none can be killed."""
        if self._stop is None:
            return None
        stuck = self._stop.advance()
        living = set(process_tree.children(os.getpid())) - self.spared
        if living and not stuck:
            return None
        report = self._stop.report(left=bool(living))
        self.spared |= living
        self._stop = None
        return report

    def wait_at_most(self) -> float | None:
        return None if self._stop is None else self._stop.wait_at_most()
