"""Bytes as JSON can carry them: joined again they are what was written."""

import base64
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from handrail.terminal.output.tail import Tail
from handrail.tools.terminals.get_terminal_buffer import Raw, mask, raw


def exact(piece: Raw) -> bytes:
    told = json.loads(json.dumps(piece.text))
    return base64.b64decode(piece.base64) if piece.base64 is not None else told.encode()


def readings(data: bytes, size: int) -> list[Raw]:
    found: list[Raw] = []
    at = 0
    while at < len(data):
        cut = data[at : at + size]
        found.append(raw(cut, final=at + len(cut) == len(data)))
        at += found[-1].length
    return found


@given(
    st.binary(max_size=200) | st.text(max_size=80).map(lambda text: text.encode("utf-8", "replace")),
    st.integers(4, 50),
)
def test_readings_join_to_the_bytes_whatever_they_are(data: bytes, size: int) -> None:
    found = readings(data, size)
    assert b"".join(exact(piece) for piece in found) == data


@given(st.text(max_size=80).map(lambda text: text.encode("utf-8", "replace")), st.integers(4, 50))
def test_text_needs_no_base64_wherever_it_is_cut(data: bytes, size: int) -> None:
    found = readings(data, size)
    assert all(piece.base64 is None for piece in found)
    assert "".join(piece.text for piece in found).encode() == data


def test_a_character_that_never_ends_is_told_when_nothing_can_follow() -> None:
    assert raw(b"ab\xe2\x82", final=False) == Raw(text="ab", base64=None, length=2)
    assert raw(b"ab\xe2\x82", final=True).base64 == base64.b64encode(b"ab\xe2\x82").decode()


def test_a_nonce_is_blotted_out_wherever_it_is_cut(tmp_path: Path) -> None:
    nonce, whole = "c0ffee11", b"before c0ffee11 between c0ffee11c0ffee11 after"
    (tmp_path / f"{0:020d}.seg").write_bytes(whole)
    tail = Tail(tmp_path)
    blotted = whole.replace(nonce.encode(), b"x" * len(nonce))
    for start in range(len(whole)):
        for end in range(start, len(whole) + 1):
            assert mask(whole[start:end], start, tail, nonce) == blotted[start:end]
    assert mask(whole, 0, tail, "") == whole
