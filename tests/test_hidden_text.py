"""One table of hidden characters for the shell parser, the command line, notifications and the page."""

import itertools
import sys
import unicodedata

from handrail.cli.exact import exact_text
from handrail.daemon.notifications import escape_hidden
from handrail.gate.shell.shell_parser import find_hidden
from handrail.hidden_text import EMOJI_STYLE, HIDDEN, RANGES, hidden_name

TABLE = [chr(point) for first, last, _ in RANGES for point in range(first, last + 1)]


def test_the_ranges_are_sorted_and_do_not_overlap() -> None:
    assert all(first <= last for first, last, _ in RANGES)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(RANGES))


def test_only_characters_of_the_table_have_a_name() -> None:
    named = [chr(point) for point in range(sys.maxunicode + 1) if hidden_name(chr(point))]
    assert named == TABLE


def test_no_place_that_uses_the_table_lets_one_of_them_through() -> None:
    for character in TABLE:
        assert [*find_hidden(f"ls {character}")], hex(ord(character))
        assert character not in exact_text(f"ls {character}")
        assert character not in escape_hidden(f"ls {character}")


def test_the_emoji_style_is_escaped_for_display_unless_it_follows_a_symbol() -> None:
    style = chr(EMOJI_STYLE)
    for symbol in "©®‼⁉™\u2139↔⌚⏩Ⓜ▪☀⚠❤⤴⬅〰〽㊗㊙🅰🌶🛡":
        assert not HIDDEN.search(symbol + style), symbol
    for text in (style, f"a{style}", f"1{style}", f"\u26a0{style}{style}"):
        assert HIDDEN.search(text)


def test_the_shell_parser_is_stricter_than_the_table() -> None:
    beyond = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"}
    for point in range(sys.maxunicode + 1):
        character = chr(point)
        if unicodedata.category(character) in beyond and character not in " \n\t":
            assert [*find_hidden(character)], hex(point)
