"""Processes that the launcher starts: marked, with an empty environment, and ended with whoever wanted them."""

import os
import signal
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.support.keeper_terminals import BOUND
from tests.support.processes import ProcessMark, is_alive, kill_at_end, parent_of

from handrail.keeper.lineage import is_marked, own_limit
from handrail.launcher.child import LOST, Child, start_function, start_program

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and the mark")
SLOW = 'printf "%s\\n" $$; exec sleep "$0"'


def read(child: Child) -> bytes:
    """All output, to its end."""
    with open(child.output, "rb", closefd=False) as file:
        return file.read()


def run(*argv: str) -> str:
    child = start_program(argv)
    try:
        text = read(child).decode()
        assert child.wait(BOUND) == 0, child.error
        return text
    finally:
        child.close()


@pytest.fixture
def sleeper() -> Generator[tuple[Child, int]]:
    """A process that sleeps, and its pid."""
    seconds = ProcessMark()
    with kill_at_end(seconds):
        child = start_program(["/bin/sh", "-c", SLOW, seconds.seconds])
        pid = int(os.read(child.output, 100))
        yield child, pid
        child.close()


def gone(pid: int) -> bool:
    until = time.monotonic() + BOUND
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.005)
    return not is_alive(pid)


@linux
def test_a_program_and_its_launcher_are_marked(sleeper: tuple[Child, int]) -> None:
    _, pid = sleeper
    launcher = parent_of(pid)
    assert parent_of(launcher) == os.getpid()
    assert is_marked(pid, own_limit())
    assert is_marked(launcher, own_limit())


def test_a_program_gets_the_environment_that_is_named_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    assert run("/usr/bin/env") == ""
    child = start_program(["/usr/bin/env"], environment={"LANG": "C"})
    assert read(child) == b"LANG=C\n"
    child.close()


@linux
def test_the_launcher_has_no_environment_and_hides_its_memory(sleeper: tuple[Child, int]) -> None:
    launcher = parent_of(sleeper[1])
    assert Path(f"/proc/{launcher}/environ").read_bytes() == b""
    # Of root's own processes this is always so: tests/safety looks at an ordinary user's.
    assert Path(f"/proc/{launcher}/mem").stat().st_uid == 0


def test_a_program_has_its_descriptors_and_no_other(tmp_path: Path) -> None:
    held, passed = (os.open(tmp_path, os.O_RDONLY) for _ in range(2))
    child = start_program(["/bin/ls", "/dev/fd/"], pass_fds=[passed])
    try:
        numbers = {int(word) for word in read(child).split()}
        assert passed in numbers
        assert held not in numbers
        assert numbers - {0, 1, 2, passed} <= {3, 4}, "one more is the folder that ls itself has open"
    finally:
        child.close()
        os.close(held)
        os.close(passed)


def test_more_descriptors_than_one_message_holds_are_passed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    many = [os.open(tmp_path / "file", os.O_RDONLY) for _ in range(450)]
    child = start_program(["/bin/cat", *(f"/dev/fd/{fd}" for fd in many)], pass_fds=many)
    try:
        assert read(child) == b"x" * 450
    finally:
        child.close()
        for fd in many:
            os.close(fd)


def test_a_program_starts_in_the_folder_that_is_open(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    folder = os.open(tmp_path / "old", os.O_RDONLY)
    (tmp_path / "old").rename(tmp_path / "new")
    child = start_program(["/bin/pwd"], cwd=folder)
    assert read(child).decode().strip() == str(tmp_path / "new")
    child.close()
    os.close(folder)


def test_a_program_that_cannot_be_executed_is_reported(tmp_path: Path) -> None:
    child = start_program([str(tmp_path / "none")])
    assert child.wait(BOUND) == 127
    assert child.error == f"{tmp_path / 'none'}: No such file or directory"
    child.close()
    with pytest.raises(ValueError, match="not an absolute path"):
        start_program(["rg"])


def test_a_signal_is_the_exit_code(sleeper: tuple[Child, int]) -> None:
    child, pid = sleeper
    os.kill(pid, signal.SIGTERM)
    assert child.wait(BOUND) == -signal.SIGTERM


def test_closing_ends_the_process_and_what_it_started() -> None:
    mark = ProcessMark()
    with kill_at_end(mark):
        child = start_program(["/bin/sh", "-c", 'sleep "$0" & echo up; wait', mark.seconds])
        assert os.read(child.output, 10) == b"up\n"
        child.close()
        assert all(gone(pid) for pid in mark.pids())


@linux
def test_a_killed_launcher_takes_its_children_along_and_is_started_again(sleeper: tuple[Child, int]) -> None:
    child, pid = sleeper
    launcher = parent_of(pid)
    os.kill(launcher, signal.SIGKILL)
    assert child.wait(BOUND) == LOST
    assert gone(pid)
    assert gone(launcher)
    assert run("/bin/echo", "again") == "again\n"


def test_a_helper_in_python_runs_a_module_of_ours(tmp_path: Path) -> None:
    (tmp_path / "text").touch()
    text = os.open(tmp_path / "text", os.O_WRONLY)
    source = tmp_path / "source"
    source.write_bytes(b"\x1b[1mplain\x1b[0m\n")
    spool = os.open(source, os.O_RDONLY)
    request = {"text": text, "ranges": [(spool, 0, source.stat().st_size)]}
    child = start_function("handrail.terminal.output._strip_worker", request, [text, spool])
    assert b'"lines": 1' in read(child)
    assert child.wait(BOUND) == 0
    assert (tmp_path / "text").read_text() == "plain\n"
    child.close()
    os.close(text)
    os.close(spool)


def test_a_helper_that_fails_ends_with_a_code() -> None:
    child = start_function("no_such_module", {})
    assert child.wait(BOUND) == 127
    assert "no_such_module" in child.error
    child.close()
