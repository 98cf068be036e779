"""Our end of a PTY never blocks: not on output, not on input, not at the end."""

import os
import termios
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.keeper.pty import INPUT_MAX, PtyMaster
from handrail.keeper.spool import Spool
from handrail.terminal.output.tail import Tail


@pytest.fixture
def pty() -> Iterator[PtyMaster]:
    end = PtyMaster(100, 30)
    tty.setraw(end.slave)
    yield end
    end.close()


def test_it_has_the_size_it_was_given(pty: PtyMaster) -> None:
    assert os.get_terminal_size(pty.slave) == (100, 30)
    pty.resize(120, 40)
    assert os.get_terminal_size(pty.slave) == (120, 40)


def test_a_pump_takes_no_more_than_its_budget_and_leaves_the_rest(pty: PtyMaster, tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "t"), 1 << 20)
    os.write(pty.slave, b"x" * 3000)
    assert pty.pump(spool, budget=1)
    taken = spool.size
    assert 0 < taken <= 3000
    assert pty.pump(spool)
    assert Tail(tmp_path / "t").read(0) == (b"x" * 3000, 3000)
    assert pty.pump(spool)  # nothing is there, and nothing is waited for
    spool.close()


def test_a_flood_is_gathered_for_one_write_and_a_line_is_not(pty: PtyMaster, tmp_path: Path) -> None:
    spool, sizes = Spool(str(tmp_path / "t"), 1 << 20), list[int]()

    def more() -> Iterator[None]:
        for _ in range(3):
            sizes.append(spool.size)
            os.write(pty.slave, b"y" * 1000)
            yield

    os.write(pty.slave, b"x" * 1000)
    assert pty.pump(spool, more=more())
    assert (spool.size, sizes) == (1000, [])
    os.write(pty.slave, b"x" * 5000)
    assert pty.pump(spool, more=more())
    assert (spool.size, sizes) == (9000, [1000, 1000, 1000])
    assert Tail(tmp_path / "t").read(0)[0] == b"x" * 6000 + b"y" * 3000
    spool.close()


def test_a_flood_that_fills_the_buffer_is_written(pty: PtyMaster, tmp_path: Path) -> None:
    spool, sizes = Spool(str(tmp_path / "t"), 1 << 20), list[int]()

    def more() -> Iterator[None]:
        for _ in range(2):
            sizes.append(spool.size)
            os.write(pty.slave, b"y" * 5000)
            yield

    os.write(pty.slave, b"x" * 5000)
    assert pty.pump(spool, budget=5000, more=more())
    assert sizes == [0, 5000]
    assert Tail(tmp_path / "t").read(0)[0] == b"x" * 5000 + b"y" * 10000
    spool.close()


def test_an_agents_input_that_waits_is_dropped_where_it_has_come_to_be_hidden(pty: PtyMaster) -> None:
    typed = b"x" * (INPUT_MAX - 10)  # more than a PTY takes
    assert pty.type(typed, person=False)
    assert pty.type(b"a person's", person=True)
    taken = INPUT_MAX - pty.typed_ahead
    assert taken < len(typed)
    while taken:
        taken -= len(os.read(pty.slave, taken))
    modes = termios.tcgetattr(pty.slave)
    modes[3] = (modes[3] | termios.ICANON) & ~termios.ECHO
    termios.tcsetattr(pty.slave, termios.TCSANOW, modes)
    assert pty.is_secret
    pty.write_input()
    assert not pty.wants_to_write
    assert pty.type(b"\n", person=True)
    assert os.read(pty.slave, 65536) == b"a person's\n"


def test_input_waits_in_a_bounded_queue_and_goes_out_in_order(pty: PtyMaster) -> None:
    typed = os.urandom(INPUT_MAX)
    assert pty.type(typed, person=True)
    assert pty.wants_to_write
    assert not pty.type(b"y" * INPUT_MAX, person=True)
    assert pty.type(b"last words", person=True)
    read = b""
    while len(read) < INPUT_MAX + 10:
        read += os.read(pty.slave, 65536)
        pty.write_input()
    assert read == typed + b"last words"
    assert not pty.wants_to_write
    assert pty.type(b"again", person=True)
