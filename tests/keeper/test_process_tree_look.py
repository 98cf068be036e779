"""A look says whose the keys are and how that process waits, for real programs, and never minds one that goes away."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from tests.support.keeper_terminals import BOUND, ENV, KeeperTerminals, running_keeper, until
from tests.support.processes import command_lines, is_alive

from handrail.keeper import process_tree
from handrail.keeper.protocol import Input as Typing
from handrail.keeper.protocol import Look, Looked, Process, Seen, Typed
from handrail.keeper.pty import PtyMaster
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.terminal import Terminal

BASH = ("bash", "--norc", "--noprofile", "-i")


async def look(scene: KeeperTerminals, terminal: Terminal) -> Seen:
    return (await scene.keeper.request(Look(scene.keeper.number(), terminal.id), Looked)).seen


async def seen(scene: KeeperTerminals, terminal: Terminal, wanted: Callable[[Seen], bool]) -> Seen:
    """Look again until it is as it should be: a program takes a moment to come to its read."""
    found: Seen | None = None
    try:
        with anyio.fail_after(BOUND):
            while not wanted(found := await look(scene, terminal)):  # noqa: ASYNC110 - nobody rings for this
                await anyio.sleep(0.005)
    except TimeoutError:
        pytest.fail(f"It never was as expected; last seen: {found}")
    return found


async def type_in(scene: KeeperTerminals, terminal: Terminal, data: bytes, *, person: bool = True) -> Typed:
    return await scene.keeper.request(Typing(scene.keeper.number(), terminal.id, data, person=person), Typed)


def name(found: Seen) -> str | None:
    return found.foreground and found.foreground.name


async def test_a_program_that_reads_its_terminal_is_seen_reading(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.terminals.open(["cat"], "/usr", ENV)
        found = await seen(scene, terminal, lambda found: found.reading == "tty")
        assert found == Seen(
            Process(terminal.pid, "cat"), busy=False, cwd="/usr", echo=True, canonical=True, reading="tty"
        )
        assert not found.secret


async def test_a_shells_own_read_is_a_read(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.open("bash", "-c", "read x; echo $x")
        found = await seen(scene, terminal, lambda found: found.reading == "tty")
        assert (name(found), found.busy) == ("bash", False)


@pytest.mark.parametrize("readline", [False, True])
async def test_pythons_input_waits_by_read_or_with_readline_raw_by_poll(home: Path, readline: bool) -> None:
    async with running_keeper(home) as scene:
        program = ("import readline; " if readline else "") + "input('? ')"
        terminal = await scene.python(program)
        found = await seen(
            scene, terminal, lambda found: found.reading in ("tty", "poll") and found.canonical != readline
        )
        assert found.foreground is not None
        assert found.foreground.pid == terminal.pid


async def test_a_program_that_sleeps_is_not_seen_reading(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.open("sleep", "1000")
        found = await seen(scene, terminal, lambda found: name(found) == "sleep")
        assert (await look(scene, terminal)).reading == "other"
        assert (found.busy, found.echo, found.canonical) == (False, True, True)


async def test_a_poll_that_waits_for_nothing_is_sleep(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.python("import select; print(1, flush=True); select.poll().poll(1000000)")
        await until(lambda: terminal.tail.end > 0)
        assert (await look(scene, terminal)).reading == "other"
        terminal = await scene.python("import select; print(1, flush=True); select.select([0], [], [])")
        await seen(scene, terminal, lambda found: found.reading == "poll")


async def test_an_event_loop_polls_the_terminal_only_if_it_watches_it(home: Path) -> None:
    program = (
        "import select, sys, os\ne = select.epoll(); r, w = os.pipe(); e.register(r, 1)\n"
        "if len(sys.argv) > 1: e.register(os.open('/dev/tty', os.O_RDONLY), 1)\n"
        "print(1, flush=True); e.poll()"
    )
    async with running_keeper(home) as scene:
        server, prompt = await scene.python(program), await scene.python(program, "asks")
        await until(lambda: server.tail.end > 0)
        await seen(scene, prompt, lambda found: found.reading == "poll")
        assert (await look(scene, server)).reading == "other"


async def test_a_bash_prompt_is_raw_and_not_busy_and_knows_where_it_is(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.open(*BASH)
        found = await seen(
            scene, terminal, lambda found: not found.canonical and found.reading in ("poll", "tty")
        )
        assert (name(found), found.busy, found.cwd, found.secret) == ("bash", False, "/", False)
        await type_in(scene, terminal, b"cd /usr\r")
        await seen(scene, terminal, lambda found: found.cwd == "/usr" and not found.canonical)


async def test_jobs_come_to_the_front_and_go(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.open(*BASH)
        await seen(scene, terminal, lambda found: not found.canonical)
        await type_in(scene, terminal, b"cd /usr; sleep 1000 & (cd /; exec cat)\r")
        found = await seen(scene, terminal, lambda found: name(found) == "cat" and found.reading == "tty")
        assert (found.busy, found.cwd) == (True, "/usr")
        await type_in(scene, terminal, b"\x1a")
        await seen(scene, terminal, lambda found: name(found) == "bash" and not found.busy)
        await type_in(scene, terminal, b"fg %1\r")
        await seen(
            scene, terminal, lambda found: name(found) == "sleep" and found.busy and found.reading == "other"
        )
        await type_in(scene, terminal, b"\x03")
        await seen(scene, terminal, lambda found: name(found) == "bash" and not found.busy)


@pytest.mark.parametrize("reaps", ["", "reaps"])
async def test_when_the_command_in_front_has_ended_the_keys_are_its_shells(home: Path, reaps: str) -> None:
    """As a shell is for a moment: it has not yet made its own group that of the foreground."""
    program = """
import os, signal, sys
command = os.posix_spawn("/bin/sleep", ["sleep", "0"], {}, setpgroup=0)
os.tcsetpgrp(0, command)
os.waitid(os.P_PID, command, os.WEXITED | (0 if sys.argv[1:] == ["reaps"] else os.WNOWAIT))
print("ended", flush=True)
signal.pause()
"""
    async with running_keeper(home) as scene:
        terminal = await scene.python(program, reaps)
        await until(lambda: terminal.tail.end > 0)
        found = await look(scene, terminal)
        assert (found.foreground and found.foreground.pid, found.busy) == (terminal.pid, False)
        assert found.reading == "other"


async def test_in_a_pipeline_the_one_that_reads_the_terminal_is_in_front(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.open(*BASH)
        await seen(scene, terminal, lambda found: not found.canonical)
        await type_in(scene, terminal, b"sleep 1000 | cat /dev/tty\r")
        found = await seen(scene, terminal, lambda found: found.reading == "tty")
        assert (name(found), found.busy) == ("cat", True)


async def test_a_script_waits_for_the_command_in_front(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.sh("sleep 1000 & sh -c 'sleep 999; true'; true")
        found = await seen(scene, terminal, lambda found: name(found) == "sleep" and found.busy)
        assert found.foreground is not None
        assert b"999" in dict(command_lines())[found.foreground.pid]


async def test_a_thread_that_reads_counts_for_its_program(home: Path) -> None:
    async with running_keeper(home) as scene:
        program = (
            "import threading, sys\nt = threading.Thread(target=sys.stdin.readline); t.start(); t.join()"
        )
        terminal = await scene.python(program)
        await seen(scene, terminal, lambda found: found.reading == "tty")


async def test_where_the_keys_are_hidden_a_person_may_type_and_an_agent_may_not(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.sh("stty -echo; cat")
        found = await seen(scene, terminal, lambda found: found.reading == "tty" and not found.echo)
        assert (found.secret, name(found)) == (True, "cat")
        assert await type_in(scene, terminal, b"guess\n", person=False) == Typed(
            _id(scene), secret=True, typed=False
        )
        assert await type_in(scene, terminal, b"hunter2\n") == Typed(_id(scene), secret=True, typed=True)
        await until(lambda: terminal.tail.end >= len(b"hunter2\r\n"))
        assert terminal.tail.read(0)[0] == b"hunter2\r\n"


def _id(scene: KeeperTerminals) -> int:
    """The number of the request that was just answered."""
    return scene.keeper.number() - 1


async def test_what_has_ended_or_has_pipes_is_not_looked_at(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.sh("exit 1")
        with anyio.fail_after(BOUND):
            await terminal.wait()
        with pytest.raises(KeeperError, match="has ended"):
            await look(scene, terminal)
        piped, pipes = await scene.terminals.open_pipes(["cat"], "/", ENV)
        with pytest.raises(KeeperError, match="has pipes"):
            await look(scene, piped)
        for fd in pipes:
            os.close(fd)


async def test_looking_while_processes_come_and_go_never_fails(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.sh("while :; do cat /dev/null | cat & (true); wait; done")
        for _ in range(300):
            found = await look(scene, terminal)
            assert found.reading in ("tty", "poll", "other", "hidden")
        os.kill(terminal.pid, signal.SIGSTOP)
        assert (await look(scene, terminal)).cwd == "/"


async def test_a_crowd_in_front_is_looked_at_only_so_far(home: Path) -> None:
    async with running_keeper(home) as scene:
        terminal = await scene.sh("for i in $(seq 400); do sleep 1000 & done; echo up; wait")
        await until(lambda: terminal.tail.end > 0)
        await scene.keeper.health()
        await look(scene, terminal)
        assert (await scene.keeper.health()).lag_ms < 1000


def test_processes_that_are_gone_are_left_out() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait(BOUND)
    pty = PtyMaster(80, 24)
    try:
        assert not is_alive(gone.pid)
        assert process_tree.look(pty, gone.pid, gone.pid) == Seen(
            None, busy=False, cwd=None, echo=True, canonical=True, reading="hidden"
        )
    finally:
        pty.close()


@pytest.mark.parametrize("machine", process_tree.CALLS)
def test_the_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    headers = {
        "x86_64": ["/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"],
        "aarch64": ["/usr/include/asm-generic/unistd.h"],
    }
    header = next((Path(path) for path in headers[machine] if Path(path).exists()), None)
    if header is None:
        pytest.skip("The kernel's headers are not installed here.")
    words = (line.split() for line in header.read_text().splitlines() if line.startswith("#define __NR"))
    found = {
        parts[1].removeprefix("__NR_").removeprefix("__NR3264_"): parts[2]
        for parts in words
        if len(parts) > 2
    }
    calls = process_tree.CALLS[machine]
    known = {int(number): call for call, number in found.items() if number.isdigit()}
    named = {kind: {known[number] for number in getattr(calls, kind)} for kind in NAMES}
    assert named == {
        kind: {each for each in names if each in known.values()} for kind, names in NAMES.items()
    }


NAMES = {
    "read": {"read", "readv"},
    "select": {"select", "pselect6"},
    "poll": {"poll", "ppoll"},
    "epoll": {"epoll_wait", "epoll_pwait", "epoll_pwait2"},
    "child": {"wait4", "waitid"},
}
