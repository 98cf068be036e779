"""Descendants of a running program: which of them are new, and how to end those that it left behind.

A keeper ends whole trees. This module ends a part of one, while its program lives on: what an agent started for a
prompt that was cancelled. Processes are told apart by pid and start time, and signalled through a pidfd. It reads
/proc, so it finds nothing on macOS.
"""

import os
import signal
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import anyio
import anyio.to_thread

from handrail.keeper import lineage
from handrail.lazy_dataclass import dataclass
from handrail.store.values import ProcessSeen

Identity = tuple[int, int]
"""A pid and its start time."""
ROUNDS = 5
"""How often the tree is read while it is ended; bounds the work against a process that forks without end."""


@dataclass(frozen=True, slots=True)
class EndedProcesses:
    """The processes that were ended, and those that still run."""

    stopped: tuple[ProcessSeen, ...] = ()
    left: tuple[ProcessSeen, ...] = ()


async def list_descendants(leader: int) -> frozenset[Identity]:
    """Everything that a program has started, orphans included."""
    tree = await anyio.to_thread.run_sync(_read_tree, leader)
    return frozenset(place.identity for place in tree.values())


async def end_descendants(
    leader: int, new: frozenset[Identity], patience: float, grace: float
) -> EndedProcesses:
    """End those of a program's descendants that still run after `patience` seconds, and what they have started.

    A process that the program can speak to through stdin is left alone: it may be a part of the program, such as an
    MCP server. `grace` is the time in seconds between SIGTERM and SIGKILL.
    """
    await anyio.sleep(patience)
    seen: dict[Identity, ProcessSeen] = {}
    for attempt in range(ROUNDS):
        tree = await anyio.to_thread.run_sync(_read_tree, leader)
        doomed = _find_doomed(tree, new)
        if not doomed:
            break
        seen |= {place.identity: ProcessSeen(pid=place.pid, name=place.name) for place in doomed}
        new |= {place.identity for place in doomed}
        await _end(doomed, signal.SIGKILL if attempt else signal.SIGTERM, grace)
    living = await list_descendants(leader) & new
    left = tuple(process for identity, process in seen.items() if identity in living)
    spared = (identity for identity in living if identity not in seen)
    return EndedProcesses(
        tuple(process for identity, process in seen.items() if identity not in living),
        (*left, *(found for identity in spared if (found := _describe(identity)) is not None)),
    )


def _read_tree(leader: int) -> dict[int, lineage.Stat]:
    """All processes below the warden of a leader, except the leader itself."""
    warden = lineage.parent(leader)
    if warden is None or warden <= 1:
        return {}
    places = {place.pid: place for place in _read_places()}
    children: dict[int, list[int]] = {}
    for place in places.values():
        children.setdefault(place.parent, []).append(place.pid)
    below = _walk(warden, children)
    return {pid: places[pid] for pid in below if pid != leader and not _is_zombie(pid)}


def _is_zombie(pid: int) -> bool:
    """Whether it has exited, and its parent has not noticed."""
    try:
        content = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return True
    return content.rpartition(b")")[2].split()[:1] in ([b"Z"], [b"X"])


def _read_places() -> Iterator[lineage.Stat]:
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - thousands of entries
    except OSError:
        return
    for name in names:
        if name.isdigit() and (place := lineage.read_stat(int(name))) is not None:
            yield place


def _walk(root: int, children: Mapping[int, list[int]]) -> Iterator[int]:
    level = [root]
    while level:
        level = [child for parent in level for child in children.get(parent, ())]
        yield from level


def _find_doomed(tree: Mapping[int, lineage.Stat], new: Collection[Identity]) -> list[lineage.Stat]:
    """The new processes and their descendants, without those that the program speaks to."""
    tops = [
        place for place in tree.values() if place.identity in new and not _has_new_parent(place, tree, new)
    ]
    children: dict[int, list[int]] = {}
    for place in tree.values():
        children.setdefault(place.parent, []).append(place.pid)
    doomed = [place for place in tops if not _is_spoken_to(place.pid)]
    pids = dict.fromkeys(pid for place in doomed for pid in (place.pid, *_walk(place.pid, children)))
    return [tree[pid] for pid in pids]


def _has_new_parent(place: lineage.Stat, tree: Mapping[int, lineage.Stat], new: Collection[Identity]) -> bool:
    parent = tree.get(place.parent)
    return parent is not None and parent.identity in new


def _is_spoken_to(pid: int) -> bool:
    """Whether its stdin is a pipe or a socket. Tools of agents read from a terminal, or from nothing."""
    try:
        return str(Path(f"/proc/{pid}/fd/0").readlink()).startswith(("pipe:", "socket:"))
    except OSError:
        return False


def _describe(identity: Identity) -> ProcessSeen | None:
    place = lineage.read_stat(identity[0])
    return ProcessSeen(pid=place.pid, name=place.name) if place and place.identity == identity else None


async def _end(places: Iterable[lineage.Stat], number: int, grace: float) -> None:
    """Signal processes, and wait until they have ended, at most `grace` seconds."""
    pidfds = [fd for place in places if (fd := _signal(place.identity, number)) is not None]
    try:
        with anyio.move_on_after(grace):
            for pidfd in pidfds:
                await anyio.wait_readable(pidfd)
    finally:
        for pidfd in pidfds:
            os.close(pidfd)


def _signal(identity: Identity, number: int) -> int | None:
    """Send a signal, and return a pidfd of the process; None if it is gone, or is another process by now."""
    try:
        pidfd = os.pidfd_open(identity[0])
    except OSError:
        return None
    if lineage.identity(identity[0]) != identity:
        os.close(pidfd)
        return None
    for each in (number, signal.SIGCONT):
        try:
            signal.pidfd_send_signal(pidfd, each)
        except OSError:
            break
    return pidfd
