"""A spare warden waits for the next command: marked, unreadable, used once, and replaced if it is killed."""

import os
import signal
from pathlib import Path

import anyio
import pytest
from tests.support.keeper_terminals import BOUND, KeeperTerminals, all_output, running_keeper, until
from tests.support.processes import is_alive

from handrail.keeper import lineage, process_tree
from handrail.keeper.protocol import Exit
from handrail.keeper.pty import ORDER_MAX


async def find_spare(scene: KeeperTerminals) -> int:
    """The pid of the spare warden, once its leader waits. Run a command before, and have no terminal open."""
    keeper = scene.keeper.pid
    await until(lambda: [len(process_tree.children(pid)) for pid in process_tree.children(keeper)] == [1])
    (spare,) = process_tree.children(keeper)
    return spare


async def run_first(scene: KeeperTerminals) -> int:
    terminal = await scene.sh("exit 3")
    with anyio.fail_after(BOUND):
        assert await terminal.wait() == Exit(3)
        await terminal.wait_swept()
    return await find_spare(scene)


async def test_no_warden_waits_before_the_first_command(home: Path) -> None:
    async with running_keeper(home) as scene:
        assert process_tree.children(scene.keeper.pid) == []


async def test_the_next_command_runs_under_the_spare_warden_and_another_takes_its_place(home: Path) -> None:
    async with running_keeper(home) as scene:
        spare = await run_first(scene)
        (leader,) = process_tree.children(spare)
        terminal = await scene.open("sh", "-c", "stty size; tty; ls -l /proc/$$/fd; exit 5", size=(91, 17))
        assert terminal.pid == leader
        output = await all_output(terminal)
        assert output.startswith(b"17 91\r\n/dev/pts/")
        assert output.count(b"/dev/pts/") == 4, (
            "the program has the PTY as 0, 1 and 2, and no other descriptor"
        )
        assert terminal.exit == Exit(5)
        await until(lambda: not is_alive(spare))
        assert await find_spare(scene) != spare


async def test_a_spare_warden_is_marked_and_has_no_terminal(home: Path) -> None:
    async with running_keeper(home) as scene:
        spare = await run_first(scene)
        for pid in (spare, *process_tree.children(spare)):
            assert lineage.is_marked(pid)
            place = lineage.read_stat(pid)
            assert place is not None
            assert place.tty == 0


@pytest.mark.parametrize("leader", [False, True], ids=["warden", "leader"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_spare_warden_that_is_killed_or_stopped_harms_no_command(
    home: Path, leader: bool, number: signal.Signals
) -> None:
    async with running_keeper(home) as scene:
        spare = await run_first(scene)
        victim = process_tree.children(spare)[0] if leader else spare
        os.kill(victim, number)
        if number == signal.SIGKILL:
            await until(lambda: not is_alive(spare))
        for code in (4, 6):
            terminal = await scene.sh(f"exit {code}")
            with anyio.fail_after(BOUND):
                assert await terminal.wait() == Exit(code)
                await terminal.wait_swept()
        await find_spare(scene)


async def test_an_order_that_is_too_long_for_a_spare_warden_runs_under_a_new_one(home: Path) -> None:
    async with running_keeper(home) as scene:
        spare = await run_first(scene)
        terminal = await scene.sh(f": {'x' * ORDER_MAX}; exit 8")
        with anyio.fail_after(BOUND):
            assert await terminal.wait() == Exit(8)
        await until(lambda: not is_alive(spare))


async def test_a_command_that_cannot_start_under_a_spare_warden_is_reported(home: Path) -> None:
    async with running_keeper(home) as scene:
        await run_first(scene)
        with pytest.raises(Exception, match="There is no program nonesuch"):
            await scene.open("nonesuch")
        await find_spare(scene)


async def test_a_spare_warden_ends_with_a_keeper_that_is_killed(home: Path) -> None:
    async with running_keeper(home, end=False) as scene:
        spare = await run_first(scene)
        leader = process_tree.children(spare)[0]
        os.kill(scene.keeper.pid, signal.SIGKILL)
        await until(lambda: not is_alive(spare) and not is_alive(leader))
