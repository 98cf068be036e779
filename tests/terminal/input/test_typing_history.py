"""Who typed what: lines at real prompts are kept, secrets nowhere, and a terminal is a person's while they type."""

import secrets
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from tests.support.keeper_terminals import (
    AGENT,
    ANN,
    BOUND,
    COMMAND,
    OWN,
    TRACKED,
    Typed,
    files_with_text,
    shared_terminals,
    type_keys,
    until,
    wait_for_output,
)

from handrail.terminal.input import typing_history
from handrail.terminal.input import typing_history as typed_line
from handrail.terminal.terminal import Terminal, TerminalNote, TypingRefused

MASKED = """
import os, sys, termios, tty
before = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b"Secret: ")
while (key := os.read(0, 1)) not in b"\\r\\n":
    os.write(1, b"*")
termios.tcsetattr(0, termios.TCSANOW, before)
print("\\r\\nthank you")
sys.stdin.readline()
"""
GETPASS = "import getpass; getpass.getpass('Password: '); print('thank you'); input()"

AS_EVER = typed_line.ECHO_AFTER


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow a busy machine is: no pause ends a line, and an echo may come late. A test for either says so."""
    monkeypatch.setattr(typing_history, "PAUSE", 2 * BOUND)
    monkeypatch.setattr(typed_line, "ECHO_AFTER", (*typed_line.ECHO_AFTER[:3], BOUND / 4, BOUND / 2))


async def test_a_line_typed_key_by_key_at_a_prompt_is_one_entry(home: Path) -> None:
    async with shared_terminals(home) as stage:
        terminal = await stage.bash()
        await type_keys(terminal, "echo hello there\r")
        await until(lambda: stage.typed != [])
        assert stage.typed == [Typed("ann", True, "echo hello there")]


async def test_a_line_that_was_mended_while_it_was_typed_is_kept_as_it_was_sent(home: Path) -> None:
    async with shared_terminals(home) as stage:
        terminal = await stage.bash()
        await type_keys(terminal, "echo helo\x7flo\r")
        await wait_for_output(terminal, b"\rhello")
        await until(lambda: stage.typed != [])
        assert stage.typed == [Typed("ann", True, "echo hello")]


async def test_a_line_wider_than_the_terminal_is_kept(home: Path) -> None:
    async with shared_terminals(home) as stage:
        terminal = await stage.bash()
        line = f"echo {'wide ' * 30}end"
        await type_keys(terminal, f"{line}\r")
        await until(lambda: stage.typed != [])
        assert stage.typed == [Typed("ann", True, line)]


async def test_keys_are_named(home: Path) -> None:
    async with shared_terminals(home) as stage:
        terminal = await stage.open("sleep", "1000")
        await type_keys(terminal, "\x1a")
        await terminal.type(b"\x1b[A\x1b[A\x1b[A", ANN)
        await type_keys(terminal, "\x03")
        with anyio.fail_after(BOUND):
            await terminal.wait()
        # One entry, or several where this machine paused between the keys.
        await until(lambda: " ".join(each.text or "" for each in stage.typed) == "^Z <up> x3 ^C")
        assert all((each.by, each.person) == ("ann", True) for each in stage.typed)


async def test_what_an_agent_sends_is_one_entry(home: Path) -> None:
    async with shared_terminals(home) as stage:
        terminal = await stage.bash()
        await terminal.type(b"for i in 1 2; do\necho $i\ndone\n", AGENT)
        await terminal.type(b"\x03", AGENT)
        assert stage.typed == [
            Typed("claude-code", False, "for i in 1 2; do\necho $i\ndone"),
            Typed("claude-code", False, "^C"),
        ]


@pytest.mark.parametrize(
    "script",
    [
        ("bash", "-c", "read -s -p 'Password: ' x; echo; echo thank you; read y"),
        ("python3", "-c", GETPASS),
    ],
    ids=["read -s", "getpass"],
)
async def test_a_password_is_recorded_nowhere(home: Path, script: tuple[str, ...]) -> None:
    secret = secrets.token_hex(12)
    async with shared_terminals(home) as stage:
        terminal = await stage.open(*script, note=OWN)
        after = await wait_for_output(terminal, b"Password: ")
        await until_secret(terminal)
        await type_keys(terminal, f"{secret}\r")
        await wait_for_output(terminal, b"thank you", after)
        await type_keys(terminal, "and that was it\r")
        await until(lambda: len(stage.typed) == 2)
        assert [entry.text for entry in stage.typed] == [None, "and that was it"]
        assert files_with_text(home, secret) == []
        assert not held_in_memory(stage.terminals, secret)


async def until_secret(terminal: Terminal) -> None:
    """Wait until a terminal hides what is typed."""
    with anyio.fail_after(BOUND):
        while not (await terminal.look()).secret:  # noqa: ASYNC110 - other processes ring no bell
            await anyio.sleep(0.005)


def held_in_memory(root: object, secret: str) -> bool:
    """Whether anything reachable from here holds these words."""
    seen: set[int] = set()
    todo: list[object] = [root]
    while todo:
        thing = todo.pop()
        if id(thing) in seen or isinstance(thing, type):
            continue
        seen.add(id(thing))
        if (isinstance(thing, str) and secret in thing) or (
            isinstance(thing, bytes | bytearray) and secret.encode() in thing
        ):
            return True
        todo += inner(thing)
    return False


def inner(thing: Any) -> list[Any]:
    if isinstance(thing, dict):
        return [*cast("dict[object, object]", thing).keys(), *cast("dict[object, object]", thing).values()]
    if isinstance(thing, list | tuple | set | frozenset | deque):
        return list(cast("Iterable[object]", thing))
    names: list[str] = [*(getattr(thing, "__slots__", None) or ()), *getattr(thing, "__dict__", {})]
    return [getattr(thing, name, None) for name in names]


async def test_what_a_prompt_masks_is_recorded_without_its_text(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typed_line, "ECHO_AFTER", AS_EVER)
    secret = secrets.token_hex(12)
    async with shared_terminals(home) as stage:
        terminal = await stage.python(MASKED, note=OWN)
        await wait_for_output(terminal, b"Secret: ")
        await type_keys(terminal, f"{secret}\r")
        await wait_for_output(terminal, b"thank you")
        await until(lambda: stage.typed != [])
        assert stage.typed == [Typed("ann", True, None)]
        assert files_with_text(home, secret) == []
        assert not held_in_memory(stage.terminals, secret)


async def test_a_masked_prompt_answered_with_pauses_tells_no_letter(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typing_history, "PAUSE", 0.0)
    monkeypatch.setattr(typed_line, "ECHO_AFTER", AS_EVER)
    async with shared_terminals(home) as stage:
        terminal = await stage.python(MASKED, note=OWN)
        await wait_for_output(terminal, b"Secret: ")
        for size, letter in enumerate("thank", 1):
            await type_keys(terminal, letter)
            await wait_for_output(terminal, b"*" * size)
        await type_keys(terminal, "\r")
        await wait_for_output(terminal, b"thank you")
        await until(lambda: any(entry.text == "<enter>" for entry in stage.typed))
        assert [entry.text for entry in stage.typed] == [None, "<enter>"]


async def test_entries_are_told_in_the_order_they_were_typed(home: Path) -> None:
    async with shared_terminals(home) as stage:
        terminal = await stage.bash(note=OWN)
        await type_keys(terminal, "echo one\r")
        await terminal.type(b"echo two\n", AGENT)
        await type_keys(terminal, "echo three\r")
        await until(lambda: len(stage.typed) == 3)
        assert [entry.text for entry in stage.typed] == ["echo one", "echo two", "echo three"]


async def test_who_types_into_an_agents_terminal_has_it_until_a_while_after_the_last_key(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typing_history, "SOFT_SECONDS", 1.0)
    async with shared_terminals(home) as stage:
        terminal = await stage.bash()
        await type_keys(terminal, "echo mine")
        assert terminal.taken is not None
        assert (terminal.taken.by, terminal.taken.holds) == ("ann", False)
        with pytest.raises(TypingRefused, match="taken over by ann"):
            await terminal.type(b"echo yours\n", AGENT)
        last = time.monotonic()
        await until(lambda: terminal.taken is None)
        assert time.monotonic() - last > 0.5
        await terminal.type(b"\n", AGENT)
        assert stage.told == ["taken", "released by Handrail"]
        assert b"yours" not in terminal.tail.read(0)[0]


@pytest.mark.parametrize("note", [TRACKED, COMMAND])
async def test_who_takes_a_terminal_over_has_it_until_they_release_it(home: Path, note: TerminalNote) -> None:
    async with shared_terminals(home) as stage:
        terminal = await stage.bash(note=note)
        terminal.take("ann", holds=True)
        await type_keys(terminal, "echo mine\r")
        with pytest.raises(TypingRefused, match="until they release it"):
            await terminal.type(b"x", AGENT)
        terminal.release("ann")
        await terminal.type(b"x", AGENT)
        assert stage.told == ["taken", "released by ann"]


async def test_what_a_window_reports_by_itself_takes_nothing_over(home: Path) -> None:
    async with shared_terminals(home) as stage:
        terminal = await stage.open("cat")
        await terminal.type(b"\x1b[I", ANN)
        assert (terminal.taken, stage.told) == (None, [])
        await terminal.type(b"\x1b[A", ANN)
        assert (terminal.taken is not None, stage.told) == (True, ["taken"])


async def test_a_persons_own_terminal_is_not_taken_over_by_typing(home: Path) -> None:
    async with shared_terminals(home) as stage:
        terminal = await stage.bash(note=OWN)
        await type_keys(terminal, "echo mine\r")
        assert (terminal.taken, stage.told) == (None, [])


async def test_an_agent_cannot_answer_a_secret_prompt(home: Path) -> None:
    async with shared_terminals(home) as stage:
        terminal = await stage.open("bash", "-c", "read -s x; echo got:$x")
        await until_secret(terminal)
        with pytest.raises(TypingRefused, match="only a person may give"):
            await terminal.type(b"guess\n", AGENT)
        await terminal.type(b"known\n", ANN)
        await wait_for_output(terminal, b"got:known")
        await until(lambda: stage.typed != [])
        assert stage.typed == [Typed("ann", True, None)]
