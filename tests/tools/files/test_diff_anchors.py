"""Comparing lines by anchors."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.tools.files.diff import Anchored, anchors

_LINES = st.lists(st.sampled_from([b"a", b"b", b"c", b"d", b"e", b"f"]), max_size=14)


@settings(deadline=None)
@given(left=_LINES, right=_LINES)
def test_blocks_hold_equal_lines_and_rise_on_both_sides(left: list[bytes], right: list[bytes]) -> None:
    blocks = Anchored(left, right).get_matching_blocks()
    for block in blocks:
        assert left[block.a : block.a + block.size] == right[block.b : block.b + block.size]
    for one, other in pairwise(blocks):
        assert one.a + one.size <= other.a
        assert one.b + one.size <= other.b


def test_anchors_are_the_longest_run_that_rises() -> None:
    assert anchors([b"x", b"a", b"b", b"c"], [b"a", b"b", b"x", b"c"]) == [(1, 0), (2, 1), (3, 3)]
    assert anchors([b"a", b"a"], [b"a"]) == []
