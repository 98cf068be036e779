"""A file that is pasted or piped into a terminal holds up nobody, and is one entry of its history."""

import select
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from tests.support.keeper_terminals import (
    AGENT,
    ANN,
    BOUND,
    OWN,
    SharedTerminals,
    Typed,
    shared_terminals,
    type_keys,
    until,
    wait_for_output,
)

from handrail.door.attach_client import Attached
from handrail.keeper.protocol import Overheard
from handrail.paths import Places
from handrail.terminal.input import typing_history
from handrail.terminal.terminal import NotReading, Terminal

LINES = 20_000
HELD_AT_MOST = 0.05
"""Seconds of work between two turns of everybody else."""
SEQUENCE = b"".join(b"%d\n" % number for number in range(1, LINES + 1))
BINARY = bytes(range(256)) * 400
REDRAWN = "import time\nwhile True:\n print('\\x1b[A\\x1b[2Cab\\b\\bxy' * 9, flush=True); time.sleep(0.0005)"
HEAD = "\n".join(map(str, range(1, 21)))

Flood = Callable[[SharedTerminals, Terminal, bytes], Awaitable[None]]


async def overheard_in_pieces(stage: SharedTerminals, terminal: Terminal, data: bytes) -> None:
    await overheard(stage, terminal, data, 32 * 1024)


async def overheard_in_crumbs(stage: SharedTerminals, terminal: Terminal, data: bytes) -> None:
    await overheard(stage, terminal, data, 6)


async def overheard(stage: SharedTerminals, terminal: Terminal, data: bytes, size: int) -> None:
    """As the keeper tells of a window; every so often others have their turn, as between two reads."""
    end = terminal.tail.end
    for at in range(0, len(data), size):
        stage.terminals.hear(Overheard(terminal.id, data[at : at + size], False, end))
        if at // size % 100 == 0:
            await anyio.lowlevel.checkpoint()


async def typed(stage: SharedTerminals, terminal: Terminal, data: bytes) -> None:
    for at in range(0, len(data), 16 * 1024):
        await patiently(terminal, data[at : at + 16 * 1024])


async def patiently(terminal: Terminal, piece: bytes) -> None:
    """Type; what there is no room for, again a little later."""
    with anyio.fail_after(BOUND):
        while True:
            try:
                return await terminal.type(piece, ANN)
            except NotReading:
                await anyio.sleep(0.01)


@asynccontextmanager
async def never_held_up() -> AsyncGenerator[None]:
    """What happens within never keeps the loop busy for long. In time of its own: other programs may be busy too."""
    turns: list[float] = []

    async def take_turns() -> None:
        while True:
            turns.append(time.thread_time())
            await anyio.sleep(0.001)

    async with anyio.create_task_group() as group:
        group.start_soon(take_turns)
        await anyio.lowlevel.checkpoint()
        yield
        turns.append(time.thread_time())
        group.cancel_scope.cancel()
    assert max(after - before for before, after in pairwise(turns)) < HELD_AT_MOST


async def piped(stage: SharedTerminals, terminal: Terminal, data: bytes) -> None:
    await anyio.to_thread.run_sync(pipe, stage.places, terminal.id, data, 4096)


async def piped_in_crumbs(stage: SharedTerminals, terminal: Terminal, data: bytes) -> None:
    await anyio.to_thread.run_sync(pipe, stage.places, terminal.id, data, 50)


def pipe(places: Places, terminal: str, data: bytes, size: int) -> None:
    """Type all of it in a window of one's own, as fast as the keeper takes it."""
    window = Attached.attach(places, terminal, ends=False)
    deadline = time.monotonic() + BOUND
    try:
        for at in range(0, len(data), size):
            window.type(data[at : at + size])
            while not window.takes_keys:
                assert time.monotonic() < deadline
                select.select([window], [window] if window.wants_to_send else [], [], window.wait_at_most())
                window.send()
                window.receive()
                window.go_on()
    finally:
        window.close()


@pytest.mark.parametrize("flood", [piped, piped_in_crumbs, typed])
async def test_many_lines_in_one_go_are_one_entry_and_hold_up_nobody(
    home: Path, flood: Flood, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        typing_history, "JOIN", BOUND
    )  # however long a busy machine lets it wait between two pieces
    monkeypatch.setattr(typing_history, "ECHO_AFTER", (1.0, BOUND))
    async with shared_terminals(home) as stage:
        terminal = await stage.open("cat", note=OWN)
        async with never_held_up():
            await flood(stage, terminal, SEQUENCE)
            await until(lambda: stage.typed != [])
        assert stage.typed == [Typed("ann", True, f"{HEAD}\n… and {LINES - 20:,} more lines")]


async def test_a_flood_that_the_terminal_hides_is_recorded_without_its_text(home: Path) -> None:
    async with shared_terminals(home) as stage:
        terminal = await stage.python(
            "import time, tty; tty.setraw(0); print('ready'); time.sleep(1000)", OWN
        )
        await wait_for_output(terminal, b"ready")
        await typed(stage, terminal, SEQUENCE)
        await until(lambda: stage.typed != [])
        assert stage.typed == [Typed("ann", True, None)]


async def test_a_flood_of_keys_and_of_bytes_that_mean_nothing_fills_no_record(home: Path) -> None:
    async with shared_terminals(home) as stage:
        terminal = await stage.open("sleep", "1000", note=OWN)
        async with never_held_up():
            await overheard_in_crumbs(stage, terminal, BINARY)
            await overheard_in_pieces(stage, terminal, BINARY)
            await overheard_in_crumbs(stage, terminal, bytes(100_000))
            await type_keys(terminal, "\x03")
            with anyio.fail_after(BOUND):
                await terminal.wait()
            await until(lambda: any("more" in (told.text or "") for told in stage.typed))
        assert len(stage.typed) <= 20
        assert all(len(told.text or "") < 5000 for told in stage.typed)


async def test_an_echo_is_looked_for_beside_the_loop_however_the_screen_is_drawn(home: Path) -> None:
    async with shared_terminals(home) as stage:
        terminal = await stage.python(REDRAWN, note=OWN)
        begin = await wait_for_output(terminal, b"xy")
        await until(lambda: terminal.tail.end > begin + 100_000)
        async with never_held_up():
            for number in range(40):
                stage.terminals.hear(Overheard(terminal.id, b"no such line %d\r" % number, False, begin))
                await anyio.sleep(0.03)
            await until(lambda: stage.typed != [])
        assert {told.text for told in stage.typed} == {None}


async def test_what_an_agent_sends_in_thousands_of_lines_is_told_in_a_few(home: Path) -> None:
    async with shared_terminals(home) as stage:
        terminal = await stage.open("cat")
        async with never_held_up():
            await terminal.type(SEQUENCE, AGENT)
        (told,) = stage.typed
        assert told.text is not None
        assert told.text.startswith("1\n2\n3\n")
        assert told.text.endswith(f"\n128\n… and {LINES - 128:,} more lines")
