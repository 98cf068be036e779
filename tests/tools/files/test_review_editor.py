"""A file in an editor and back: nothing is lost that the editor does not show."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.tool_runner import refusal_of

from handrail.tools.files.review import Editor

_TEXTS = st.lists(
    st.tuples(
        st.sampled_from(
            [b"a", b"b", b"", b"\xe9", "é".encode(), "\uef80".encode(), b"\xef\xbb\xbfc", b"x y"]
        ),
        st.sampled_from([b"\n", b"\r\n", b"\r"]),
    ),
    max_size=8,
).map(lambda lines: b"".join(line + ending for line, ending in lines))
_FILES = st.one_of(
    _TEXTS, _TEXTS.map(lambda raw: raw.rstrip(b"\r\n")), _TEXTS.map(lambda raw: b"\xef\xbb\xbf" + raw)
)


@given(before=st.none() | _FILES, proposed=st.none() | _FILES)
def test_what_is_shown_and_left_alone_is_what_was_proposed(
    before: bytes | None, proposed: bytes | None
) -> None:
    editor = Editor(before, proposed)
    shown = editor.shown(proposed)
    assert shown is None or "\r" not in shown
    (shown or "").encode()  # so JSON takes it
    assert editor.written(shown or "") == proposed
    if editor.shown(before) != shown:
        assert editor.written(editor.shown(before) or "") in (before, proposed)


@given(raw=_FILES, at=st.integers(0, 8))
def test_an_edit_of_one_line_leaves_the_bytes_of_every_other_as_they_are(raw: bytes, at: int) -> None:
    editor = Editor(raw, raw)
    lines = (editor.shown(raw) or "").split("\n")
    place = at % len(lines)
    lines[place] = "QQQ"
    written = editor.written("\n".join(lines)) or b""
    parts = re.split(rb"(\r\n|\r|\n)", raw.removeprefix(b"\xef\xbb\xbf"))
    marked = raw.startswith(b"\xef\xbb\xbf")
    parts[2 * place] = b"QQQ"
    assert (
        re.split(rb"(\r\n|\r|\n)", written.removeprefix(b"\xef\xbb\xbf" if marked else b""))[::2]
        == parts[::2]
    )
    assert written.startswith(b"\xef\xbb\xbf") or not marked


@pytest.mark.parametrize(
    ("before", "proposed", "content", "written"),
    [
        (b"a\r\nb\r\n", b"a\r\nc\r\n", "a\nmine\n", b"a\r\nmine\r\n"),
        (b"a\r\nb\r\n", b"a\r\nc\r\n", "a\r\nmine\r\n", b"a\r\nmine\r\n"),
        (b"a\nb\n", b"a\nc\n", "a\nmine", b"a\nmine"),
        (b"a\nb", b"a\nc", "a\nmine\n", b"a\nmine\n"),
        (b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfb\n", "mine\n", b"\xef\xbb\xbfmine\n"),
        (b"a\nb\r\nc\n", b"a\nb\r\nd\n", "a\nnew\nb\nmine\n", b"a\nnew\nb\r\nmine\r\n"),
        (b"a\r\nb\r\n", b"a\nc\n", "a\nb\n", b"a\r\nb\r\n"),
        (b"caf\xe9\n", b"caf\xe9!\n", None, b"caf\xe9 mine\n"),
        (None, b"a\n", "", None),
        (b"a\n", None, "mine\n", b"mine\n"),
        (b"a\n", None, "", None),
    ],
)
def test_what_a_person_left_is_written_in_the_files_own_style(
    before: bytes | None, proposed: bytes | None, content: str | None, written: bytes | None
) -> None:
    editor = Editor(before, proposed)
    if content is None:
        content = (editor.shown(proposed) or "").replace("!", " mine")
    assert editor.written(content) == written


def test_half_a_character_is_refused() -> None:
    assert "half a character" in refusal_of(lambda: Editor(b"a", b"b").written("\ud800"))


def test_private_characters_of_the_file_itself_stay_themselves() -> None:
    raw = "\uef80\ue000".encode() + b"\xff\n"
    editor = Editor(raw, raw + b"x\n")
    shown = editor.shown(raw) or ""
    assert shown.startswith("\uef80\ue000")
    assert editor.written(f"{shown}y\n") == raw + b"y\n"
