"""The number of changed lines that a changeset shows for each file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.server.ahp._changesets import MOST_COMPARED, count_changed_lines

LINES = st.lists(st.sampled_from([b"a", b"b", b"c", b""]), max_size=12)


@given(LINES, LINES)
def test_added_and_removed_lines_lead_from_one_text_to_the_other(old: list[bytes], new: list[bytes]) -> None:
    added, removed = count_changed_lines(old, new)
    assert len(old) - removed + added == len(new)
    assert 0 <= removed <= len(old)
    assert (added + removed == 0) == (old == new)


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        (b"one two three", b"one 2 three", (1, 1)),
        (b"", b"one two", (2, 0)),
        (b"one two", b"", (0, 2)),
        (b"a b c d", b"a c b d", (1, 1)),
    ],
)
def test_lines_are_counted_as_a_diff_shows_them(old: bytes, new: bytes, counts: tuple[int, int]) -> None:
    assert count_changed_lines(old.split(), new.split()) == counts


def test_of_a_huge_rewrite_every_line_between_the_first_and_the_last_change_counts() -> None:
    old = [b"%d" % number for number in range(MOST_COMPARED + 3)]
    new = [line + b"!" for line in old]
    assert count_changed_lines([b"top", *old], [b"top", *new]) == (len(new), len(old))
