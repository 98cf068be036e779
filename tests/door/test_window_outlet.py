"""Writing never waits, and changes nothing for others who hold the same descriptor."""

import os
import select
from pathlib import Path

import pytest

from handrail.door.window import Outlet

QUIET = 0.2
"""Seconds without room: the kernel moves on what a terminal was given in its own time."""


def filled(outlet: Outlet) -> int:
    """How much it takes until it stays full; a write that waits would hang here."""
    written = 0
    while select.select([], [outlet.fd], [], QUIET)[1]:
        written += outlet.write(memoryview(b"x" * 200_000))
        assert written < 10_000_000, "it is never full"
    return written


def test_a_terminal_that_is_not_read_takes_what_fits() -> None:
    fd, theirs = os.openpty()
    outlet = Outlet(theirs)
    assert 0 < filled(outlet) < 200_000
    assert outlet.write(memoryview(b"more")) == 0
    assert os.get_blocking(theirs)
    outlet.close()
    os.close(fd)
    os.close(theirs)


def test_a_pipe_that_is_not_read_takes_what_fits() -> None:
    fd, theirs = os.pipe()
    outlet = Outlet(theirs)
    assert filled(outlet) >= select.PIPE_BUF
    assert not select.select([], [outlet.fd], [], 0)[1]
    assert os.get_blocking(theirs)
    os.close(fd)
    with pytest.raises(BrokenPipeError):
        outlet.write(memoryview(b"more"))
    os.close(theirs)


def test_a_file_takes_large_pieces(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        assert Outlet(file.fileno()).write(memoryview(b"x" * 200_000)) == 1 << 16
