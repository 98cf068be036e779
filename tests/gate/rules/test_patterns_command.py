"""The words a command begins with: read as a person writes them, compared word by word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.gate.rules.patterns import BadPattern, CommandPattern, spell

word = st.text(st.characters(categories=("L", "N", "P", "S", "Zs")).filter(str.isprintable), max_size=8)
words = st.lists(word, min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        (
            "git status",
            ["git status", "git status -s x"],
            ["git", "git statusx", "gitk status", "git -C x status"],
        ),
        ("make $", ["make"], ["make all"]),
        (
            "npm run test:*",
            ["npm run test:", "npm run test:unit", "npm run test:unit -w"],
            ["npm run tes", "npm test"],
        ),
        ("npm run *", ["npm run build"], ["npm run", "npm install x"]),
        ("npm run * $", ["npm run build"], ["npm run build --fix"]),
        ("/usr/bin/git *", ["/usr/bin/git x"], ["git x"]),
    ],
)
def test_a_pattern_fits_commands_that_begin_with_its_words(
    pattern: str, fits: list[str], fits_not: list[str]
) -> None:
    found = CommandPattern.of(pattern)
    assert [line for line in fits if not found.fits(line.split(" "))] == []
    assert [line for line in fits_not if found.fits(line.split(" "))] == []


def test_a_star_never_reaches_into_the_next_word() -> None:
    found = CommandPattern.of("git commit -m*")
    assert found.fits(["git", "commit", "-m a; rm -rf b"])
    assert not found.fits(["git", "commit", "--amend", "-m"])


def test_quotes_make_one_word_and_take_stars_and_dollars_as_they_are() -> None:
    found = CommandPattern.of("""echo 'a *' "b \\" $" \\* '$'""")
    assert found.fits(["echo", "a *", 'b " $', "*", "$"])
    assert not found.fits(["echo", "a x", 'b " $', "*", "$"])


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "$",
        "git $ status",
        "git 'status",
        'git "a',
        "git \\",
        "git add && git push",
        "a | b",
        "a > b",
        "a; b",
        "a & b",
        "`x`",
        "(a)",
        "a\tb\x00",
    ],
)
def test_what_is_no_single_command_is_refused_with_a_sentence(pattern: str) -> None:
    with pytest.raises(BadPattern, match=r"\.$"):
        CommandPattern.of(pattern)


@given(words, words)
def test_the_pattern_of_some_words_fits_these_words_and_what_begins_with_them(
    these: list[str], more: list[str]
) -> None:
    exact, open_ended = CommandPattern.of(spell(these, ends=True)), CommandPattern.of(spell(these))
    assert exact.fits(these)
    assert open_ended.fits([*these, *more])
    assert not exact.fits([*these, *more])


@given(words, words)
def test_the_pattern_of_some_words_fits_no_others(these: list[str], others: list[str]) -> None:
    assert CommandPattern.of(spell(["x", *these], ends=True)).fits(["x", *others]) == (these == others)
