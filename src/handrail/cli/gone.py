"""Telling the daemon to end, and waiting until it really has.

Owns the wait. What the daemon does before it is gone is its own.
"""

import os
import select
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack

from handrail.cli.failure import Failure
from handrail.cli.link import Link
from handrail.cli.show import note
from handrail.places import Places

GONE_SECONDS = 15.0
"""A daemon ends within five seconds, what it started within its grace; bounds the wait for one that does not."""


def end(link: Link, pids: Iterable[int], *, keep_terminals: bool) -> None:
    """Tell the daemon to end and wait until these processes are gone."""
    with ExitStack() as held:
        gone = [Gone(pid, held) for pid in pids]
        if sys.stderr.isatty():
            note(("Ending …", "dim"))
        link.post("down", keep_terminals=str(keep_terminals).lower())
        until = time.monotonic() + GONE_SECONDS
        left = [each.pid for each in gone if not each.wait(until)]
    if left:
        raise Failure(
            f"Told to end, but still there after {GONE_SECONDS:.0f} s: process {', '.join(map(str, left))}. "
            "`handrail doctor` says more; its log is "
            f"in {Places.find(os.environ).logs}."
        )


class Gone:
    """A process whose end is awaited, whoever gets its number later."""

    def __init__(self, pid: int, held: ExitStack) -> None:
        self.pid = pid
        self._fd = -1
        if sys.platform == "linux":
            try:
                self._fd = os.pidfd_open(pid)
            except OSError:
                return
            held.callback(os.close, self._fd)

    def wait(self, until: float) -> bool:
        if self._fd >= 0:
            return bool(select.select([self._fd], [], [], max(0.0, until - time.monotonic()))[0])
        while _exists(self.pid) and time.monotonic() < until:
            time.sleep(0.05)
        return not _exists(self.pid)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
