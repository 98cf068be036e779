"""Keys on a real terminal: those typed before a question, and just after it appeared, answer nothing."""

import os
import select
import termios
import time
from collections.abc import Iterator

import pytest

from handrail.cli.interactive.keyboard import GUARD_SECONDS, Keyboard

BOUND = 30.0


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
        assert keyboard.key(BOUND) == "s"


def test_a_burst_is_no_key(terminal: tuple[int, int]) -> None:
    person, program = terminal
    with Keyboard(program) as keyboard:
        os.write(person, b"\x1b[A")
        assert keyboard.key(BOUND) is None
        os.write(person, b"d")
        assert keyboard.key(BOUND) == "d"


def test_a_reason_is_a_whole_line_and_the_terminal_is_left_as_it_was(terminal: tuple[int, int]) -> None:
    person, program = terminal
    before = termios.tcgetattr(program)
    with Keyboard(program) as keyboard:
        os.write(person, b"thrown away")
        assert select.select([program], [], [], BOUND)[0], "the terminal passes keys on in its own time"
        assert keyboard.line(lambda: type_(person, b"use the \x7f\x7f mirror\n")) == "use th mirror"
    assert termios.tcgetattr(program) == before


def type_(person: int, text: bytes) -> None:
    os.write(person, text)
