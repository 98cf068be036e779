"""Bytes of a terminal become the text a person would have seen, in one piece or in many."""

import time
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from handrail.terminal.output.plain_text import BLANKS, LONGEST, REACH, PlainTextStream, plain_text

BAR = b"".join(b"\r\x1b[2K[%-10s] %d%%" % (b"=" * (n // 10), n) for n in range(101))


@pytest.mark.parametrize(
    ("printed", "read"),
    [
        (b"hello\r\nworld\r\n", "hello\nworld\n"),
        (b"\x1b[1;31mred\x1b[0m plain", "red plain"),
        (b"\x1b]0;a title\x07text", "text"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"10%\r50%\r100%\r\ndone", "100%\ndone"),
        (b"long line\rshort", "shortline"),
        (b"long line\rshort\x1b[K", "short"),
        (b"long line\r\x1b[2Kshort", "short"),
        (b"abc\b\bX", "aXc"),
        (b"abc\b \b\b \b", "a  "),
        (b"\x1b[2Kcleared\x1b[", "cleared"),
        (b"bell\x07 and nul\x00", "bell and nul"),
        (b"\xff\xfe bad", "\ufffd\ufffd bad"),
        ("größe ✓".encode(), "größe ✓"),
        (b"tab\tkept", "tab\tkept"),
        (b"\x1bPq#0;2;0;0;0\x1b\\after", "after"),
        (b"\x1b]0;never ended\r\nand \x1b[1mnext", "next"),
        (b"a\x1b]2;two\nlines\x07b\r\nc", "ab\nc"),
        (b"", ""),
        (BAR + b"\r\nok", "[==========] 100%\nok"),
        ("进度 10%\r进度 20%\r\n".encode(), "进度 20%\n"),
        ("中中\b\b\bx".encode(), " x中"),
        (b"one\r\ntwo\r\nthree\x1b[2A\rONE", "ONE\ntwo\nthree"),
        (b"$ lss\b\x1b[K -l\r\n", "$ ls -l\n"),
        (b"abcd\b\b\b\x1b[1P!", "a!d"),
        (b"a: 1\r\nb: 1\r\n\x1b[2A\x1b[Ja: 2\r\n", "a: 2\n"),
        (b"x\x1b[3Cy", "x   y"),
        (b"\x1b[999Atop", "top"),
    ],
)
def test_escapes_are_resolved_and_overwritten_text_is_gone(printed: bytes, read: str) -> None:
    assert plain_text(printed) == read


@pytest.mark.parametrize(
    "redraw",
    [
        b"\x1b[2A\r\x1b[2Ka: %d\r\n\x1b[2Kb: %d\r\n",  # docker
        b"\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2K\x1b[Ga: %d\r\nb: %d\r\n",  # npm
        b"\x1b[2F\x1b[0Ja: %d\r\nb: %d\r\n",
        b"\x1bM\x1bM\ra: %d\r\nb: %d\r\n",
    ],
)
def test_bars_of_several_lines_keep_their_last_state(redraw: bytes) -> None:
    printed = b"start\r\na: 0\r\nb: 0\r\n" + b"".join(redraw % (n, n) for n in range(1, 60)) + b"end\r\n"
    assert plain_text(printed) == "start\na: 59\nb: 59\nend\n"


def test_a_cursor_reaches_no_further_than_a_screen_may_be_high() -> None:
    lines = b"".join(b"%d\r\n" % n for n in range(5000))
    text = plain_text(lines + b"\x1b[4999Aup").split("\n")
    assert [number for number, line in enumerate(text) if line.startswith("up")] == [5000 - REACH]


@given(st.binary(max_size=300))
def test_whatever_was_printed_no_control_character_is_left(printed: bytes) -> None:
    left = {char for char in plain_text(printed) if ord(char) < 32 or 127 <= ord(char) < 160}
    assert left <= {"\n", "\t"}


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200))
def test_plain_text_is_left_as_it_is(text: str) -> None:
    assert plain_text(text.encode()) == text


SEQUENCES = [
    b"\r\n", b"\n", b"\r", b"\b", b"\t", b"\x1b[31m", b"\x1b[K", b"\x1b[2K", b"\x1b[A", b"\x1b[2A", b"\x1b[B", b"\x1b[3C",
    b"\x1b[2D", b"\x1b[J", b"\x1b[P", b"\x1b[@", b"\x1b[X", b"\x1b[G", b"\x1bM", b"\x1b]0;t\x07", b"\x1b]0;t\x1b\\", b"\x1b]",
    b"\x1bP", b"\x1b", b"\x1b[", b"\x1b[?25l", b"\x1b(B", b"\x18", b"\x07", b"\x1b[" + b"1" * 300, "中".encode(), "é".encode(),
    "e\u0301".encode(), "👍🏽".encode(), b"\xc2\x9b", b"\xe2\x9c", b"\xff", b"a", b"word ", b"\x1b\\", b"x" * 40,
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.one_of(st.sampled_from(SEQUENCES), st.binary(max_size=4)), max_size=60).map(b"".join),
    st.lists(st.integers(0, 500), max_size=10),
)
@example(b"\x1b\x1b]0;t\x1b\\?", [2])
@example(b"\x1b\x1b[31m?\n", [1])
@example(b" \x1b]\r\n\x1b]0;t\x07\x1b[2K", [7])
def test_text_made_piece_by_piece_is_the_text_of_the_whole(printed: bytes, cuts: list[int]) -> None:
    at = sorted({0, len(printed), *(cut % (len(printed) + 1) for cut in cuts)})
    stream = PlainTextStream()
    pieces = [stream.feed(printed[begin:end]) for begin, end in pairwise(at)]
    assert "".join(pieces) + stream.finish() == plain_text(printed)


@pytest.mark.parametrize("step", [1, 7, 4096])
def test_an_endless_line_that_moves_its_cursor_is_the_same_in_pieces(step: int) -> None:
    printed = (b"abc" * LONGEST)[: LONGEST + 10] + b"\b\bXY\rstart" + b"z" * 50
    stream = PlainTextStream()
    text = (
        "".join(stream.feed(printed[at : at + step]) for at in range(0, len(printed), step)) + stream.finish()
    )
    assert text == plain_text(printed)
    assert len(text) == LONGEST + 55


@pytest.mark.parametrize(
    "hostile",
    [
        b"\x1b", b"\x1b[", b"\x1b]", b"\x1b[1", b"\x1b[1;", b"\r", b"x\r", b"\x1b[A", b"\x1b[200@", b"a\b\n", b"\x1b[9999C\rx",
        b"\xff", b"\x1bP\n", b"x", b"\x1b[100Ax\x1b[100B", b"\n\x1b[A",
    ],
)  # fmt: skip
def test_hostile_output_takes_time_in_proportion_to_its_length(hostile: bytes) -> None:
    def seconds(size: int) -> float:
        printed = (hostile * (size // len(hostile) + 1))[:size]
        begin = time.process_time()
        plain_text(printed)
        return time.process_time() - begin

    small = min(seconds(100_000) for _ in range(3))
    assert seconds(800_000) < 8 * small * 4 + 0.2


@pytest.mark.parametrize(
    "line",
    [b"\x1b[65535G.\r\n", b"\x1b[9999C.\n", b"x\r" + b"\x1b[256@" * 60 + b"\n"],
    ids=["column", "forward", "insert"],
)
def test_a_few_bytes_do_not_become_megabytes_of_blanks(line: bytes) -> None:
    printed = line * (256 * 1024 // len(line))
    assert len(plain_text(printed)) < 10 * len(printed) + 2 * BLANKS


def test_columns_far_to_the_right_stand_where_they_should() -> None:
    printed = b"".join(b"unit %d\x1b[60G[ ok ]\r\n" % n for n in range(2000))
    lines = plain_text(printed).splitlines()
    assert {line.index("[ ok ]") for line in lines} == {59}
