"""Bytes of a terminal become the text a person would have seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.terminal.screen import plain


@pytest.mark.parametrize(
    ("printed", "read"),
    [
        (b"hello\r\nworld\r\n", "hello\nworld\n"),
        (b"\x1b[1;31mred\x1b[0m plain", "red plain"),
        (b"\x1b]0;a title\x07text", "text"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"10%\r50%\r100%\r\ndone", "100%\ndone"),
        (b"long line\rshort", "shortline"),
        (b"abc\b\bX", "aXc"),
        (b"\x1b[2Kcleared\x1b[", "cleared"),
        (b"bell\x07 and nul\x00", "bell and nul"),
        (b"\xff\xfe bad", "\ufffd\ufffd bad"),
        ("größe ✓".encode(), "größe ✓"),
        (b"tab\tkept", "tab\tkept"),
        (b"\x1bPq#0;2;0;0;0\x1b\\after", "after"),
        (b"", ""),
    ],
)
def test_escapes_are_resolved_and_overwritten_text_is_gone(printed: bytes, read: str) -> None:
    assert plain(printed) == read


@given(st.binary(max_size=300))
def test_whatever_was_printed_no_control_character_is_left(printed: bytes) -> None:
    left = {char for char in plain(printed) if ord(char) < 32 or 127 <= ord(char) < 160}
    assert left <= {"\n", "\t"}


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200))
def test_plain_text_is_left_as_it_is(text: str) -> None:
    assert plain(text.encode()) == text
