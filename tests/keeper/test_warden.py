"""Whole trees are ended, whatever their processes did to get away."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from tests.support.keeper_terminals import BOUND, all_output, running_keeper, until
from tests.support.processes import ProcessMark, descriptors, is_alive, kill_at_end, parent_of

from handrail.keeper import process_tree
from handrail.keeper.protocol import Exit
from handrail.keeper.pty import IDLE_MAX
from handrail.terminal.keeper_client import KeeperError

REFORK = (
    "import os, signal\nfor n in (1, 15): signal.signal(n, 1)\nwhile True:\n    if os.fork(): os._exit(0)\n"
)
REFORK_APART = REFORK.replace(
    "while True:", "while True:\n    os.setsid() if os.getpgrp() != os.getpid() else None"
)
BOMB = (
    "import os, signal\nfor n in (1, 15): signal.signal(n, 1)\n"
    "for _ in range(4): os.fork()\n"
    "os.write(1, bytes(1))\n"
    "while True:\n    if os.fork(): os._exit(0)\n"
)
STYLES = {
    "plain": ("sleep {n} & sleep {n}", 2),
    "setsid": ("setsid sleep {n} & sleep {n}", 2),
    "nohup": ("nohup sleep {n} >/dev/null 2>&1 & sleep {n}", 2),
    "double fork": ("( ( setsid sleep {n} & ) & ); sleep {n}", 2),
    "env -i setsid": ("env -i $(command -v setsid) $(command -v sleep) {n} & sleep {n}", 2),
    "deaf": ("trap '' HUP TERM; setsid sleep {n} & sleep {n}", 2),
    "stopped": ("sleep {n} & kill -STOP $!; sleep {n}", 2),
    "re-forking": (f"python3 -c '{REFORK}' {{n}} & sleep {{n}}", 2),
    "re-forking into sessions": (f"python3 -c '{REFORK_APART}' {{n}} & sleep {{n}}", 2),
}


@pytest.mark.parametrize("style", STYLES)
async def test_a_stop_leaves_nothing_of_the_tree(home: Path, style: str) -> None:
    mark = ProcessMark()
    script, processes = STYLES[style]
    with kill_at_end(mark):
        async with running_keeper(home) as scene:
            terminal = await scene.sh(script.format(n=mark.seconds))
            await until(lambda: len(mark.pids()) >= processes)
            with anyio.fail_after(BOUND):
                report = await terminal.stop(0.1)
            assert mark.pids() == []
            assert report.left == ()
            assert terminal.swept == report
            assert terminal.exit is not None


async def test_a_stop_reports_the_signals_and_the_processes(home: Path) -> None:
    mark = ProcessMark()
    with kill_at_end(mark):
        async with running_keeper(home) as scene:
            terminal = await scene.sh(f"trap '' HUP TERM; sleep {mark.seconds} & wait")
            # The shell carries the number too.
            await until(lambda: sorted(map(process_tree.name_of, mark.pids())) == ["sh", "sleep"])
            report = await terminal.stop(0.05)
            assert [sent.signal for sent in report.signals] == ["SIGHUP", "SIGTERM", "SIGCONT", "SIGKILL"]
            assert report.signals[0].at_ms <= 50 <= report.signals[3].at_ms <= report.duration_ms
            assert sorted(process.name for process in report.stopped) == ["sh", "sleep"]
            assert terminal.pid in [process.pid for process in report.stopped]
            assert (report.why, report.left, report.more) == ("stop", (), 0)


async def test_a_tree_that_obeys_is_not_killed_and_not_waited_for(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.sh(
            "trap 'echo bye; exit 7' HUP TERM; echo ready; while :; do sleep 0.01; done"
        )
        await until(lambda: terminal.tail.end > 0)
        with anyio.fail_after(BOUND):
            report = await terminal.stop(grace=BOUND * 10)
        assert terminal.exit == Exit(code=7)
        assert "SIGKILL" not in [sent.signal for sent in report.signals]
        assert b"bye" in await all_output(terminal)


async def test_an_interactive_shell_goes_without_being_killed(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.open("bash", "--norc", "-i")
        await until(lambda: terminal.tail.end > 0)
        with anyio.fail_after(BOUND):
            # One that was asked between its prompt and its read hears only the second asking, half the grace later.
            report = await terminal.stop(grace=BOUND / 4)
        assert "SIGKILL" not in [sent.signal for sent in report.signals]


async def test_a_process_forked_after_the_asking_is_asked_as_well(home: Path) -> None:
    """The leader answers TERM by a child that would live on, and waits for it."""
    mark = ProcessMark()
    with kill_at_end(mark):
        async with running_keeper(home) as scene:
            script = f"trap : HUP; trap 'sleep {mark.seconds}; exit 9' TERM; echo ready; while :; do sleep 0.01; done"
            terminal = await scene.sh(script)
            await until(lambda: terminal.tail.end > 0)
            with anyio.fail_after(BOUND):
                report = await terminal.stop(grace=2.0)
            assert "SIGKILL" not in [sent.signal for sent in report.signals]
            assert terminal.exit == Exit(code=9)
            assert mark.pids() == []


async def test_a_second_stop_may_hurry_the_first(home: Path) -> None:
    mark = ProcessMark()
    with kill_at_end(mark):
        async with running_keeper(home) as scene:
            terminal = await scene.sh(f"trap '' HUP TERM; echo ready; sleep {mark.seconds}")
            await until(lambda: terminal.tail.end > 0)
            async with anyio.create_task_group() as group:
                with anyio.fail_after(BOUND):
                    group.start_soon(terminal.stop, BOUND * 10)
                    await terminal.stop(0.0)
            assert mark.pids() == []


async def test_a_bomb_of_reforking_processes_is_stopped(home: Path) -> None:
    mark = ProcessMark()
    with kill_at_end(mark):
        async with running_keeper(home) as scene:
            terminal = await scene.sh(f"python3 -c '{BOMB}' {mark.seconds} & sleep {mark.seconds}")
            await until(lambda: terminal.tail.end == 16)
            with anyio.fail_after(BOUND):
                report = await terminal.stop(0.0)
            assert mark.pids() == []
            assert report.left == ()
            assert len(report.stopped) + report.more > 3


async def test_what_a_leader_leaves_behind_is_swept_and_reported(home: Path) -> None:
    mark = ProcessMark()
    with kill_at_end(mark):
        async with running_keeper(home) as scene:
            script = f"trap '' HUP TERM; setsid sleep {mark.seconds} & echo $!"
            terminal = await scene.sh(script, grace=0.05)
            with anyio.fail_after(BOUND):
                assert await terminal.wait() == Exit(code=0)
            assert scene.events[-1] == ("ended", terminal.id)
            left = int((await all_output(terminal)).split()[0])
            report = await terminal.stop()
            assert report.why == "exit"
            assert [process.pid for process in report.stopped] == [left]
            assert mark.pids() == []


async def test_the_exit_is_told_while_a_grandchild_still_holds_the_terminal(home: Path) -> None:
    mark = ProcessMark()
    with kill_at_end(mark):
        async with running_keeper(home) as scene:
            script = f"trap '' HUP TERM; echo last words; sleep {mark.seconds} & exit 5"
            terminal = await scene.sh(script, grace=BOUND * 10)
            with anyio.fail_after(BOUND):
                assert await terminal.wait() == Exit(code=5)
            assert terminal.tail.read(0)[0] == b"last words\r\n"
            assert len(mark.pids()) == 1
            with anyio.fail_after(BOUND):
                await terminal.stop(0.0)
            assert mark.pids() == []


async def test_when_the_keeper_is_killed_its_trees_end_and_the_terminals_are_lost(home: Path) -> None:
    marks = [ProcessMark() for _ in range(3)]
    async with running_keeper(home) as scene:
        first = scene.keeper.pid
        scripts = [f"trap '' HUP TERM; setsid sleep {mark.seconds} & sleep {mark.seconds}" for mark in marks]
        terminals = [await scene.sh(script) for script in scripts]
        await until(lambda: all(len(mark.pids()) == 3 for mark in marks))
        os.kill(first, signal.SIGKILL)
        await until(lambda: not any(mark.pids() for mark in marks))
        for terminal in terminals:
            with anyio.fail_after(BOUND):
                left = await terminal.wait()
            assert left.lost is not None
            assert "keeper" in left.lost
        assert [what for what, _ in scene.events].count("lost") == 1
        # Another keeper takes its place, and terminals can be opened again.
        await until(lambda: scene.keeper.pid not in (0, first))
        assert await all_output(await scene.sh("echo again")) == b"again\r\n"


async def test_when_a_warden_is_killed_its_orphans_end_and_the_terminal_is_reported(home: Path) -> None:
    mark, other = ProcessMark(), ProcessMark()
    with kill_at_end(mark), kill_at_end(other):
        async with running_keeper(home) as scene:
            bystander = await scene.open("sleep", other.seconds)
            script = f"( setsid sleep {mark.seconds} & ); python3 -c '{REFORK}' {mark.seconds} & sleep {mark.seconds}"
            terminal = await scene.sh(script)
            await until(lambda: len(mark.pids()) >= 4 and mark.programs() >= {"sleep", "sh"})
            os.kill(parent_of(terminal.pid), signal.SIGKILL)
            with anyio.fail_after(BOUND):
                left = await terminal.wait()
                await terminal.tail.follow(0, _ignore)
            assert left.lost is not None
            assert "warden" in left.lost
            assert mark.pids() == []
            assert terminal.swept is not None
            assert {process.name for process in terminal.swept.stopped} >= {"sleep", "sh"}
            assert other.pids() == [bystander.pid]


@contextmanager
def held_before_it_runs(program: Path) -> Generator[int]:
    """A lease on a program: whoever executes it waits in the kernel, until the lease ends."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # the kernel asks for the lease with it
    with program.open("rb") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        try:
            yield file.fileno()
        finally:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            signal.signal(signal.SIGIO, before)


@pytest.mark.skipif(sys.platform != "linux", reason="needs file leases and /proc")
async def test_the_keeper_serves_on_when_a_warden_is_killed_before_its_program_runs(
    home: Path, tmp_path: Path
) -> None:
    """What the warden has forked still holds its link open, so the keeper cannot wait for the link's end."""
    program = Path(shutil.copy(shutil.which("true") or "/bin/true", tmp_path / "program"))
    failures: list[str] = []

    async def open_program() -> None:
        with pytest.raises(KeeperError) as failed:
            await scene.open(str(program))
        failures.append(str(failed.value))

    async with running_keeper(home) as scene, anyio.create_task_group() as group:
        with held_before_it_runs(program) as lease:
            group.start_soon(open_program)
            await until(lambda: fcntl.fcntl(lease, fcntl.F_GETLEASE) != fcntl.F_WRLCK)
            wardens = process_tree.children(scene.keeper.pid)
            (held,) = [child for warden in wardens for child in process_tree.children(warden)]
            os.kill(parent_of(held), signal.SIGKILL)
            try:
                with anyio.fail_after(BOUND):
                    assert await all_output(await scene.sh("echo again")) == b"again\r\n"
                await until(lambda: not is_alive(held) and bool(failures))
            except TimeoutError:
                os.kill(scene.keeper.pid, signal.SIGKILL)  # it takes no order to end
                raise
    assert failures == ["Its warden was killed before it had started."]


async def test_a_stopped_warden_still_ends_its_tree(home: Path) -> None:
    mark = ProcessMark()
    with kill_at_end(mark):
        async with running_keeper(home) as scene:
            terminal = await scene.open("sleep", mark.seconds)
            os.kill(parent_of(terminal.pid), signal.SIGSTOP)
            with anyio.fail_after(BOUND):
                await terminal.stop(0.0)
            assert mark.pids() == []


async def test_a_program_that_stops_its_warden_is_still_seen_to_end(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.sh("kill -STOP $PPID; kill -STOP $PPID; exit 7")
        with anyio.fail_after(BOUND):
            assert await terminal.wait() == Exit(7)
            await terminal.wait_swept()


INHERITED = """
import ctypes, os, resource
libc = ctypes.CDLL(None)
io, keyctl = {"x86_64": (252, 250), "aarch64": (31, 219)}[os.uname().machine]
print(os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), os.sched_getaffinity(0), libc.syscall(io, 1, 0))
print(libc.syscall(keyctl, 0, -3, 0), os.umask(0), open("/proc/self/cgroup").read())
print([(name, resource.getrlimit(getattr(resource, name))) for name in dir(resource) if name.startswith("RLIMIT_")])
"""
ALTER = """
import ctypes, os, resource, sys
pid, keyctl = int(sys.argv[2]), {"x86_64": 250, "aarch64": 219}[os.uname().machine]
libc = ctypes.CDLL(None)
ways = {
    "file size": lambda: resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0)),
    "soft limit": lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (1, resource.prlimit(pid, resource.RLIMIT_CPU)[1])),
    "open files": lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (20, 20)),
    "mark": lambda: resource.prlimit(pid, resource.RLIMIT_MSGQUEUE, (0, 0)),
    "nice": lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
    "scheduler": lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),
    "processors": lambda: os.sched_setaffinity(pid, {max(os.sched_getaffinity(pid))}),
    "disk priority": lambda: libc.syscall({"x86_64": 251, "aarch64": 30}[os.uname().machine], 1, pid, 3 << 13),
    "keyring": lambda: libc.syscall(keyctl, 1, None) > 0 and libc.syscall(keyctl, 18),
}
print(ways[sys.argv[1]]() or "")
"""
ALTERATIONS = (
    *("file size", "soft limit", "open files", "mark", "nice", "scheduler", "processors", "disk priority"),
    "keyring",
)


@pytest.mark.skipif(sys.platform != "linux", reason="macOS shows less of another process")
@pytest.mark.parametrize("who", ["its own command", "another command"])
async def test_a_command_inherits_nothing_that_an_earlier_one_did_to_its_warden(home: Path, who: str) -> None:
    """A warden whose limits or priority a command has lowered takes no further order."""
    async with running_keeper(home) as scene:

        async def output(program: str, *arguments: str) -> bytes:
            return await all_output(await scene.python(program, *arguments))

        before = await output(INHERITED)
        for way in ALTERATIONS:
            if who == "its own command":
                altering = ALTER.replace("int(sys.argv[2])", "os.getppid()")
                printed = await output(altering, way)
            elif way == "keyring":
                continue  # only a child can
            else:
                altering = [sys.executable, "-c", ALTER, way]
                printed = b""
                for pid in await idle_wardens(scene.keeper.pid):
                    done = await anyio.run_process(
                        [*altering, str(pid)], check=False, stderr=subprocess.STDOUT
                    )
                    printed += done.stdout
            assert b"Error" not in printed, (way, printed)
            for _ in range(IDLE_MAX + 1):
                assert await output(INHERITED) == before, way


async def idle_wardens(keeper: int) -> list[int]:
    """The wardens, once no command runs and one of them waits."""
    await until(lambda: len(process_tree.children(keeper)) > 0)
    return process_tree.children(keeper)


@pytest.mark.skipif(os.getuid() != 0, reason="a warden shows its descriptors to root alone")
async def test_wardens_hold_no_descriptor_of_other_terminals(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminals = [await scene.open("sleep", "1000") for _ in range(5)]
        counts = [len(descriptors(parent_of(terminal.pid))) for terminal in terminals]
        assert max(counts) == min(counts) <= 8
        # It may still be loading its libraries.
        await until(lambda: descriptors(terminals[-1].pid) == ["0", "1", "2"])


async def test_an_idle_terminal_costs_less_than_six_megabytes(home: Path) -> None:
    async with running_keeper(home) as scene:
        if os.getuid() != 0:
            pytest.skip("Only root sees the keeper's memory.")
        keeper = scene.keeper.pid
        before = proportional_bytes([keeper])
        terminals = [await scene.open("bash", "--norc", "-i") for _ in range(5)]
        await until(lambda: all(terminal.tail.end > 0 for terminal in terminals))
        pids = [keeper, *process_tree.descendants(keeper)]
        assert len(pids) in (11, 12)  # with the idle warden, or before it is forked
        assert (proportional_bytes(pids) - before) / 5 < 6_000_000


def proportional_bytes(pids: list[int]) -> int:
    """Their memory, what they share counted once."""
    texts = (Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in pids)
    lines = (line.split() for text in texts for line in text.splitlines())
    return sum(int(words[1]) * 1024 for words in lines if words[0] == "Pss:")


async def test_after_many_terminals_the_keeper_holds_what_it_held_before(home: Path) -> None:
    async with running_keeper(home) as scene:
        children = Path(f"/proc/{scene.keeper.pid}/task/{scene.keeper.pid}/children")
        for terminal in [await scene.sh("read line") for _ in range(IDLE_MAX)]:
            await terminal.stop(0)
            await scene.terminals.forget(terminal.id)
        await until(lambda: len(children.read_text().split()) == IDLE_MAX)
        before = (await scene.keeper.health()).descriptors
        for _ in range(200):
            terminal = await scene.sh("echo x")
            await all_output(terminal)
            await scene.terminals.forget(terminal.id)
        # No warden is left but the idle ones, not even as a zombie.
        await until(lambda: len(children.read_text().split()) == IDLE_MAX)
        health = await scene.keeper.health()
        assert (health.descriptors, health.terminals) == (before, 0)


async def test_mixed_trees_one_after_another_leave_nothing_and_take_no_time(home: Path) -> None:
    mark = ProcessMark()
    late: list[float] = []
    with kill_at_end(mark):
        async with running_keeper(home) as scene:
            for round_ in range(5):
                for script, processes in STYLES.values():
                    terminal = await scene.sh(script.format(n=mark.seconds))
                    await until(lambda wanted=processes: len(mark.pids()) >= wanted)
                    began = time.monotonic()
                    with anyio.fail_after(BOUND):
                        report = await terminal.stop(0.02)
                    late.append(time.monotonic() - began - 0.02)
                    assert (mark.pids(), report.left) == ([], ()), (round_, script)
    assert not is_alive(scene.keeper.pid)
    assert sorted(late)[int(len(late) * 0.9)] < 1.0


async def _ignore(_data: bytes, _offset: int) -> None:
    pass
