"""Where a page begins that cannot take all of an output: at a line, and knowing whether a screen lay over it."""

from pathlib import Path

import pytest

from handrail.keeper.spool import Spool
from handrail.terminal.output.paging import find_line_near_end, is_alternate_screen
from handrail.terminal.output.tail import Tail

ON, OFF = b"\x1b[?1049h", b"\x1b[?1049l"


def tail_of(directory: Path, data: bytes, cap: int = 64 * 1024 * 1024) -> Tail:
    spool = Spool(str(directory / "t"), cap)
    for at in range(0, len(data), 100):
        spool.append(memoryview(data[at : at + 100]))
    spool.close()
    return Tail(directory / "t", closed=True)


@pytest.mark.parametrize(
    ("reach", "begin"),
    [
        (1000, 0),  # all of it
        (20, 0),  # exactly all of it
        (19, 5),  # the middle of a line: the next one
        (15, 5),  # exactly where a line begins
        (14, 10),
        (1, 20),  # only the newline itself: nothing is left
        (0, 20),
    ],
)
def test_it_begins_at_a_line_within_reach(tmp_path: Path, reach: int, begin: int) -> None:
    assert find_line_near_end(tail_of(tmp_path, b"abcd\nefgh\nijkl\nmnop\n"), reach) == begin


def test_where_no_line_begins_it_begins_anywhere(tmp_path: Path) -> None:
    assert find_line_near_end(tail_of(tmp_path, b"one\n" + b"x" * 500), 100) == 404


def test_it_never_begins_before_what_is_kept(tmp_path: Path) -> None:
    tail = tail_of(tmp_path, b"".join(b"%07d\n" % n for n in range(1000)), cap=800)
    assert tail.first > 0
    begin = find_line_near_end(tail, 1 << 40)
    assert tail.first <= begin <= tail.first + 8
    assert begin % 8 == 0


def test_of_an_empty_output_it_begins_at_the_start(tmp_path: Path) -> None:
    assert find_line_near_end(Tail(tmp_path / "none"), 100) == 0
    assert is_alternate_screen(Tail(tmp_path / "none"), 0) is False


def test_the_last_word_before_an_offset_says_which_screen_it_is(tmp_path: Path) -> None:
    data = b"a" * 50 + ON + b"b" * 3_000_000 + OFF + b"c" * 50
    tail, off = tail_of(tmp_path, data), 58 + 3_000_000
    found = [is_alternate_screen(tail, at) for at in (0, 50, 57, 58, 59, off, off + 7, off + 8, len(data))]
    assert found == [False, False, False, True, True, True, True, False, False]


@pytest.mark.parametrize("cut", range(1, 8))
def test_a_switch_that_lies_across_two_pieces_is_seen(tmp_path: Path, cut: int) -> None:
    """Pieces of a mebibyte are looked through from the offset backwards."""
    data = b"x" * 100 + ON + b"y" * (1024 * 1024 - cut)
    assert is_alternate_screen(tail_of(tmp_path, data), len(data)) is True


@pytest.mark.parametrize("switch", [b"\x1b[?1049h", b"\x1b[?47h", b"\x1b[?1047h", b"\x1b[?1;1049;25h"])
def test_every_spelling_of_the_switch_is_known(tmp_path: Path, switch: bytes) -> None:
    assert is_alternate_screen(tail_of(tmp_path, switch), len(switch)) is True
    assert is_alternate_screen(tail_of(tmp_path / "off", switch.replace(b"h", b"l")), len(switch)) is False
