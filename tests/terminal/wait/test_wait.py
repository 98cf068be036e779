"""Waiting for a terminal: nothing that happens is missed, and every wait ends."""

import os
from pathlib import Path

import anyio
import pytest
from tests.support.keeper_terminals import BOUND, running_keeper

from handrail.store.values import Json
from handrail.terminal.terminal import InputRequest, Terminal
from handrail.terminal.wait.wait import (
    ChangeSignal,
    Condition,
    FileWritten,
    Idle,
    ProcessExits,
    is_at_rest,
    quiet_seconds,
    wait,
    watch_changes,
)


class Grown(Condition):
    """True once the output has come so far."""

    until = "pattern"

    def __init__(self, terminal: Terminal, size: int) -> None:
        self._terminal, self._size = terminal, size

    async def met(self) -> Json | None:
        return {"size": self._terminal.tail.end} if self._terminal.tail.end >= self._size else None


def nothing() -> InputRequest | None:
    return None


async def test_every_piece_of_output_wakes_however_fast_it_was_heard(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.open("cat")
        with anyio.fail_after(BOUND):
            async with watch_changes(terminal) as stir:
                for number in range(1, 40):
                    await terminal.write(b"x\n")
                    while terminal.tail.end < number * 6:  # its echo, and what cat makes of it
                        assert await stir.next(), "with no time given it returns for a reason alone"


async def test_a_bell_stays_rung_until_it_is_heard() -> None:
    stir = ChangeSignal()
    assert not await stir.next(0)
    stir.ring()
    stir.ring()
    assert await stir.next(0)
    assert not await stir.next(0)


async def test_what_a_body_raises_comes_out_as_it_is(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.open("cat")
        with pytest.raises(KeyError, match="mine"):
            async with watch_changes(terminal):
                raise KeyError("mine")


async def test_a_wait_says_whether_its_wish_came_true_or_the_terminal_ended_or_asked_or_time_was_up(
    home: Path,
) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.sh("printf hello; sleep 100")
        asks = InputRequest(prompt="Name?", sure="certain", secret=False, since=0.0)
        with anyio.fail_after(BOUND):
            true = await wait(terminal, Grown(terminal, 5), BOUND, nothing)
            late = await wait(terminal, Grown(terminal, 6), 0.1, nothing)
            asked = await wait(terminal, Grown(terminal, 6), BOUND, lambda: asks)
            await terminal.stop(0.0)
            ended = await wait(terminal, ProcessExits(), BOUND, nothing)
            at_last = await wait(terminal, Grown(terminal, 5), BOUND, nothing)
    assert (true.why, true.detail) == ("pattern", {"size": 5})
    assert (late.why, asked.why) == ("timeout", "waiting_for_input")
    assert (ended.why, ended.detail) == ("exit", {"exit_code": None, "signal": "SIGKILL"})
    assert at_last.why == "pattern", "what it printed last counts more than that it ended"


async def test_quiet_is_counted_from_the_last_output(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.sh("for n in 1 2 3 4; do echo $n; sleep 0.1; done; sleep 100")
        with anyio.fail_after(BOUND):
            woke = await wait(terminal, Idle(terminal, 1.2), BOUND, nothing)
        assert (woke.why, terminal.tail.end) == ("idle", 12)
        assert quiet_seconds(terminal) >= 1.0


async def test_a_program_rests_when_it_reads_and_not_while_it_works(home: Path) -> None:
    async with running_keeper(home) as scene:
        reading, working = await scene.open("cat"), await scene.open("sleep", "1000")
        with anyio.fail_after(BOUND):
            await wait(reading, Idle(reading, 0.4), BOUND, nothing)
            await wait(working, Idle(working, 0.4), BOUND, nothing)
        assert await is_at_rest(reading)
        assert not await is_at_rest(working)


async def test_a_file_is_new_when_it_appears_changes_or_is_younger_than_the_moment(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def look() -> os.stat_result | None:
        return path.stat() if path.exists() else None

    absent = FileWritten(str(path), look, since=0.0)
    assert await absent.met() is None
    path.write_text("one")
    old, young = (FileWritten(str(path), look, since) for since in (path.stat().st_mtime + 60, 0.0))
    assert await absent.met() == {"path": str(path), "existed": False, "bytes": 3}
    assert await young.met() == {"path": str(path), "existed": True, "bytes": 3}
    assert await old.met() is None
    path.write_text("more")
    assert await old.met() == {"path": str(path), "existed": True, "bytes": 4}
