"""Which programs a line starts: found as bash finds them, bound with their wrappers and interpreters, started exactly."""

import os
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.tool_runner import BOUND, TerminalToolRunner, terminal_tools

from handrail.gate.shell.shell_parser import parse
from handrail.store.values import Caller
from handrail.terminal.terminal import Exit
from handrail.tools.commands import programs
from handrail.tools.commands.command_claims import command_claims
from handrail.tools.commands.programs import facts, find_exact_start, find_program, find_programs
from handrail.tools.workspace import Workspace

pytestmark = pytest.mark.anyio

BIN = "/usr/local/bin:/usr/bin:/bin"
ENV = {"PATH": BIN}


def bound(line: str, cwd: Path | str, path: str = BIN) -> dict[str, Any]:
    return dict(find_programs(parse(line), str(cwd), path).bound)


def test_the_program_behind_a_name_is_found_as_the_shell_finds_it(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
        (folder / "tool").touch(mode=0o755)
    (first / "tool").chmod(0o644)
    stat = (second / "tool").stat()
    found = [str(second / "tool"), stat.st_dev, stat.st_ino, stat.st_size, stat.st_ctime_ns]
    assert bound("tool x && ./b/tool && nowhere", tmp_path, f"{first}:{second}") == {
        "tool": found,
        "./b/tool": found,
        "nowhere": None,
    }


def test_another_program_of_the_same_name_is_another_fact(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.touch(mode=0o755)
    before = bound("tool", "/", str(tmp_path))
    (tmp_path / "new").touch(mode=0o755)
    (tmp_path / "new").rename(tool)
    assert bound("tool", "/", str(tmp_path)) != before


WRAPPED = (
    *("timeout 5 date", "nice date", "env date", "sudo -n date", "sh -c date", "bash -c date", "setsid date"),
    *("echo x | xargs date", "stdbuf -o0 date", "ionice date", "ls | time date", "doas date", "strace date"),
    *("nohup date", "timeout 5 nice date", "sh -c 'timeout 5 date'", "nice time date", "sudo sh -c date"),
    *("unknown=1 timeout 5 date", "timeout 5 date > out", "watch date", "script -c date", "env -i date"),
)


@pytest.mark.parametrize("line", WRAPPED)
def test_a_wrapper_that_appears_earlier_on_the_path_is_another_fact(tmp_path: Path, line: str) -> None:
    """Nine of ten wrappers ran a shim that was put there after the question."""
    search = f"{tmp_path}:{BIN}"
    names = [
        name for name in line.replace("'", " ").split() if name.isalpha() and name not in ("x", "ls", "out")
    ]
    for name in names:
        before = bound(line, "/", search)
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
        assert bound(line, "/", search) != before, name
        (tmp_path / name).unlink()


@pytest.mark.parametrize(
    ("line", "wrappers"),
    [
        ("time date", ()),
        ("time -p date | wc", ()),
        ("ls | time date", ("time",)),
        ("ls && time date", ()),
        ("ls |& time date", ("time",)),
        ("exec date", ()),
        ("command nice date", ("nice",)),
        ("timeout 5 time date", ("timeout", "time")),
        ("date", ()),
    ],
)
def test_time_is_a_program_where_bash_reads_one(line: str, wrappers: tuple[str, ...]) -> None:
    assert parse(line).wrappers == wrappers


def test_a_wrapper_of_the_workspace_is_allowed_by_no_rule(tmp_path: Path) -> None:
    shim = tmp_path / "bin" / "nice"
    shim.parent.mkdir()
    shim.touch(mode=0o755)
    workspace = Workspace(str(tmp_path))
    for line, opaque in (("nice git status", True), ("git status", False)):
        found = command_claims(parse(line), workspace.place("."), workspace, f"{shim.parent}:{BIN}")
        assert any(claim.opaque for claim in found) is opaque


def test_the_interpreter_of_a_script_is_bound_too(tmp_path: Path) -> None:
    tool, shim = tmp_path / "tool", tmp_path / "bin" / "python3"
    tool.write_text("#!/usr/bin/env python3\n")
    tool.chmod(0o755)
    before = bound("./tool", tmp_path, f"{shim.parent}:{BIN}")
    assert set(before) == {"./tool", "/usr/bin/env", "python3"}
    shim.parent.mkdir()
    shim.touch(mode=0o755)
    assert bound("./tool", tmp_path, f"{shim.parent}:{BIN}") != before


def test_a_tilde_in_the_path_is_a_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "tool").touch(mode=0o755)
    assert facts("tool", "/", "~") == facts(str(tmp_path / "tool"), "/", "")


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        ("date", ("date",)), ("date '+%Y  %m'", ("date", "+%Y  %m")), ("/usr/bin/env A=1 x", ("/usr/bin/env", "A=1", "x")),
        ("git --no-pager log", ("git", "--no-pager", "log")), ("timeout 5 date", ("timeout", "5", "date")),
        ("date; date", None), ("date *", None), ("date > x", None), ("date $X", None), ("A=1 date", None), ("date &", None),
        ("echo x", None), ("test -e x", None), ("nowhere", None), ("time date", None), ("date | cat", None), ("~/date", None),
        ("! date", None), ("", None), ("date # x", None),
    ],
)  # fmt: skip
def test_only_one_plain_program_is_started_without_a_shell(line: str, argv: tuple[str, ...] | None) -> None:
    parsed = parse(line)
    exact = find_exact_start(parsed, find_programs(parsed, "/", BIN), ENV)
    assert (None if exact is None else exact.argv) == argv


def test_a_script_and_variables_that_change_bash_need_the_shell(tmp_path: Path) -> None:
    script = tmp_path / "tool"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    line = parse(str(script))
    assert find_exact_start(line, find_programs(line, "/", BIN), ENV) is None
    line = parse("date")
    found = find_programs(line, "/", BIN)
    for name in ("BASH_ENV", "BASH_FUNC_date%%", "SHELLOPTS", "ENV"):
        assert find_exact_start(line, found, {**ENV, name: "x"}) is None


def test_the_names_that_start_no_program_are_those_of_bash() -> None:
    import subprocess  # noqa: PLC0415

    listed = subprocess.run(
        ["bash", "-c", "compgen -b -k"], capture_output=True, text=True, timeout=30, check=True
    )
    assert set(listed.stdout.split()) <= programs.SHELL_WORDS


async def start(at: TerminalToolRunner, line: str, *, exactly: bool) -> tuple[list[str], Exit | None]:
    """The lines that a command prints, sorted because bash sorts the environment, and how it ends."""
    parsed, env = parse(line), {**at.reach.settings.environment, "PATH": BIN}
    exact = find_exact_start(parsed, find_programs(parsed, str(at.root), BIN), env)
    assert exact is not None, line
    how: dict[str, Any] = {"programs": (exact.program,), "exact": exact.argv} if exactly else {}
    argv = (shutil.which("bash") or "/bin/bash", "-c", "--", line)
    terminal = await at.terminals.open(argv, str(at.root), env, **how)
    with anyio.fail_after(BOUND):
        await terminal.wait_swept()
    text = terminal.tail.read_range(0, terminal.tail.end).decode()
    return sorted(text.replace("\0", "\n").splitlines()), terminal.exit


async def test_a_program_started_exactly_behaves_as_under_bash(
    home: Path, root: Path, caller: Caller
) -> None:
    broken = root / "broken"
    broken.write_bytes(b"\x7fELFgarbage")
    broken.chmod(0o755)
    shutil.copy(shutil.which("env") or "/usr/bin/env", root / "own-env")
    lines = (
        *("env", "./own-env", "cat /proc/self/comm", "cat /proc/self/cmdline", "./broken", "ls /nowhere"),
        *("stty size", "readlink /proc/self/exe", "timeout 5 readlink /proc/self/exe", "sleep x"),
        *("python3 -c 'import sys; print(sys.executable, sys.argv)'", "dash -c 'kill -9 $$'"),
    )
    async with terminal_tools(home, caller) as at:
        for line in lines:
            assert await start(at, line, exactly=True) == await start(at, line, exactly=False), line


def test_a_name_of_the_working_folder_is_opened_as_the_shell_opens_it(tmp_path: Path) -> None:
    (tmp_path / "tool").touch(mode=0o755)
    found = find_program("tool", str(tmp_path), f":{BIN}")
    assert found is not None
    assert (found.path, found.full_path) == ("./tool", str(tmp_path / "tool"))
    assert os.path.samestat(found.found, (tmp_path / "tool").stat())
