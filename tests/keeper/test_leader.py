"""The start of a program by its warden, in this process."""

import gc
import os
import stat
from collections.abc import Generator
from pathlib import Path

import pytest

from handrail.keeper import _leader as leader
from handrail.keeper.protocol import CheckedProgram, Start


@pytest.fixture
def pipes() -> Generator[tuple[int, ...]]:
    ends = [os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC) for _ in range(3)]
    yield tuple(ends)
    for end in ends:
        os.close(end)


def order(*argv: str, env: dict[str, str] | None = None, program: Path | None = None) -> Start:
    programs = () if program is None else (CheckedProgram(str(program), identity(program)),)
    return Start(0, "t", argv, "/", env or {"PATH": "/usr/bin:/bin"}, pipes=True, programs=programs)


def identity(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns


def exit_code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_an_order_without_all_its_descriptors_starts_nothing(pipes: tuple[int, ...]) -> None:
    with pytest.raises(leader.NotStartedError, match="lost on the way"):
        leader.start(order("true"), pipes[:2])


def test_a_failed_search_of_the_path_leaves_no_garbage(pipes: tuple[int, ...], tmp_path: Path) -> None:
    (tmp_path / "true").write_text("not executable")
    found = order("true", env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    gc.collect()
    gc.disable()
    try:
        assert exit_code(leader.start(found, pipes)) == 0
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_program_that_its_user_can_replace_is_checked_in_the_process_that_executes_it(
    pipes: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\nexit 7\n")
    program.chmod(stat.S_IRWXU)
    assert exit_code(leader.start(order(str(program), program=program), pipes)) == 7

    checked, become = order(str(program), program=program), leader._become  # pyright: ignore[reportPrivateUsage]

    def replace_first(*arguments: object) -> object:
        """As another process of the user does, which sees the child and stops it."""
        (tmp_path / "other").write_text("#!/bin/sh\nexit 8\n")
        (tmp_path / "other").chmod(stat.S_IRWXU)
        (tmp_path / "other").replace(program)
        return become(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(leader, "_become", replace_first)
    with pytest.raises(leader.NotStartedError, match="another was put in its place"):
        leader.start(checked, pipes)
