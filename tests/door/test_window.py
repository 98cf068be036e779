"""The modes and the size of a window."""

import os
import termios

import pytest

from handrail.door.window import USUAL_SIZE, quiet, raw, size_of


@pytest.fixture
def usual() -> list[object]:
    fd, theirs = os.openpty()
    try:
        return termios.tcgetattr(theirs)
    finally:
        os.close(fd)
        os.close(theirs)


def test_raw_leaves_nothing_to_the_kernel(usual: list[object]) -> None:
    iflag, oflag, _, lflag, _, _, keys = raw(usual)
    assert not oflag & termios.OPOST
    assert not lflag & (termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
    assert not iflag & (termios.ICRNL | termios.IXON)
    assert keys[termios.VMIN] == 1


def test_quiet_shows_no_key_and_still_heeds_an_interrupt(usual: list[object]) -> None:
    _, oflag, _, lflag, _, _, _ = quiet(usual)
    assert oflag == usual[1]
    assert lflag & termios.ISIG
    assert not lflag & (termios.ECHO | termios.ICANON)


def test_without_a_terminal_the_size_is_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: dict[int, tuple[int, int]] = {}

    def look(fd: int) -> tuple[int, int]:
        if fd not in sizes:
            raise OSError
        return sizes[fd]

    monkeypatch.setattr(os, "get_terminal_size", look)
    assert size_of(7) == USUAL_SIZE
    sizes[2] = (90, 20)
    assert size_of(7) == (90, 20)
    sizes[7] = (0, 0)  # a terminal that nobody told its size
    assert size_of(7) == (90, 20)
    sizes[7] = (50, 10)
    assert size_of(7) == (50, 10)
