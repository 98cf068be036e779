"""A byte stream gives the same lines however it is cut, and no line longer than the limit."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.framing import LineBuffer, LineTooLong


@given(st.lists(st.binary().map(lambda data: data.replace(b"\n", b""))), st.sets(st.integers(0, 200)))
def test_lines_are_the_same_however_the_stream_is_cut(lines: list[bytes], cuts: set[int]) -> None:
    stream, buffer, found = b"".join(line + b"\n" for line in lines), LineBuffer(1000), list[bytes]()
    for begin, end in pairwise([0, *sorted(cut for cut in cuts if cut <= len(stream)), len(stream)]):
        found += buffer.feed(stream[begin:end])
    assert found == lines


def test_a_line_of_the_limit_is_taken() -> None:
    assert LineBuffer(10).feed(b"x" * 10 + b"\n") == [b"x" * 10]


@pytest.mark.parametrize(
    "pieces", [(b"x" * 11,), (b"x" * 10, b"x"), (b"x" * 10, b"x\n"), (b"a\n" + b"x" * 11,)]
)
def test_a_longer_line_is_refused_and_not_kept(pieces: tuple[bytes, ...]) -> None:
    buffer = LineBuffer(10)
    *before, last = pieces
    for piece in before:
        buffer.feed(piece)
    with pytest.raises(LineTooLong, match="longer than 10 bytes"):
        buffer.feed(last)
    assert buffer.feed(b"next\n") == [b"next"]
