"""Terminals that are shared and known: a real keeper, with all that is told of them, and everything that runs."""

import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from tests.keeper.scene import BOUND, ENV

from handrail.paths import Places
from handrail.store.values import Owner
from handrail.terminal.keeper_client import Keeper
from handrail.terminal.terminal import Note, Terminal, Typist
from handrail.terminal.terminals import Terminals
from handrail.terminal.wait.input_detection import Knowing

ANN = Typist(person=True, name="ann")
AGENT = Typist(person=False, name="claude-code")
TRACKED = Note(of="tracked", name="t", owner=Owner(person=False, name="claude-code", workspace="/w"))
OWN = Note(of="tracked", name="t", owner=Owner(person=True, name="ann"))
COMMAND = Note(of="command", name="t", owner=Owner(person=False, name="claude-code", workspace="/w"))
SHELL = {**ENV, "PS1": "prompt> ", "TERM": "xterm-256color", "LANG": "C.UTF-8", "HOME": "/nonexistent"}


@dataclass
class Typed:
    """One entry of a history."""

    by: str
    person: bool
    text: str | None


@dataclass
class Stage:
    """What is told, in order, and the terminals it is told of."""

    terminals: Terminals
    keeper: Keeper
    places: Places
    typed: list[Typed] = field(default_factory=list[Typed])
    told: list[str] = field(default_factory=list[str])

    async def open(self, *argv: str, note: Note = TRACKED) -> Terminal:
        return await self.terminals.open(argv, "/", SHELL, note=note)

    async def python(self, program: str, note: Note = TRACKED) -> Terminal:
        return await self.open(sys.executable, "-c", program, note=note)

    async def bash(self, note: Note = TRACKED) -> Terminal:
        terminal = await self.open("bash", "--norc", "--noprofile", "-i", note=note)
        await says(terminal, b"prompt> ")
        return terminal


@asynccontextmanager
async def sharing(home: Path, *, knows: bool = False, end: bool = True) -> AsyncGenerator[Stage]:
    """A daemon's end of a keeper, with a history in the making; where it `knows`, terminals are looked at."""
    places = Places.under(home)
    places.make()
    keeper = Keeper(places, idle_seconds=30.0)
    stage: Stage

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
    stage = Stage(terminals, keeper, places)
    async with anyio.create_task_group() as group:
        with anyio.fail_after(BOUND):
            await group.start(keeper.run)
        group.start_soon(terminals.run)
        if knows:
            group.start_soon(Knowing(terminals).run)
        try:
            yield stage
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(BOUND):
                if end:
                    await keeper.shutdown(0.0)
            group.cancel_scope.cancel()


async def says(terminal: Terminal, text: bytes, after: int = 0) -> int:
    """Wait until a terminal has printed this; the offset behind it."""
    with anyio.fail_after(BOUND):
        while text not in (data := terminal.tail.read(after, 1 << 20)[0]):  # noqa: ASYNC110 - other processes ring no bell
            await anyio.sleep(0.005)
    return after + data.index(text) + len(text)


async def keys(terminal: Terminal, text: str, typist: Typist = ANN) -> None:
    """Type key by key, as fast as the keeper takes them."""
    for char in text:
        await terminal.type(char.encode(), typist)


def found_anywhere(home: Path, secret: str) -> list[str]:
    """Files below a home that hold these words."""
    wanted = secret.encode()
    paths = [Path(folder) / name for folder, _, names in os.walk(home) for name in names]
    return [str(path) for path in paths if path.is_file() and wanted in path.read_bytes()]
