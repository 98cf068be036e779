"""What a terminal asks, found with real programs; and that looking at many costs next to nothing."""

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from tests.support.keeper_terminals import (
    AGENT,
    ANN,
    BOUND,
    COMMAND,
    OWN,
    TRACKED,
    shared_terminals,
    type_keys,
    until,
    wait_for_output,
)

from handrail.keeper.protocol import Seen
from handrail.terminal.terminal import InputRequest, Terminal, TerminalNote

RAW_PROMPT = """
import os, select, tty
tty.setraw(0)
os.write(1, b"? Package name: (demo) ")
while select.select([0], [], []):
    os.write(1, os.read(0, 1))
"""
SERVER = """
import select, socket
with socket.create_server(("127.0.0.1", 0)) as server:
    print("Serving on port", server.getsockname()[1], flush=True)
    select.select([server], [], [])
"""
PAGER = "seq 1 500 | less"


async def asks(terminal: Terminal) -> InputRequest:
    """What it asks, as soon as it does."""
    await until(lambda: terminal.asks is not None)
    assert terminal.asks is not None
    return terminal.asks


async def looks(terminal: Terminal, times: int) -> None:
    """Wait until it was looked at so many times more; the third look falls into a rest of a second."""
    with anyio.fail_after(BOUND):
        for _ in range(times):
            last = terminal.seen
            while terminal.seen is last:  # noqa: ASYNC110 - a look that shows the same rings no bell
                await anyio.sleep(0.01)


@pytest.mark.parametrize("note", [TRACKED, COMMAND, OWN], ids=["tracked", "command", "own"])
@pytest.mark.parametrize(
    ("argv", "prompt", "secret"),
    [
        (("bash", "-c", "read -p 'Name? ' x"), "Name?", False),
        (("sh", "-c", "printf 'Go on [y/N] '; sh -c 'read x'"), "Go on [y/N]", False),
        (("sh", "-c", "printf 'Leader? '; read x"), "Leader?", False),
        (("cat",), "", False),
        ((sys.executable, "-c", "input('Continue? ')"), "Continue?", False),
        ((sys.executable, "-c", "print('What now:'); input()"), "What now:", False),
        (("bash", "-c", "read -s -p 'PIN: ' x"), "PIN:", True),
        ((sys.executable, "-c", "import getpass; getpass.getpass()"), "Password:", True),
    ],
)
async def test_a_read_line_by_line_is_a_certain_question(
    home: Path, argv: tuple[str, ...], prompt: str, secret: bool, note: TerminalNote
) -> None:
    async with shared_terminals(home, knows=True) as stage:
        terminal = await stage.open(*argv, note=note)
        found = await asks(terminal)
        assert (found.prompt, found.sure, found.secret) == (prompt, "certain", secret)
        assert stage.told == ["asked"]


@pytest.mark.parametrize(
    ("argv", "prompt"),
    [
        ((sys.executable, "-c", RAW_PROMPT), "? Package name: (demo)"),
        (("bash", "-c", PAGER), ":"),
        (("bash", "-c", "read -n1 -p 'Press any key'"), "Press any key"),
        (("bash", "-c", "read -e -p 'Edit me: ' x"), "Edit me:"),
        ((sys.executable, "-q"), ">>>"),
    ],
    ids=["raw prompt", "less", "read -n1", "read -e", "a prompt for Python"],
)
async def test_a_program_in_raw_mode_that_rests_behind_text_likely_asks(
    home: Path, argv: tuple[str, ...], prompt: str
) -> None:
    async with shared_terminals(home, knows=True) as stage:
        terminal = await stage.open(*argv)
        found = await asks(terminal)
        assert (found.prompt, found.sure, found.secret) == (prompt, "likely", False)


@pytest.mark.parametrize(
    "argv",
    [
        ("sleep", "1000"),
        (sys.executable, "-c", SERVER),
        ("bash", "-c", "printf 'Working: '; sleep 1000"),
        ("bash", "--norc", "--noprofile", "-i"),
        ("dash", "-i"),
        ("sh",),
        ("bash", "--norc", "-c", "stty raw -echo; echo ready; sleep 1000"),
    ],
    ids=["sleep", "server", "half a line", "bash prompt", "dash prompt", "sh prompt", "raw but busy"],
)
async def test_what_waits_for_no_key_does_not_ask(home: Path, argv: tuple[str, ...]) -> None:
    async with shared_terminals(home, knows=True) as stage:
        terminal = await stage.open(*argv)
        await looks(terminal, 3)
        assert (terminal.asks, stage.told) == (None, [])


async def test_a_read_at_an_interactive_prompt_asks_and_the_prompt_after_it_does_not(home: Path) -> None:
    async with shared_terminals(home, knows=True) as stage:
        terminal = await stage.bash(note=OWN)
        await type_keys(terminal, "read -p 'Name? ' x\r")
        assert (await asks(terminal)).prompt == "Name?"
        await type_keys(terminal, "Ann\r")
        await until(lambda: terminal.asks is None)
        assert stage.told == ["asked", "went on"]


async def test_half_an_answer_is_the_same_question_and_the_next_one_is_another(home: Path) -> None:
    async with shared_terminals(home, knows=True) as stage:
        terminal = await stage.open("bash", "-c", "read -p 'First? ' x; read -p 'Second? ' x", note=OWN)
        first = await asks(terminal)
        await type_keys(terminal, "half an ")
        await looks(terminal, 3)
        assert terminal.asks == first
        await type_keys(terminal, "answer\r")
        await until(lambda: terminal.asks is not None and terminal.asks.prompt == "Second?")
        assert stage.told == ["asked", "asked"]


async def test_the_same_question_again_is_told_by_its_time_alone(home: Path) -> None:
    async with shared_terminals(home, knows=True) as stage:
        terminal = await stage.open("bash", "-c", "while read -p 'More? ' x; do :; done", note=OWN)
        first = await asks(terminal)
        await type_keys(terminal, "yes\r")
        await until(lambda: terminal.asks is not None and terminal.asks.since > first.since)
        assert stage.told == ["asked"]


async def test_an_answered_question_is_over_although_the_program_prints_without_a_pause(home: Path) -> None:
    async with shared_terminals(home, knows=True) as stage:
        script = "read -p 'Start? ' x; while :; do echo busy; sleep 0.02; done"
        terminal = await stage.open("bash", "-c", script, note=OWN)
        await asks(terminal)
        await type_keys(terminal, "y\r")
        await until(lambda: terminal.asks is None)
        assert stage.told == ["asked", "went on"]


async def test_an_answer_that_comes_during_a_look_does_not_make_another_question(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, answers = Terminal.look, iter(["y\r"])

    async def look_and_answer(terminal: Terminal) -> Seen:
        seen = await look(terminal)
        if terminal.asks is not None and (answer := next(answers, "")):
            await type_keys(terminal, answer)
            await wait_for_output(terminal, b"y\r\n")
        return seen

    monkeypatch.setattr(Terminal, "look", look_and_answer)
    async with shared_terminals(home, knows=True) as stage:
        terminal = await stage.open("bash", "-c", "read -p 'Start? ' x; sleep 1000", note=OWN)
        await asks(terminal)
        await until(lambda: terminal.asks is None)
        assert stage.told == ["asked", "went on"]


async def test_a_question_ends_with_its_terminal(home: Path) -> None:
    async with shared_terminals(home, knows=True) as stage:
        terminal = await stage.open("cat", note=OWN)
        await asks(terminal)
        await type_keys(terminal, "\x04")
        with anyio.fail_after(BOUND):
            await terminal.wait()
        assert terminal.asks is None


async def test_a_change_of_what_runs_and_where_wakes_who_waits_for_it(home: Path) -> None:
    async with shared_terminals(home, knows=True) as stage:
        terminal = await stage.bash()
        await terminal.type(b"cd /tmp\n", AGENT)
        await wakes(terminal, lambda seen: seen.cwd == "/tmp")
        await terminal.type(b"sleep 1000\n", AGENT)
        await wakes(terminal, lambda seen: seen.busy and name_of(seen) == "sleep")
        await terminal.type(b"\x03", AGENT)
        await wakes(terminal, lambda seen: not seen.busy)


def name_of(seen: Seen) -> str | None:
    return seen.foreground and seen.foreground.name


async def wakes(terminal: Terminal, is_so: Callable[[Seen], bool]) -> None:
    """Wait for a look that shows this, by the terminal's own bell."""
    with anyio.fail_after(BOUND):
        while terminal.seen is None or not is_so(terminal.seen):
            await terminal.changed()


async def test_a_hundred_idle_terminals_leave_the_loop_at_rest(home: Path) -> None:
    async with shared_terminals(home, knows=True) as stage:
        for number in range(100):
            await stage.open(*(("cat",) if number % 2 else ("sleep", "1000")))
        everyone = stage.terminals.known
        await until(lambda: all(one.seen is not None for one in everyone))
        await until(lambda: sum(one.asks is not None for one in everyone) == 50)
        await looks(everyone[-1], 4)

        before, begun = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
        await looks(everyone[-1], 1)
        after, lasted = resource.getrusage(resource.RUSAGE_SELF), time.monotonic() - begun
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        assert lasted > 1.0, "an idle terminal is looked at ever more rarely"
        assert used / lasted < 0.10, f"{used / lasted:.1%} of a core for a hundred idle terminals"


async def test_what_a_person_types_at_a_hidden_prompt_ends_the_question(home: Path) -> None:
    async with shared_terminals(home, knows=True) as stage:
        terminal = await stage.open("bash", "-c", "read -s -p 'PIN: ' x; echo; sleep 1000")
        found = await asks(terminal)
        assert found.secret
        await terminal.type(b"1234\n", ANN)
        await wait_for_output(terminal, b"\n")
        await until(lambda: terminal.asks is None)
