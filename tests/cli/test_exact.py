"""Nothing an agent wrote reaches a terminal unescaped."""

import io
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.cli.exact import exact_line, exact_text, hidden_warning
from handrail.cli.render import output

UNSAFE = {"Cc", "Cf", "Cs", "Zl", "Zp"}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@given(st.text(alphabet=st.characters(codec=None)))
def test_no_character_that_hides_or_acts_is_left(text: str) -> None:
    left = [char for char in exact_text(text) if unicodedata.category(char) in UNSAFE and char not in "\n\t"]
    assert [hex(ord(char)) for char in left if unicodedata.name(char, "") not in VISIBLE] == []


VISIBLE = {
    # Format characters that are drawn: signs that go around a number.
    unicodedata.name(chr(point), "")
    for point in range(0x110000)
    if unicodedata.category(chr(point)) == "Cf"
    and re.match("ARABIC|SYRIAC|KAITHI", unicodedata.name(chr(point), ""))
    and point != 0x061C
}


@given(st.text())
def test_a_line_stays_one_line(text: str) -> None:
    assert len(exact_line(text).splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2Jrm -rf /", "\\e[2Jrm -rf /"),
        ("ls\rrm -rf /", "ls\\rrm -rf /"),
        ("a\u202eb", "a\\u{202e}b"),
        ("rm\u200b -rf", "rm\\u{200b} -rf"),
        ("\x9b31m", "\\u{9b}31m"),
        ("\ud800", "\\u{d800}"),
        ("\ufe0frm \u26a0\ufe0f", "\\u{fe0f}rm \u26a0\ufe0f"),
        ("plain “words” 日本 ✓ \\n", "plain “words” 日本 ✓ \\n"),
    ],
)
def test_what_could_deceive_is_spelled_out_and_the_rest_left(text: str, shown: str) -> None:
    assert exact_text(text) == shown


def test_what_is_hidden_is_counted_in_words() -> None:
    assert hidden_warning("git status") is None
    assert hidden_warning("a\u202eb\u200bc\u200b") == (
        "Contains hidden characters, shown escaped: 1 text direction override, 2 zero-width characters."
    )


def test_lone_surrogates_are_counted_in_words() -> None:
    assert hidden_warning("\ud800 \udc00\xa0") == (
        "Contains hidden characters, shown escaped: 2 halves of characters, 1 no-break space."
    )


def test_the_writer_escapes_on_a_terminal_and_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr("sys.stdout", stream)
        output.say("[red]\x1b]0;owned\x07 :smile: ", ("styled \x1b[31m", "bold"))
        output.print_table(("A", "B"), [("x\ny", "[bold]\u202e")])
        own_styles = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
        assert "[red]\\e]0;owned\\u{7} :smile: styled \\e[31m" in own_styles
        assert "x\\ny" in own_styles
        assert "[bold]\\u{202e}" in own_styles
        assert "\x1b" not in own_styles


def test_json_is_plain_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"title": "\x1b[2J\u202e日"})
    assert capsys.readouterr().out.isascii()
