"""Ids as people type them."""

import pytest

from handrail.cli.failure import Failure
from handrail.cli.render.formats import find_by_prefix

IDS = ["c1234", "c1299", "c5"]


def test_a_whole_id_and_a_unique_beginning_are_found() -> None:
    assert find_by_prefix("c1234", IDS, "call") == "c1234"
    assert find_by_prefix("c123", IDS, "call") == "c1234"
    assert find_by_prefix("c5", [*IDS, "c55"], "call") == "c5"


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("c12", "c12 is the beginning of 2 calls: c1234, c1299. Type more of it."),
        ("x", "There is no call x. `handrail calls` lists what there is."),
        ("", "There is no call . `handrail calls` lists what there is."),
    ],
)
def test_what_is_not_unique_or_not_there_is_refused_with_a_sentence(typed: str, sentence: str) -> None:
    with pytest.raises(Failure) as refused:
        find_by_prefix(typed, IDS, "call")
    assert str(refused.value) == sentence
