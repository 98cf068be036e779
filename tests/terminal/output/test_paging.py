"""A tail read by cursor, by last lines, by last chunks: every byte once, bounded, and the facts about the rest."""

import hashlib
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.keeper.spool import Spool
from handrail.terminal.output.paging import OutputPage, read_page
from handrail.terminal.output.plain_text import plain_text
from handrail.terminal.output.tail import Tail


def tail_of(folder: Path, *pieces: bytes, cap: int = 1 << 20, closed: bool = False) -> Tail:
    spool = Spool(str(folder), cap)
    for piece in pieces:
        spool.append(memoryview(piece))
    spool.close()
    return Tail(folder, closed=closed)


def text(reading: OutputPage) -> str:
    assert isinstance(reading.data, str)
    return reading.data


def raw(reading: OutputPage) -> bytes:
    assert isinstance(reading.data, bytes)
    return reading.data


def test_a_tail_nobody_wrote_to_reads_as_nothing(tmp_path: Path) -> None:
    reading = read_page(Tail(tmp_path / "none"))
    assert (reading.data, reading.start, reading.next, reading.end, reading.left_out) == ("", 0, 0, 0, 0)


def test_readings_by_cursor_have_every_byte_once(tmp_path: Path) -> None:
    chance = random.Random(7)
    printed = chance.randbytes(200_000)
    tail = tail_of(tmp_path / "t", printed, cap=1 << 20)
    digest, at = hashlib.sha256(), 0
    for _ in range(10_000):
        reading = read_page(tail, after=at, mode="raw", limit=chance.randrange(1, 500))
        digest.update(raw(reading))
        at = reading.next
        if at == reading.end:
            break
    assert digest.digest() == hashlib.sha256(printed).digest()


def test_a_cursor_before_what_is_kept_is_told_how_much_is_missing(tmp_path: Path) -> None:
    tail = tail_of(tmp_path / "t", *[b"line %04d\n" % number for number in range(1000)], cap=2000)
    reading = read_page(tail, after=0, mode="raw")
    assert reading.first > 0
    assert (reading.start, reading.left_out) == (reading.first, reading.first)
    assert reading.lines_dropped == reading.first // 10
    assert raw(reading) == b"".join(b"line %04d\n" % number for number in range(reading.first // 10, 1000))


def test_a_cursor_beyond_the_end_reads_nothing_and_goes_on_at_the_end(tmp_path: Path) -> None:
    reading = read_page(tail_of(tmp_path / "t", b"abc"), after=99)
    assert (reading.data, reading.next, reading.end) == ("", 3, 3)


def test_what_stands_after_a_gap_is_read_by_itself(tmp_path: Path) -> None:
    tail = tail_of(tmp_path / "t", b"\x1b]0;" + b"x" * 296, b"after\r\n", cap=800)
    assert [start for start, _ in tail.files] == [0, 100, 200, 300]
    assert text(read_page(tail, after=300)) == ""  # it is the end of a title
    tail.files[2][1].unlink()
    reading = read_page(tail, after=300)
    assert (text(reading), reading.start, reading.next) == ("after\n", 300, 307)


@pytest.mark.parametrize(
    ("printed", "lines", "shown"),
    [
        (b"a\r\nb\r\nc\r\n", 1, "c\n"),
        (b"a\r\nb\r\nc\r\n", 2, "b\nc\n"),
        (b"a\r\nb\r\nc", 2, "b\nc"),
        (b"a\r\nb\r\nc", 0, ""),
        (b"a\r\nb\r\nc", 99, "a\nb\nc"),
        (b"", 3, ""),
        (b"\r\n\r\n", 1, "\n"),
        (b"old\r\n" + b"one %d\r\ntwo\r\n\x1b[2A" * 50 + b"\x1b[2Bdone", 4, "old\none %d\ntwo\ndone"),
    ],
)
def test_the_last_lines_are_those_a_person_sees_last(
    tmp_path: Path, printed: bytes, lines: int, shown: str
) -> None:
    assert text(read_page(tail_of(tmp_path / "t", printed), lines=lines)) == shown


def test_the_last_lines_of_a_large_tail_are_found_from_its_end(tmp_path: Path) -> None:
    tail = tail_of(
        tmp_path / "t", b"".join(b"number %d\n" % number for number in range(100_000)), cap=8 << 20
    )
    reading = read_page(tail, lines=1000)
    assert text(reading).split("\n")[0] == "number 99000"
    assert (reading.next, reading.left_out) == (reading.end, 0)


def test_last_lines_beyond_the_limit_are_cut_and_it_is_said(tmp_path: Path) -> None:
    tail = tail_of(tmp_path / "t", b"x" * 5000)
    reading = read_page(tail, lines=1, limit=1000)
    assert (reading.data, reading.start, reading.left_out) == ("x" * 1000, 4000, 4000)


def test_the_last_chunks_are_as_they_were_written(tmp_path: Path) -> None:
    tail = tail_of(tmp_path / "t", b"first ", b"second ", b"third")
    asked = read_page(tail, chunks=2, mode="raw")
    assert (asked.start, asked.next) == (tail.chunks(2), 18)
    assert raw(asked) == b"first second third"[tail.chunks(2) :]
    assert read_page(tail, chunks=0, mode="raw").data == b""


def test_text_that_reached_its_limit_ends_with_a_line_and_goes_on_after_it(tmp_path: Path) -> None:
    tail = tail_of(tmp_path / "t", b"one\r\ntwo\r\nthree\r\n")
    reading = read_page(tail, after=0, limit=12)
    assert (reading.data, reading.next) == ("one\ntwo\n", 10)
    assert read_page(tail, after=10).data == "three\n"


@pytest.mark.parametrize(
    "cut",
    [b"\x1b", b"\x1b[", b"\x1b[1;3", b"\x1b]0;tit", b"\x1b]0;tit\x1b", b"\xe2", b"\xe2\x9c", b"\xf0\x9f\x98"],
)
def test_what_is_cut_off_at_the_end_is_left_for_the_next_reading(tmp_path: Path, cut: bytes) -> None:
    reading = read_page(tail_of(tmp_path / "t", b"text" + cut))
    assert (reading.data, reading.next, reading.end) == ("text", 4, 4 + len(cut))


def test_when_no_more_can_come_nothing_is_left(tmp_path: Path) -> None:
    reading = read_page(tail_of(tmp_path / "t", b"text\xe2\x9c", closed=True))
    assert (reading.data, reading.next) == ("text\ufffd", 6)


def test_an_endless_title_is_neither_waited_for_nor_shown(tmp_path: Path) -> None:
    tail = tail_of(tmp_path / "t", b"a\x1b]0;" + b"t" * 20_000 + b"\x07b\r\n")
    shown, at = "", 0
    for _ in range(100):
        reading = read_page(tail, after=at, limit=6000)
        assert reading.next > at
        shown, at = shown + text(reading), reading.next
        if at == reading.end:
            break
    assert shown == "ab\n"


@settings(max_examples=60, deadline=None)
@given(
    printed=st.lists(
        st.sampled_from(
            [b"word ", b"\r\n", b"\x1b[31m", b"\x1b[0m", "größe ✓ 😀".encode(), b"\x1b]0;t\x07", b"\x1b(B"]
        ),
        max_size=60,
    ),
    limit=st.integers(12, 60),
)
def test_text_read_piece_by_piece_is_the_text_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, printed: list[bytes], limit: int
) -> None:
    whole = b"".join(printed)
    tail = tail_of(tmp_path_factory.mktemp("t") / "t", whole, closed=True)
    shown, at = "", 0
    while at < len(whole):
        reading = read_page(tail, after=at, limit=limit)
        assert reading.next > at
        shown, at = shown + text(reading), reading.next
    assert shown == plain_text(whole)
