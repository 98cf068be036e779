"""Terminals of a real keeper: plain ones, shared ones with typing history, and an empty home for shells."""

import contextlib
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict, Unpack

import anyio

from handrail.paths import Places
from handrail.store.values import Owner
from handrail.terminal.keeper_client import Keeper, KeeperError
from handrail.terminal.terminal import InputSender, Terminal, TerminalNote
from handrail.terminal.terminals import Terminals
from handrail.terminal.wait.input_detection import InputDetector

BOUND = 20.0
"""Seconds for anything a test waits for: far more than it takes, so that only a fault reaches it."""
ENV = {"PATH": os.environ["PATH"], "HOME": "/", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


class Options(TypedDict, total=False):
    size: tuple[int, int]
    cap_bytes: int
    grace: float
    id: str


@dataclass
class KeeperTerminals:
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
async def running_keeper(
    home: Path, *, end: bool = True, idle_seconds: float = 30.0
) -> AsyncGenerator[KeeperTerminals]:
    """The daemon's side of a keeper. With `end`, the keeper is shut down afterwards."""
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
            yield KeeperTerminals(places, keeper, terminals, events, group.cancel_scope.cancel)
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


async def all_output(terminal: Terminal) -> bytes:
    """The whole output of a terminal, to its end."""
    pieces: list[bytes] = []

    async def collect(data: bytes, _offset: int) -> None:
        pieces.append(data)

    with anyio.fail_after(BOUND):
        await terminal.tail.follow(0, collect)
    return b"".join(pieces)


ANN = InputSender(person=True, name="ann")
AGENT = InputSender(person=False, name="claude-code")
TRACKED = TerminalNote(of="tracked", name="t", owner=Owner(person=False, name="claude-code", workspace="/w"))
OWN = TerminalNote(of="tracked", name="t", owner=Owner(person=True, name="ann"))
COMMAND = TerminalNote(of="command", name="t", owner=Owner(person=False, name="claude-code", workspace="/w"))
SHELL = {**ENV, "PS1": "prompt> ", "TERM": "xterm-256color", "LANG": "C.UTF-8", "HOME": "/nonexistent"}


@dataclass
class Typed:
    """One entry of a history."""

    by: str
    person: bool
    text: str | None


@dataclass
class SharedTerminals:
    """Terminals with the recorded callbacks, in order."""

    terminals: Terminals
    keeper: Keeper
    places: Places
    typed: list[Typed] = field(default_factory=list[Typed])
    told: list[str] = field(default_factory=list[str])

    async def open(self, *argv: str, note: TerminalNote = TRACKED) -> Terminal:
        return await self.terminals.open(argv, "/", SHELL, note=note)

    async def python(self, program: str, note: TerminalNote = TRACKED) -> Terminal:
        return await self.open(sys.executable, "-c", program, note=note)

    async def bash(self, note: TerminalNote = TRACKED) -> Terminal:
        terminal = await self.open("bash", "--norc", "--noprofile", "-i", note=note)
        await wait_for_output(terminal, b"prompt> ")
        return terminal


@asynccontextmanager
async def shared_terminals(
    home: Path, *, knows: bool = False, end: bool = True
) -> AsyncGenerator[SharedTerminals]:
    """The daemon's side of a keeper with typing history. With `knows`, input detection runs."""
    places = Places.under(home)
    places.make()
    keeper = Keeper(places, idle_seconds=30.0)
    stage: SharedTerminals

    def telling(what: str) -> Callable[[Terminal], None]:
        return lambda _: stage.told.append(what)

    terminals = Terminals(
        keeper,
        places.spool,
        typed=lambda _, by, person, text, _offset: stage.typed.append(Typed(by, person, text)),
        taken=telling("taken"),
        released=lambda _, by: stage.told.append(f"released by {by}"),
        asked=telling("asked"),
        went_on=telling("went on"),
    )
    stage = SharedTerminals(terminals, keeper, places)
    async with anyio.create_task_group() as group:
        with anyio.fail_after(BOUND):
            await group.start(keeper.run)
        group.start_soon(terminals.run)
        if knows:
            group.start_soon(InputDetector(terminals).run)
        try:
            yield stage
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(BOUND):
                if end:
                    await keeper.shutdown(0.0)
            group.cancel_scope.cancel()


async def wait_for_output(terminal: Terminal, text: bytes, after: int = 0) -> int:
    """Wait until a terminal has printed this; the offset behind it."""
    with anyio.fail_after(BOUND):
        while text not in (data := terminal.tail.read(after, 1 << 20)[0]):  # noqa: ASYNC110 - other processes ring no bell
            await anyio.sleep(0.005)
    return after + data.index(text) + len(text)


async def type_keys(terminal: Terminal, text: str, typist: InputSender = ANN) -> None:
    """Type key by key, as fast as the keeper takes them."""
    for char in text:
        await terminal.type(char.encode(), typist)


def files_with_text(home: Path, secret: str) -> list[str]:
    """Files below a home that hold these words."""
    wanted = secret.encode()
    paths = [Path(folder) / name for folder, _, names in os.walk(home) for name in names]
    return [str(path) for path in paths if path.is_file() and wanted in path.read_bytes()]


def shell_home(path: Path) -> Path:
    """Create an empty home. The folder for completions keeps fish from parsing all manual pages."""
    (path / ".local" / "share" / "fish" / "generated_completions").mkdir(parents=True, exist_ok=True)
    return path
