"""Processes as /proc shows them: parents, descriptors, memory, and all that a home started since a time.

A process belongs to a home if it descends from the home's daemon or keeper, has the home in its environment or command,
or works in one of its folders. So a process that lost its parents is found too.
"""

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class ProcessMark:
    """A number that only processes of one test have among their arguments."""

    seconds: str = field(default_factory=lambda: f"9{secrets.randbelow(10**8):08d}")

    def pids(self) -> list[int]:
        """Living processes that carry the number; zombies have no arguments left."""
        return [pid for pid, arguments in command_lines() if self.seconds.encode() in arguments]

    def programs(self) -> set[str]:
        """Their program names. A process that was just forked still has its parent's name."""
        lines = [arguments for _, arguments in command_lines() if self.seconds.encode() in arguments]
        return {Path(os.fsdecode(line.split(b"\0")[0])).name for line in lines}


def command_lines() -> Iterator[tuple[int, bytes]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                yield int(entry.name), (entry / "cmdline").read_bytes()


@contextmanager
def kill_at_end(mark: ProcessMark) -> Generator[None]:
    """Kill the marked processes at the end, however the test ends."""
    try:
        yield
    finally:
        for pid in mark.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def parent_of(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def descriptors(pid: int) -> list[str]:
    return sorted(path.name for path in Path(f"/proc/{pid}/fd").iterdir())


def cwd_of(pid: int) -> str:
    return str(Path(f"/proc/{pid}/cwd").readlink())


def rss(pid: int | None = None) -> int:
    """Bytes of memory a process has in use."""
    pages = Path(f"/proc/{pid or os.getpid()}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """One process. Its start time distinguishes it from a later process with the same id."""

    pid: int
    started: int
    """In ticks since the machine's start."""
    command: str
    parent: int = 0

    @property
    def key(self) -> tuple[int, int]:
        return self.pid, self.started

    def __str__(self) -> str:
        return f"{self.pid} below {self.parent}: {self.command}"


WARDEN = "handrail-warden"
"""The name of a warden's process."""


def boot_ticks() -> int:
    """Ticks since boot, as in /proc. Rounded down to include this tick."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS)


def started_since(tick: int, roots: frozenset[int], places: tuple[Path, ...]) -> list[ProcessInfo]:
    """Everything of a home that was started at this tick or later and is not gone, whether it lives or is a zombie.

    Leaves out idle wardens, which the keeper keeps for the next commands.
    """
    alive = {each.pid: each for each in _all()}
    idle = _idle_wardens(alive)
    return [
        each
        for each in alive.values()
        if each.pid not in idle
        and each.started >= tick
        and (_is_below(each, roots, alive) or _is_at(each, places))
    ]


def _idle_wardens(alive: dict[int, ProcessInfo]) -> set[int]:
    """Wardens without a child."""
    parents = {each.parent for each in alive.values()}
    return {pid for pid in alive.keys() - parents if _name(pid) == WARDEN}


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _is_below(one: ProcessInfo, roots: frozenset[int], alive: dict[int, ProcessInfo]) -> bool:
    above = one.parent
    while above in alive and above not in roots:
        above = alive[above].parent
    return above in roots


def _is_at(one: ProcessInfo, places: tuple[Path, ...]) -> bool:
    """Whether its command, environment or folder names one of the places."""
    if any(str(place) in one.command for place in places):
        return True
    process = Path(f"/proc/{one.pid}")
    try:
        around = (process / "environ").read_bytes()
        folder = (process / "cwd").readlink()
    except OSError:
        return False
    return any(str(place).encode() in around or folder.is_relative_to(place) for place in places)


def _all() -> Iterator[ProcessInfo]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (found := _read(entry)) is not None:
            yield found


def _read(entry: Path) -> ProcessInfo | None:
    try:
        name, _, rest = (entry / "stat").read_text(errors="replace").partition("(")[2].rpartition(")")
        words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return None
    fields = rest.split()
    return ProcessInfo(int(entry.name), int(fields[19]), words or f"[{name}, {fields[0]}]", int(fields[1]))
