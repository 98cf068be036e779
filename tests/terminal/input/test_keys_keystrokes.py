"""A keyboard's bytes, cut into text and keys, however they arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.terminal.input.keys import PIECES_MAX, Key, Keystrokes, Skipped, Text, is_typing
from handrail.terminal.input.keys import readable as read


def readable(data: bytes) -> str:
    """A short input, of which nothing is left out."""
    text, more = read(data)
    assert more == 0
    return text


def cut(*pieces: bytes) -> list[Text | Key | Skipped]:
    strokes = Keystrokes()
    return [found for piece in pieces for found in strokes.feed(piece)]


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b"\x03\x04\x1a\x1c", ["^C", "^D", "^Z", "^\\"]),
        (b"\r\n\x7f\x08\t\x1b", ["<enter>", "<enter>", "<backspace>", "<backspace>", "<tab>", "<escape>"]),
        (b"\x1b[A\x1bOB\x1b[5~\x1b[3~\x1bOP", ["<up>", "<down>", "<page-up>", "<delete>", "<f1>"]),
        (b"\x1b[1;5C\x1b[Z", ["<ctrl-right>", "<shift-tab>"]),
        (b"\x1bb\x1b[97;6u", ["<alt-b>", "<key>"]),
    ],
)
def test_keys_have_names(data: bytes, names: list[str]) -> None:
    assert cut(data) == [Key(name) for name in names]


@pytest.mark.parametrize(
    "report",
    [
        b"\x1b[?1;2c",
        b"\x1b[12;40R",
        b"\x1b[<0;10;5M",
        b"\x1b[<0;10;5m",
        b"\x1b[I\x1b[O",
        b"\x1b]11;rgb:0000/0000/0000\x1b\\",
        b"\x1b]11;rgb:0000/0000/0000\x07",
        b"\x1bP1+r544e=787465726d\x1b\\",
        b"\x1b[?2026;2$y",
    ],
)
def test_what_a_terminal_program_says_by_itself_is_no_key(report: bytes) -> None:
    assert cut(b"a", report, b"b") == [Text("a"), Text("b")]


def test_a_paste_is_text_with_its_line_ends() -> None:
    assert readable(b"\x1b[200~one\rtwo\x1b[201~") == "one\ntwo"
    assert cut(b"\x1b[200~a\rb\x1b[201~\r")[-1] == Key("<enter>")


def test_an_input_reads_as_it_was_meant() -> None:
    assert readable(b"make test\n") == "make test"
    assert readable(b"\r") == "<enter>"
    assert readable("größe\x03".encode()) == "größe^C"
    assert readable(b"ihello\x1b:wq\r") == "ihello<alt-:>wq"
    assert readable(b"") == ""


@given(st.data(), st.text(alphabet="aß漢\r\x03\x7f", max_size=12))
def test_it_does_not_matter_where_a_stream_is_cut(data: st.DataObject, text: str) -> None:
    whole = f"{text}\x1b[A\x1b[200~x\x1b[201~{text}".encode()
    at = data.draw(st.integers(0, len(whole)))
    # A cut right behind an escape is the key by that name: a person who presses it sends nothing more.
    if whole[:at].endswith(b"\x1b"):
        return
    assert joined(cut(whole[:at], whole[at:])) == joined(cut(whole))


def joined(found: list[Text | Key | Skipped]) -> list[str]:
    """Neighbouring text as one."""
    parts: list[str] = []
    for item in found:
        assert not isinstance(item, Skipped)
        if isinstance(item, Text) and parts and parts[-1].startswith("text:"):
            parts[-1] += item.text
        else:
            parts.append(f"text:{item.text}" if isinstance(item, Text) else f"key:{item.name}")
    return parts


@given(st.binary(max_size=200))
def test_no_input_breaks_it(data: bytes) -> None:
    cut(data)
    readable(data)


def test_of_a_flood_the_beginning_is_cut_and_the_rest_is_counted() -> None:
    *head, rest = cut(b"one line\r\n" * 20_000)
    assert len(head) == PIECES_MAX
    assert rest == Skipped(
        lines=20_000 - PIECES_MAX // 3, size=200_000 - 10 * (PIECES_MAX // 3) - len("one line")
    )
    assert read(b"ls\n" * 20_000) == ("ls\n" * (PIECES_MAX // 2 - 1) + "ls", 20_000 - PIECES_MAX // 2)


def test_what_a_flood_leaves_unfinished_goes_on_behind_it() -> None:
    flood = b"x\n" * PIECES_MAX
    assert cut(b"\x1b[200~" + flood, b"a\rb")[-3:] == [Text("a"), Text("\n"), Text("b")]
    assert cut(b"\x1b[200~" + flood + b"\x1b[201~", b"\r")[-1] == Key("<enter>")
    assert cut(b"\x1b[200~" + flood + b"\x1b[20", b"1~\r")[-1] == Key("<enter>")


def test_so_much_as_no_program_says_by_itself_is_typed() -> None:
    assert not is_typing(b"\x1b[I\x1b[<0;10;5M")
    assert is_typing(b"\x1b[I" * 5000)
