"""The line that tells what is under way: on a terminal it comes and goes, elsewhere there is none."""

import os
import select
import sys
from collections.abc import Generator
from contextlib import contextmanager
from io import TextIOWrapper

import pytest
from tests.support.cli_home import BOUND

from handrail.cli.render.chat_output import StatusLine


class Terminal:
    """Where stdout and stderr lead."""

    def __init__(self, master: int) -> None:
        self._master = master

    def got(self) -> str:
        assert select.select([self._master], [], [], BOUND)[0], "nothing was written"
        return os.read(self._master, 65_536).decode()


@contextmanager
def terminal(columns: int) -> Generator[Terminal]:
    """Set within the test: between its fixtures and itself, pytest puts its own streams back."""
    master, slave = os.openpty()
    stream = TextIOWrapper(os.fdopen(slave, "wb", buffering=0), encoding="utf-8", write_through=True)
    with pytest.MonkeyPatch.context() as patched, stream:
        patched.setattr(sys, "stdout", stream)
        patched.setattr(sys, "stderr", stream)
        patched.setenv("COLUMNS", str(columns))
        yield Terminal(master)
    os.close(master)


def test_it_is_written_over_and_taken_back() -> None:
    with terminal(80) as screen:
        status = StatusLine()
        status.show("Step 1")
        assert screen.got() == "\r\x1b[2K\x1b[2mStep 1\x1b[0m"
        status.show("Step 1")  # as it is
        status.show("Step 2")
        assert screen.got() == "\r\x1b[2K\x1b[2mStep 2\x1b[0m"
        status.show("")
        status.clear()  # there is nothing
        assert screen.got() == "\r\x1b[2K"


def test_it_never_takes_more_than_one_line_and_cannot_drive_the_terminal() -> None:
    with terminal(20) as screen:
        StatusLine().show("日本語日本語日本語日本語")
        assert screen.got() == "\r\x1b[2K\x1b[2m日本語日本語日本語…\x1b[0m"
        StatusLine().show("a\n\x1b]0;x\x07")
        assert screen.got() == "\r\x1b[2K\x1b[2ma\\n\\e]0;x\\u{7}\x1b[0m"


def test_where_there_is_no_terminal_nothing_jumps(capsys: pytest.CaptureFixture[str]) -> None:
    status = StatusLine()
    status.show("Step 1")
    status.clear()
    assert capsys.readouterr() == ("", "")
