"""Idle wardens wait for the next command: marked, unreadable, without a terminal, and replaced if they are killed."""

import os
import signal
from pathlib import Path

import anyio
import pytest
from tests.support.keeper_terminals import BOUND, ENV, KeeperTerminals, all_output, running_keeper, until
from tests.support.processes import cwd_of, is_alive

from handrail.keeper import lineage, process_tree
from handrail.keeper.protocol import Exit
from handrail.keeper.pty import IDLE_MAX, ORDER_MAX


def wardens(scene: KeeperTerminals) -> list[int]:
    return process_tree.children(scene.keeper.pid)


async def run(scene: KeeperTerminals, line: str) -> Exit:
    """Run a command to its end, after which its warden is idle."""
    terminal = await scene.sh(line)
    with anyio.fail_after(BOUND):
        left = await terminal.wait()
        await terminal.wait_swept()
    return left


async def find_idle(scene: KeeperTerminals) -> int:
    """The pid of the idle warden after one command. There may be another, forked while a slow command ran."""
    terminal = await scene.sh("echo $PPID")
    idle = int(await all_output(terminal))
    with anyio.fail_after(BOUND):
        await terminal.wait_swept()
    return idle


def read_all(pipe: int) -> str:
    with open(pipe) as file:
        return file.read()


async def test_no_warden_waits_before_the_first_command(home: Path) -> None:
    async with running_keeper(home) as scene:
        assert wardens(scene) == []


async def test_the_next_commands_run_under_the_idle_warden(home: Path) -> None:
    async with running_keeper(home) as scene:
        idle = await find_idle(scene)
        terminal = await scene.open(
            "sh", "-c", "stty size; tty; ls -l /proc/$$/fd; echo $PPID; exit 5", size=(91, 17)
        )
        output = await all_output(terminal)
        assert output.endswith(f"\r\n{idle}\r\n".encode())
        assert output.startswith(b"17 91\r\n/dev/pts/")
        assert output.count(b"/dev/pts/") == 4, (
            "the program has the PTY as 0, 1 and 2, and no other descriptor"
        )
        with anyio.fail_after(BOUND):
            await terminal.wait_swept()
        assert terminal.exit == Exit(5)
        for _ in range(3):
            assert await run(scene, f"test $PPID = {idle}") == Exit(0)


async def test_an_order_with_pipes_runs_under_the_idle_warden_and_leaves_it_none_of_them(home: Path) -> None:
    async with running_keeper(home) as scene:
        idle = await find_idle(scene)
        terminal, pipes = await scene.terminals.open_pipes(("sh", "-c", "echo $PPID; cat"), "/", ENV)
        for end in pipes:
            os.set_blocking(end, True)
        os.write(pipes[0], b"in\n")
        os.close(pipes[0])
        assert read_all(pipes[1]) == f"{idle}\nin\n", "the warden holds no end of the pipes"
        assert read_all(pipes[2]) == ""
        with anyio.fail_after(BOUND):
            assert await terminal.wait() == Exit(0)


async def test_what_a_command_leaves_is_ended_before_its_warden_takes_another(home: Path) -> None:
    async with running_keeper(home) as scene:
        idle = await find_idle(scene)
        terminal = await scene.sh("setsid sleep 1000 & echo $!; exit 0")
        left = int(await all_output(terminal))
        with anyio.fail_after(BOUND):
            await terminal.wait_swept()
        assert not is_alive(left)
        assert await run(scene, f"test $PPID = {idle}") == Exit(0)


async def test_an_idle_warden_is_marked_has_no_terminal_and_is_in_no_folder_of_a_command(
    home: Path, tmp_path: Path
) -> None:
    async with running_keeper(home) as scene:
        idle = await find_idle(scene)
        terminal = await scene.terminals.open(("sh", "-c", "echo $PPID"), str(tmp_path), ENV)
        assert int(await all_output(terminal)) == idle
        with anyio.fail_after(BOUND):
            await terminal.wait_swept()
        assert lineage.is_marked(idle)
        place = lineage.read_stat(idle)
        assert place is not None
        assert place.tty == 0
        if os.getuid() == 0:
            assert cwd_of(idle) == "/"


async def test_a_few_wardens_are_kept_of_many(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminals = [await scene.sh("read line") for _ in range(IDLE_MAX + 3)]
        for terminal in terminals:
            await terminal.stop(0)
        await until(lambda: len(wardens(scene)) == IDLE_MAX)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_an_idle_warden_that_is_killed_or_stopped_harms_no_command(
    home: Path, number: signal.Signals
) -> None:
    async with running_keeper(home) as scene:
        idle = await find_idle(scene)
        os.kill(idle, number)
        if number == signal.SIGKILL:
            await until(lambda: not is_alive(idle))
        for code in (4, 6):
            assert await run(scene, f"exit {code}") == Exit(code)


async def test_an_order_that_is_too_long_for_an_idle_warden_runs_under_a_new_one(home: Path) -> None:
    async with running_keeper(home) as scene:
        idle = await find_idle(scene)
        assert await run(scene, f": {'x' * ORDER_MAX}; test $PPID != {idle}") == Exit(0)


async def test_a_command_that_cannot_start_under_an_idle_warden_is_reported(home: Path) -> None:
    async with running_keeper(home) as scene:
        idle = await find_idle(scene)
        with pytest.raises(Exception, match="There is no program nonesuch"):
            await scene.open("nonesuch")
        assert await run(scene, f"test $PPID = {idle}") == Exit(0)


async def test_an_idle_warden_ends_with_a_keeper_that_is_killed(home: Path) -> None:
    async with running_keeper(home, end=False) as scene:
        idle = await find_idle(scene)
        os.kill(scene.keeper.pid, signal.SIGKILL)
        await until(lambda: not is_alive(idle))
