"""The protocol's own rules: versions and names."""

import pytest

from handrail.keeper.protocol import PROTOCOL, TERMINAL_ID, skew


def test_equal_versions_are_no_skew() -> None:
    assert skew(PROTOCOL) is None


def test_a_skewed_pair_is_told_both_versions_and_what_to_do() -> None:
    sentence = skew(PROTOCOL + 4)
    assert sentence is not None
    assert str(PROTOCOL) in sentence
    assert str(PROTOCOL + 4) in sentence
    assert "handrail down" in sentence


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "-a", "a" * 65, "a\n", "ä"])
def test_an_id_that_could_leave_the_spool_is_none(name: str) -> None:
    assert not TERMINAL_ID.fullmatch(name)
