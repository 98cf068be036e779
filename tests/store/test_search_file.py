"""What is found among much, and what the file survives. How fast that is, is measured in the bench."""

import random
import sqlite3
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest

from handrail.store._search_file import PIECE, SearchFile, Text, pieces

MANY = 10_000
LETTERS = "etaoinshrdlu"


def vocabulary(chance: random.Random, size: int) -> list[str]:
    return ["".join(chance.choices(LETTERS, k=chance.randint(2, 9))) for _ in range(size)]


def messages(chance: random.Random, words: list[str], count: int) -> Iterator[Text]:
    """As often as in real talk: few words nearly everywhere, most nearly nowhere."""
    weights = [*accumulate(1 / (place + 1) for place in range(len(words)))]
    for number in range(count):
        yield Text(
            kind="message",
            text=" ".join(chance.choices(words, cum_weights=weights, k=40)),
            at=number,
            workspace=f"/w{number % 10}",
            thread=f"h{number % 500}",
            message=f"m{number}",
        )


@pytest.mark.timeout(300)
def test_whatever_is_typed_the_best_are_found_among_many_messages(tmp_path: Path) -> None:
    chance = random.Random(5)
    words = vocabulary(chance, 20_000)
    file = SearchFile(tmp_path / "words.db")
    texts = [*messages(chance, words, MANY)]
    for begin in range(0, MANY, 1000):
        file.fill(texts[begin : begin + 1000], begin)
    rare = words[15_000]
    questions = {
        "the commonest word": words[0],
        "three common words": " ".join(words[:3]),
        "its first two letters": words[0][:2],
        "a common and the beginning of many": f"{words[1]} {LETTERS[0]}{LETTERS[1]}",
        "a rare word": rare,
        "a common and a rare word": f"{words[0]} {rare}",
        "one letter": "e",
        "no word of ours": "zzzz",
        "many words": " ".join(words[:20]),
    }
    for name, typed in questions.items():
        for workspace in (None, "/w3", "/nowhere"):
            found = file.find(typed, workspace, 101)
            assert len(found) <= 101
            if workspace == "/nowhere" or name == "no word of ours":
                assert not found, name
            elif name in ("the commonest word", "three common words", "its first two letters"):
                assert len(found) == 101, name
    assert file.find(rare, None, 50)
    file.close()


def test_a_long_text_is_cut_between_words_and_nothing_of_it_is_lost() -> None:
    for gap in ("\n", " ", ""):
        text = gap.join("word" for _ in range(PIECE))
        cut = [piece.text for piece in pieces(Text(kind="message", text=text, at=0))]
        assert "".join(cut) == text
        assert all(len(piece) <= PIECE for piece in cut)
        assert not gap or all(piece.endswith(f"word{gap}") for piece in cut[:-1])


def test_what_cannot_be_filled_whole_is_not_filled_at_all(tmp_path: Path) -> None:
    file = SearchFile(tmp_path / "words.db")

    def texts() -> Iterator[Text]:
        yield Text(kind="message", text="heron", at=0, message="m1")
        raise sqlite3.OperationalError("disk full")

    with pytest.raises(sqlite3.OperationalError):
        file.fill(texts(), 7)
    assert file.upto() == 0
    assert file.find("heron", None, 10) == []
    file.fill([Text(kind="message", text="heron", at=0, message="m1")], 7)
    assert (file.upto(), len(file.find("heron", None, 10))) == (7, 1)
    file.close()


def test_the_marks_of_an_excerpt_cannot_be_forged(tmp_path: Path) -> None:
    file = SearchFile(tmp_path / "words.db")
    file.fill([Text(kind="message", text="\ue000not\ue001 heron", at=0, message="m1")], 1)
    assert [place.excerpt for place in file.find("heron", None, 10)] == ["not \ue000heron\ue001"]
    file.close()
