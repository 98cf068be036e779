"""Framing: whatever the chunks, the lines are the same, and no byte is lost, doubled or held without bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.door import jsonrpc_lines
from handrail.door.jsonrpc_lines import KEEP, Lines, Outbox, Piece

streams = st.lists(st.sampled_from([b"\n", b"a", b'{"id":1}', b"\r\n", b"\xff\x00", b"x" * 40])).map(b"".join)


def chunked(data: bytes, sizes: list[int]) -> list[bytes]:
    chunks: list[bytes] = []
    for size in sizes:
        chunks.append(data[:size])
        data = data[size:]
    return [*chunks, data]


@given(stream=streams, sizes=st.lists(st.integers(0, 30)), bound=st.sampled_from([1, 7, 50, KEEP]))
def test_chunks_do_not_change_what_passes(stream: bytes, sizes: list[int], bound: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonrpc_lines, "KEEP", bound)
        cutter = Lines()
        pieces = [piece for chunk in chunked(stream, sizes) for piece in cutter.feed(chunk)] + cutter.rest()
    assert b"".join(piece.data for piece in pieces) == stream
    whole = [b""]
    for piece in pieces:
        assert piece.starts == (whole[-1] == b"")
        whole[-1] += piece.data
        if piece.ends:
            whole.append(b"")
    assert whole[-1] == b""
    assert whole[:-1] == cut(stream)


def cut(stream: bytes) -> list[bytes]:
    *ended, rest = stream.split(b"\n")
    return [line + b"\n" for line in ended] + ([rest] if rest else [])


def test_a_line_within_the_bound_is_held_until_it_is_whole() -> None:
    cutter = Lines()
    assert cutter.feed(b'{"id":1,') == []
    [piece] = cutter.feed(b'"method":"x"}\nrest')
    assert piece.data == b'{"id":1,"method":"x"}\n'
    assert [each.key for each in piece.requests] == ["1"]


def test_a_longer_line_is_let_through_in_pieces_and_known_at_its_end() -> None:
    cutter = Lines()
    first = cutter.feed(b'{"method":"tools/call","params":"' + b"x" * KEEP)
    middle = cutter.feed(b"x" * 10)
    last = cutter.feed(b'","jsonrpc":"2.0","id":"9"}\nnext')
    pieces = first + middle + last
    assert [(piece.starts, piece.ends) for piece in pieces] == [(True, False), (False, False), (False, True)]
    assert [piece.requests and piece.requests[0].key for piece in pieces] == [[], [], '"9"']
    assert not cutter.inside_long


def written(outbox: Outbox, count: int) -> bytes:
    data = bytes(outbox.next(count))
    outbox.wrote(len(data))
    return data


def test_a_line_partly_written_begins_again_with_the_next_peer() -> None:
    outbox = Outbox()
    outbox.put(Piece(b"first\n", []))
    outbox.put(Piece(b"second\n", []))
    assert written(outbox, 100) == b"first\n"
    assert written(outbox, 3) == b"sec"
    assert outbox.start_over() == []
    assert written(outbox, 100) == b"second\n"
    assert not outbox
    assert outbox.size == 0


def test_the_rest_of_a_long_line_whose_beginning_went_is_dropped_to_its_end() -> None:
    outbox = Outbox()
    outbox.put(Piece(b"begin", [], ends=False))
    outbox.put(Piece(b"more", [], starts=False, ends=False))
    assert written(outbox, 100) == b"begin"
    assert [piece.data for piece in outbox.start_over()] == [b"more"]
    assert outbox.start_over() == []
    assert not outbox.put(Piece(b"still more", [], starts=False, ends=False))
    assert not outbox.put(Piece(b"end\n", [], starts=False))
    assert outbox.put(Piece(b"next\n", []))


def test_a_long_line_that_is_still_here_from_its_beginning_is_sent_again() -> None:
    outbox = Outbox()
    outbox.put(Piece(b"begin", [], ends=False))
    outbox.put(Piece(b"end\n", [], starts=False))
    assert written(outbox, 3) == b"beg"
    assert outbox.start_over() == []
    assert written(outbox, 100) + written(outbox, 100) == b"beginend\n"


def test_an_emptied_outbox_drops_the_rest_of_a_line_it_gave_up() -> None:
    outbox = Outbox()
    outbox.put(Piece(b"begin", [], ends=False))
    assert [piece.data for piece in outbox.empty()] == [b"begin"]
    assert outbox.size == 0
    assert not outbox.put(Piece(b"end\n", [], starts=False))
    assert outbox.put(Piece(b"next\n", []))
