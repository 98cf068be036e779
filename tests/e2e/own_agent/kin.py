"""Who was started since when, and by whom: a walk of /proc.

Owns lineage and start times. A process belongs to a home where it stands below that home's daemon or keeper, or has the
home in its environment or its command, or works in one of its folders: one that lost its parents is found all the same.
It does not know what any of them does.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Kin:
    """One process, told from every later one of the same number by when it was started."""

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


def now() -> int:
    """In ticks, as /proc tells start times: rounded down, so that nothing of this very tick is missed."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS)


def since(tick: int, roots: frozenset[int], places: tuple[Path, ...]) -> list[Kin]:
    """Everything of a home that was started at this tick or later and is not gone, whether it lives or is a zombie."""
    alive = {each.pid: each for each in _all()}
    return [
        each
        for each in alive.values()
        if each.started >= tick and (_is_below(each, roots, alive) or _is_at(each, places))
    ]


def _is_below(one: Kin, roots: frozenset[int], alive: dict[int, Kin]) -> bool:
    above = one.parent
    while above in alive and above not in roots:
        above = alive[above].parent
    return above in roots


def _is_at(one: Kin, places: tuple[Path, ...]) -> bool:
    """Told by its command, its environment or its folder; what hides the latter two may have the first."""
    if any(str(place) in one.command for place in places):
        return True
    process = Path(f"/proc/{one.pid}")
    try:
        around = (process / "environ").read_bytes()
        folder = (process / "cwd").readlink()
    except OSError:
        return False
    return any(str(place).encode() in around or folder.is_relative_to(place) for place in places)


def _all() -> Iterator[Kin]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (found := _read(entry)) is not None:
            yield found


def _read(entry: Path) -> Kin | None:
    try:
        name, _, rest = (entry / "stat").read_text(errors="replace").partition("(")[2].rpartition(")")
        words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return None
    fields = rest.split()
    return Kin(int(entry.name), int(fields[19]), words or f"[{name}, {fields[0]}]", int(fields[1]))
