"""Keys on a real terminal: those typed before a question, and just after it appeared, answer nothing."""

import os
import termios
import threading
import time
from collections.abc import Iterator

import pytest

from handrail.cli.ask import choice
from handrail.cli.keyboard import GUARD_SECONDS, Keyboard


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    person, program = os.openpty()
    yield person, program
    os.close(person)
    os.close(program)


def test_type_ahead_and_keys_within_the_guard_are_thrown_away(terminal: tuple[int, int]) -> None:
    person, program = terminal
    with Keyboard(program) as keyboard:
        os.write(person, b"aaa\n")
        keyboard.guard()
        begun = time.monotonic()
        os.write(person, b"A")
        assert keyboard.key(0.1) is None
        os.write(person, b"d")
        assert keyboard.key(GUARD_SECONDS) is None
        assert time.monotonic() - begun >= GUARD_SECONDS
        os.write(person, b"s")
        assert keyboard.key(5.0) == "s"


def test_a_burst_is_no_key(terminal: tuple[int, int]) -> None:
    person, program = terminal
    with Keyboard(program) as keyboard:
        os.write(person, b"\x1b[A")
        assert keyboard.key(5.0) is None
        os.write(person, b"d")
        assert keyboard.key(5.0) == "d"


def test_a_reason_is_a_whole_line_and_the_terminal_is_left_as_it_was(terminal: tuple[int, int]) -> None:
    person, program = terminal
    before = termios.tcgetattr(program)
    with Keyboard(program) as keyboard:
        os.write(person, b"thrown away")
        writer = threading.Thread(target=type_when_echoed, args=(person, b"use the \x7f\x7f mirror\n"))
        writer.start()
        assert keyboard.line() == "use th mirror"
        writer.join(5.0)
    assert termios.tcgetattr(program) == before


def type_when_echoed(person: int, text: bytes) -> None:
    """Once a line has been asked for, which turns echo on again and throws away what was typed before."""
    until = time.monotonic() + 5.0
    while not termios.tcgetattr(person)[3] & termios.ECHO:
        assert time.monotonic() < until
    os.write(person, text)


@pytest.mark.parametrize(
    ("key", "risk", "means"),
    [
        ("a", "low", "allow"),
        ("a", "medium", "allow"),
        ("a", "high", None),
        ("a", "unheard of", None),
        ("A", "high", "allow"),
        ("d", "high", "deny"),
        ("r", "low", "reason"),
        ("s", "low", "skip"),
        ("\n", "low", None),
        (" ", "low", None),
        ("y", "low", None),
    ],
)
def test_only_a_named_key_answers_and_high_risk_takes_a_capital(
    key: str, risk: str, means: str | None
) -> None:
    assert choice(key, risk) == means
