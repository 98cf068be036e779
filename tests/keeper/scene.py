"""A real keeper on a home of its own, for tests, and ways to see processes from outside."""

import contextlib
import os
import secrets
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict, Unpack

import anyio

from handrail.paths import Places
from handrail.terminal.keeper_client import Keeper, KeeperError
from handrail.terminal.terminal import Terminal
from handrail.terminal.terminals import Terminals

BOUND = 20.0
"""Seconds for anything a test waits for: far more than it takes, so that only a fault reaches it."""
ENV = {"PATH": os.environ["PATH"], "HOME": "/", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


class Options(TypedDict, total=False):
    size: tuple[int, int]
    cap_bytes: int
    grace: float
    id: str


@dataclass
class Scene:
    places: Places
    keeper: Keeper
    terminals: Terminals
    events: list[tuple[str, str]]
    cancel: Callable[[], None]

    async def open(self, *argv: str, **options: Unpack[Options]) -> Terminal:
        return await self.terminals.open(argv, "/", ENV, **options)

    async def sh(self, script: str, **options: Unpack[Options]) -> Terminal:
        return await self.open("sh", "-c", script, **options)

    async def python(self, program: str, *arguments: str) -> Terminal:
        return await self.open(sys.executable, "-c", program, *arguments)


@asynccontextmanager
async def keeping(home: Path, *, end: bool = True, idle_seconds: float = 30.0) -> AsyncGenerator[Scene]:
    """A daemon's end of a keeper; with `end`, nothing of it is left afterwards."""
    places = Places.under(home)
    places.make()
    events: list[tuple[str, str]] = []
    keeper = Keeper(places, idle_seconds=idle_seconds)

    def noting(what: str) -> Callable[[Terminal], None]:
        return lambda terminal: events.append((what, terminal.id))

    terminals = Terminals(
        keeper,
        places.spool,
        opened=noting("opened"),
        ended=noting("ended"),
        swept=noting("swept"),
        lost=lambda why: events.append(("lost", why)),
    )
    async with anyio.create_task_group() as group:
        with anyio.fail_after(BOUND):
            await group.start(keeper.run)
        try:
            yield Scene(places, keeper, terminals, events, group.cancel_scope.cancel)
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(BOUND):
                if end:
                    with contextlib.suppress(KeeperError):
                        await keeper.shutdown(0.0)
            group.cancel_scope.cancel()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something outside to become true; fail when it does not."""
    with anyio.fail_after(BOUND):
        while not condition():  # noqa: ASYNC110 - other processes ring no bell
            await anyio.sleep(0.002)


async def output(terminal: Terminal) -> bytes:
    """All that a terminal ever prints."""
    pieces: list[bytes] = []

    async def collect(data: bytes, _offset: int) -> None:
        pieces.append(data)

    with anyio.fail_after(BOUND):
        await terminal.tail.follow(0, collect)
    return b"".join(pieces)


@dataclass
class Mark:
    """A number that only processes of one test have among their arguments."""

    seconds: str = field(default_factory=lambda: f"9{secrets.randbelow(10**8):08d}")

    def pids(self) -> list[int]:
        """Living processes that carry the number; zombies have no arguments left."""
        return [pid for pid, arguments in command_lines() if self.seconds.encode() in arguments]

    def programs(self) -> set[str]:
        """What they are called by now: who has just been forked is still called like its parent."""
        lines = [arguments for _, arguments in command_lines() if self.seconds.encode() in arguments]
        return {Path(os.fsdecode(line.split(b"\0")[0])).name for line in lines}


def command_lines() -> Iterator[tuple[int, bytes]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                yield int(entry.name), (entry / "cmdline").read_bytes()


@contextmanager
def nothing_left(mark: Mark) -> Generator[None]:
    """However a test ends, its processes do."""
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
