"""A program that was checked is the program that runs, or nothing runs."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from tests.support.keeper_terminals import BOUND, ENV, all_output, running_keeper

from handrail.keeper import system
from handrail.keeper.protocol import CheckedProgram, Exit
from handrail.terminal.keeper_client import KeeperError


def checked(path: Path) -> CheckedProgram:
    found = path.stat()
    return CheckedProgram(str(path), (found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns))


def replace_file(path: Path) -> None:
    other = path.with_name("other")
    shutil.copy(path, other)
    other.rename(path)


def rewrite(path: Path) -> None:
    content, times = path.read_bytes(), path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [replace_file, rewrite, remove])
@pytest.mark.parametrize("exact", [(), ("echo", "ran")])
async def test_a_program_that_changed_since_its_check_is_refused(
    home: Path, tmp_path: Path, change: Callable[[Path], None], exact: tuple[str, ...]
) -> None:
    tool = tmp_path / "tool"
    shutil.copy(shutil.which("echo") or "/bin/echo", tool)
    program = checked(tool)
    change(tool)
    async with running_keeper(home) as scene:
        with pytest.raises(KeeperError, match="no longer the program that was checked"):
            await scene.terminals.open(("sh", "-c", "echo ran"), "/", ENV, programs=(program,), exact=exact)


async def test_the_checked_program_is_executed_in_place_of_the_shell(home: Path, tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    shutil.copy(shutil.which("cat") or "/bin/cat", tool)
    async with running_keeper(home) as scene:
        terminal = await scene.terminals.open(
            ("sh", "-c", "echo the shell"),
            "/",
            ENV,
            programs=(checked(tool),),
            exact=("called so", "/proc/self/comm", "/proc/self/cmdline"),
        )
        with anyio.fail_after(BOUND):
            await terminal.wait_swept()
        printed = (await all_output(terminal)).decode()
    if system.can_execute_descriptors():
        assert printed.split("\r\n", 1)[0] == "tool"
        assert "called so\0" in printed
    else:
        assert "the shell" in printed
    assert terminal.exit == Exit(code=0)
