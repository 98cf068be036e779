"""The directory and the program of a command swapped on its way from the question to the first instruction: none wins.

The points are functions of the product, where its thread is stopped while the swap is made; that the swap happened is
part of each race. The last steps of a warden are run in a fork, and stopped before each of their lines.
"""

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any, NoReturn, cast

import anyio
import anyio.lowlevel
import pytest
from tests.support.actors import PAGE
from tests.support.race import RACES, Pauses, Point, Race, rounds
from tests.support.tool_runner import BOUND, terminal_tools

from handrail.gate import person_actions
from handrail.gate.approval import Answer
from handrail.gate.call import Call, Outcome
from handrail.gate.gate import Request
from handrail.keeper import _leader as leader
from handrail.keeper import system
from handrail.keeper.protocol import Start
from handrail.store.actor import CLIENT
from handrail.store.values import Caller
from handrail.terminal.keeper_client import Keeper
from handrail.terminal.terminals import Terminals
from handrail.tools import workspace
from handrail.tools.commands import programs
from handrail.tools.commands.execute_command import ExecuteCommand
from handrail.tools.workspace import Place

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def pauses() -> Iterator[Pauses]:
    with Pauses() as entered:
        yield entered


@pytest.fixture
async def race(home: Path, root: Path, pauses: Pauses) -> AsyncGenerator[Race]:
    """The real gate and a real keeper."""
    caller = Caller(door="stdio", client="test", key="test", workspace=str(root))
    async with terminal_tools(home, caller, default="ask") as at:
        yield Race(at.gate, caller, pauses)


UNDER_WAY = Point(Keeper.post, "leaves")
"""The keeper has its order: whether it or the swap is first, only chance can tell."""
FOLDER_RACES: tuple[Point | None, ...] = (
    None,
    Point(ExecuteCommand.plan, "enters"),
    Point(workspace.Workspace.place, "leaves"),
    Point(Place.open_folder, "leaves"),
    Point(Call.start, "enters"),
    Point(Terminals.open, "enters"),
    Point(Keeper.post, "enters"),
    UNDER_WAY,
)
AFTER_CHECK = FOLDER_RACES[4:]
STEPS = 10
"""Lines of the last functions, from the one that enters the directory to the one that starts the program."""


def folder_for_folder(folder: Path, evil: Path) -> None:
    folder.rename(folder.with_name("was"))
    evil.rename(folder)


def link_to_folder(folder: Path, evil: Path) -> None:
    folder.rename(folder.with_name("was"))
    folder.symlink_to(evil)


WAYS = (folder_for_folder, link_to_folder)


async def test_a_command_starts_in_the_directory_that_was_allowed_or_not_at_all(
    race: Race, root: Path, tmp_path: Path
) -> None:
    seen: Counter[str] = Counter()
    for number, (point, way) in rounds(tuple(product(FOLDER_RACES, WAYS))):
        folder, evil = root / str(number) / "d", tmp_path / "evil" / str(number)
        folder.mkdir(parents=True)
        evil.mkdir(parents=True)
        asked = {"command": "touch here", "cwd": f"{number}/d"}
        outcome = await race.run("execute_command", asked, point, folder, partial(way, folder, evil))
        story = f"{way.__name__}, {point}: {outcome}"
        assert not [path for path in (folder / "here", evil / "here") if path.exists()], story
        ran = (folder.with_name("was") / "here").exists()  # where the allowed directory is now
        assert outcome.ending == ("done" if ran else "failed"), story
        assert not ran or point is UNDER_WAY, story
        if point in AFTER_CHECK and not ran:
            # The second while one folder is moved away and the other is not there yet.
            reasons = ("no longer the directory that was checked", "does not exist")
            assert any(reason in outcome.message for reason in reasons), story
        seen[str(point)] += 1
    assert sum(seen.values()) == RACES
    assert len(seen) == len(FOLDER_RACES)


def test_the_last_steps_before_a_program_runs_go_into_the_directory_that_was_checked(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for number, (step, way) in rounds(tuple(product(range(STEPS), WAYS)), RACES // 2):
        folder, evil = tmp_path / str(number) / "d", tmp_path / str(number) / "evil"
        folder.mkdir(parents=True)
        evil.mkdir()
        meant = identity(folder)
        said, why = started_in(folder, meant, step, partial(way, folder, evil))
        assert identity(folder) != meant, f"nothing was swapped at step {step}"
        assert said in ("", f"{meant[0]}:{meant[1]}"), f"{way.__name__}, step {step}: {said}"
        assert bool(said) != ("no longer the directory that was checked" in why), f"{said} {why}"
        seen["ran" if said else "refused"] += 1
    assert sum(seen.values()) == RACES // 2
    assert min(seen["ran"], seen["refused"]) > 8, seen


def identity(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino


def started_in(
    folder: Path, expected: tuple[int, int], step: int, swap: Callable[[], None]
) -> tuple[str, str]:
    """What a program says about where it runs, and the complaint where it does not; started as a leader is."""
    argv, env = ("stat", "-c", "%d:%i", "."), {"PATH": os.environ["PATH"]}
    order = Start(1, "t", argv, str(folder), env, pipes=True, cwd_id=expected)
    (said, say), (complaint, complain), null = os.pipe(), os.pipe(), os.open(os.devnull, os.O_RDONLY)
    pid = os.fork()
    if pid == 0:
        swap_at(step, swap)
        lead(order, (null, say, say), complain)
    for descriptor in (say, complain, null):
        os.close(descriptor)
    os.waitpid(pid, 0)
    return read(said).strip(), read(complaint)


def lead(order: Start, stdio: tuple[int, int, int], complain: int) -> NoReturn:
    """Start a program as a warden does, and wait for its end."""
    try:
        os.waitpid(leader.start(order, stdio), 0)
    except leader.NotStartedError as error:
        os.write(complain, str(error).encode())
    os._exit(0)


def swap_at(step: int, swap: Callable[[], None]) -> None:
    """Before a step of entering the directory or of executing the program, counted from 0."""
    codes = [function.__code__ for function in (leader._enter, leader._spawn)]  # pyright: ignore[reportPrivateUsage]
    steps = count()

    def trace(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code not in codes:
            return None
        if event in ("call", "line") and next(steps) == step:
            swap()
        return trace

    sys.settrace(trace)


def read(descriptor: int) -> str:
    with open(descriptor, "rb") as pipe:
        return pipe.read().decode()


PROGRAM_RACES: tuple[Point | None, ...] = (
    None,
    Point(ExecuteCommand.plan, "enters"),
    Point(workspace.Workspace.place, "leaves"),
    Point(programs.find_programs, "enters"),
)
GOOD, EVIL = "#!/bin/sh\ntouch good\n", "#!/bin/sh\ntouch evil\n"


def program_renamed_over(tool: Path) -> None:
    other = tool.with_name("other")
    other.write_text(EVIL)
    other.chmod(0o755)
    other.rename(tool)


def program_overwritten_with_its_time_put_back(tool: Path) -> None:
    was = tool.stat()
    tool.write_text(EVIL)
    os.utime(tool, ns=(was.st_atime_ns, was.st_mtime_ns))


def program_linked(tool: Path) -> None:
    other = tool.with_name("other")
    other.write_text(EVIL)
    other.chmod(0o755)
    tool.unlink()
    tool.symlink_to(other)


PROGRAM_WAYS = (program_renamed_over, program_overwritten_with_its_time_put_back, program_linked)


async def test_a_program_that_was_swapped_up_to_the_last_check_does_not_run(race: Race, root: Path) -> None:
    tools = [program_in(root / str(number)) for number in range(RACES)]  # all there before, as programs are
    seen: Counter[str] = Counter()
    for number, (point, way) in rounds(tuple(product(PROGRAM_RACES, PROGRAM_WAYS))):
        tool = tools[number]
        asked = {"command": "./tool", "cwd": str(number)}
        outcome = await race.run("execute_command", asked, point, tool, partial(way, tool))
        story = f"{way.__name__}, {point}: {outcome}"
        assert not (tool.parent / "evil").exists(), story
        assert outcome.ending == "failed", story
        assert "programs" in outcome.message, story
        seen[way.__name__] += 1
    assert sum(seen.values()) == RACES
    assert len(seen) == len(PROGRAM_WAYS)


def program_in(folder: Path) -> Path:
    folder.mkdir()
    tool = folder / "tool"
    tool.write_text(GOOD)
    tool.chmod(0o755)
    return tool


WRAPPED = {
    "timeout": "timeout 5 date",
    "nice": "nice date",
    "env": "env date",
    "sudo": "sudo -n date",
    "sh": "sh -c date",
    "xargs": "echo | xargs date",
    "setsid": "setsid -w date",
    "stdbuf": "stdbuf -o0 date",
    "time": "echo | time date",
}


async def test_a_wrapper_that_appears_on_the_path_after_the_question_does_not_run(
    race: Race, root: Path
) -> None:
    """It appears outside of the workspace, as in ~/.local/bin: a program of the workspace is asked about anyway."""
    for name, line in WRAPPED.items():
        shim = root.parent / "bin" / name
        shim.parent.mkdir(exist_ok=True)

        def plant(shim: Path = shim) -> None:
            shim.write_text(f"#!/bin/sh\ntouch {root}/evil\n")
            shim.chmod(0o755)

        asked = {"command": line, "env": {"PATH": f"{shim.parent}:/usr/local/bin:/usr/bin:/bin"}}
        for point in (None, Point(ExecuteCommand.plan, "enters")):
            outcome = await race.run("execute_command", asked, point, shim, plant)
            assert not (root / "evil").exists(), f"{line}: {outcome}"
            assert outcome.ending == "failed", f"{line}: {outcome}"
            assert "programs" in outcome.message, f"{line}: {outcome}"
            shim.unlink()


LATE_RACES = tuple(point for point in FOLDER_RACES if point is not UNDER_WAY)


async def test_a_script_that_was_swapped_before_the_keeper_starts_it_does_not_run(
    race: Race, root: Path
) -> None:
    tools = [program_in(root / str(number)) for number in range(RACES // 4)]
    for number, (point, way) in rounds(tuple(product(LATE_RACES, PROGRAM_WAYS)), RACES // 4):
        tool = tools[number]
        asked = {"command": "./tool", "cwd": str(number)}
        outcome = await race.run("execute_command", asked, point, tool, partial(way, tool))
        assert not (tool.parent / "evil").exists(), f"{way.__name__}, {point}: {outcome}"
        assert outcome.ending == "failed", f"{way.__name__}, {point}: {outcome}"


FLIPS = 25


@pytest.mark.skipif(
    not system.can_execute_descriptors(), reason="this kernel cannot name what it executes so"
)
async def test_a_program_that_is_switched_in_a_loop_runs_as_it_was_checked_or_not_at_all(
    race: Race, root: Path
) -> None:
    """`./tool mark` makes a directory or a file: that shows which of the two programs ran."""
    for name, program in (("good", "mkdir"), ("evil", "touch")):
        shutil.copy(shutil.which(program) or f"/bin/{program}", root / name)
    (root / "tool").symlink_to("good")
    seen: Counter[str] = Counter()
    with flipping(root / "tool"):
        for number in range(FLIPS):
            mark = root / f"mark{number}"
            asked = await planned_good(race, {"command": f"./tool {mark.name}"}, root)
            outcome = await allowed(race, asked)
            seen["done" if outcome.ending == "done" else "refused"] += 1
            assert mark.is_dir() if outcome.ending == "done" else not mark.exists(), outcome
    assert seen["refused"] > 0, seen


async def planned_good(race: Race, input: dict[str, Any], root: Path) -> Call:
    """A call that waits for the person, and was planned while the link led to the good program."""
    while True:
        reply = await race.gate.submit(
            Request(tool="execute_command", input=input, caller=race.caller, patience=0)
        )
        while reply.call.approval is None and reply.call.outcome is None:
            await anyio.lowlevel.checkpoint()
        approval = reply.call.approval
        if approval is not None and approval.draft is not None:
            [found] = cast("Any", approval.draft.plan.bound["programs"]).values()
            if found is not None and found[2] == (root / "good").stat().st_ino:
                return reply.call
        race.gate.end(reply.call, Outcome(ending="cancelled", by=CLIENT, message="planned with the other"))


async def allowed(race: Race, call: Call) -> Outcome:
    assert call.approval is not None
    answer = Answer(kind="allow", by=PAGE)
    await person_actions.answer(race.gate, call.approval, answer, call.approval.digest)
    with anyio.fail_after(BOUND):
        await call.settled()
    assert call.outcome is not None
    return call.outcome


@contextmanager
def flipping(link: Path) -> Generator[None]:
    """Another process switches a link to `evil` and back, as fast as it can."""
    line = (
        "import os, sys\n"
        "link = sys.argv[1]\n"
        "while True:\n"
        "    for name in ('evil', 'good'):\n"
        "        os.symlink(name, link + '.new'); os.replace(link + '.new', link)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", line, str(link)])
    try:
        yield
    finally:
        process.kill()
        process.wait(timeout=BOUND)


async def test_a_command_that_nobody_races_against_runs(race: Race, root: Path) -> None:
    """So that the races above are lost to the swap, and to nothing else."""
    elsewhere = root / "elsewhere"
    for number, point in enumerate((*FOLDER_RACES, *PROGRAM_RACES)):
        folder = program_in(root / str(number)).parent
        elsewhere.unlink(missing_ok=True)
        asked = {"command": "./tool", "cwd": str(number)}
        outcome = await race.run("execute_command", asked, point, elsewhere, elsewhere.touch)
        assert outcome.ending == "done", outcome
        assert (folder / "good").exists()
