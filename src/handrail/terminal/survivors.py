"""Processes that outlived both their keeper and their warden: find them by mark and environment, and end them.

Only a process of the same user can kill a keeper and its wardens together, and then nothing holds the tree any more. A
process is found while it still has the environment variable that names its terminal; a process that dropped it is not.
"""

import logging
import os
import signal
from collections.abc import Collection, Iterable

import anyio
import anyio.to_thread

from handrail.keeper import lineage
from handrail.terminal.open_shell import OWN_ID

log = logging.getLogger(__name__)

WARDEN_SECONDS = 2.0
"""How long wardens get to end the trees first: they do when only the keeper has died."""
WARDEN = b"handrail-warden"
"""The name of a warden's process."""
ROUNDS = 5
"""How often new descendants are looked for; bounds the work against a process that forks without end."""


class Survivors:
    """Ends the remains of terminals whose keeper was lost."""

    def __init__(self, grace: float) -> None:
        """`grace` is the time in seconds between SIGTERM and SIGKILL."""
        self._grace = grace
        self._lost: set[str] = set()
        self._bell = anyio.Event()

    def look_for(self, terminals: Iterable[str]) -> None:
        """Note terminals that were lost with their keeper."""
        self._lost.update(terminals)
        if self._lost:
            self._bell.set()

    async def run(self) -> None:
        """End the survivors of terminals as they are noted, until cancelled."""
        while True:
            await self._bell.wait()
            await anyio.sleep(WARDEN_SECONDS)
            lost, self._lost, self._bell = self._lost, set[str](), anyio.Event()
            ended = await end_survivors(lost, self._grace)
            if ended:
                log.warning("ended %d processes that had outlived their keeper", ended)


async def end_survivors(terminals: Collection[str], grace: float) -> int:
    """End every process of these terminals that can be found; returns how many were found."""
    seen: set[int] = set()
    for attempt in range(ROUNDS):
        found = await anyio.to_thread.run_sync(find_survivors, terminals)
        if not found:
            break
        seen.update(found)
        number = signal.SIGKILL if attempt else signal.SIGTERM
        await _wait_ended([fd for pid in found if (fd := _signal(pid, terminals, number)) is not None], grace)
    return len(seen)


def find_survivors(terminals: Collection[str]) -> list[int]:
    """The marked processes of this user whose environment names one of these terminals, and that no warden holds.

    Reads all of /proc.
    """
    pids = [int(name) for name in _list_proc() if name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and _is_of(pid, terminals)]


def _list_proc() -> list[str]:
    try:
        return os.listdir("/proc")  # noqa: PTH208 - thousands of entries
    except OSError:  # macOS has none, and no mark either
        return []


def _is_of(pid: int, terminals: Collection[str]) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
            owner = os.fstat(file.fileno()).st_uid
    except OSError:
        return False
    prefix = f"{OWN_ID}=".encode()
    named = {
        each.removeprefix(prefix).decode(errors="replace") for each in variables if each.startswith(prefix)
    }
    is_ours = owner == os.getuid() and not named.isdisjoint(terminals)
    return is_ours and lineage.is_marked(pid) and not _has_warden(pid)


def _has_warden(pid: int) -> bool:
    """Whether a living warden is above a process. It ends the tree, or keeps it for another daemon."""
    above = lineage.parent(pid)
    while above is not None and above > 1:
        try:
            with open(f"/proc/{above}/comm", "rb") as file:
                if file.read().strip() == WARDEN:
                    return True
        except OSError:
            pass
        above = lineage.parent(above)
    return False


def _signal(pid: int, terminals: Collection[str], number: int) -> int | None:
    """Send a signal, and return a pidfd of the process; None if it is gone, or is another process by now."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return None
    if not _is_of(pid, terminals):
        os.close(pidfd)
        return None
    for each in (number, signal.SIGCONT):
        try:
            signal.pidfd_send_signal(pidfd, each)
        except OSError:
            break
    return pidfd


async def _wait_ended(pidfds: list[int], seconds: float) -> None:
    """Wait until these processes have ended, at most so long, and close the descriptors."""
    try:
        with anyio.move_on_after(seconds):
            for pidfd in pidfds:
                await anyio.wait_readable(pidfd)
    finally:
        for pidfd in pidfds:
            os.close(pidfd)
