"""Comparing long sequences of lines in bounded time.

Owns which lines are the same in both: first those that occur once on each side, then what lies between them.
It does not know what becomes of the comparison (diff.py).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher
from itertools import pairwise

BETWEEN_MAX = 1000
"""Lines compared by difflib between two anchors: its time grows with their square."""

_Pair = tuple[int, int]


class Anchored(SequenceMatcher[bytes]):
    """A matcher that splits at anchors, so that the time hardly depends on the length."""

    def __init__(self, left: Sequence[bytes], right: Sequence[bytes]) -> None:
        super().__init__(None, left, right)
        self._left, self._right = left, right

    def get_matching_blocks(self) -> list[Match]:
        blocks: list[Match] = []
        for block in self._blocks():
            last = blocks[-1] if blocks else None
            if last and (last.a + last.size, last.b + last.size) == (block.a, block.b):
                blocks[-1] = Match(last.a, last.b, last.size + block.size)
            else:
                blocks.append(block)
        return [*blocks, Match(len(self._left), len(self._right), 0)]

    def _blocks(self) -> Iterator[Match]:
        ends = [(-1, -1), *anchors(self._left, self._right), (len(self._left), len(self._right))]
        for (left, right), (left_end, right_end) in pairwise(ends):
            if left >= 0:
                yield Match(left, right, 1)
            yield from self._between(left + 1, left_end, right + 1, right_end)

    def _between(self, left: int, left_end: int, right: int, right_end: int) -> Iterator[Match]:
        if left_end - left + right_end - right > BETWEEN_MAX:
            return
        old, new = self._left[left:left_end], self._right[right:right_end]
        for block in SequenceMatcher(None, old, new).get_matching_blocks():
            if block.size:
                yield Match(left + block.a, right + block.b, block.size)


def anchors(left: Sequence[bytes], right: Sequence[bytes]) -> list[_Pair]:
    """The longest run of pairs, rising on both sides, of lines that occur once on each."""
    once_left, once_right = _once(left), _once(right)
    pairs = [(at, once_right[line]) for line, at in once_left.items() if line in once_right]
    return _rising(pairs)


def _once(lines: Sequence[bytes]) -> dict[bytes, int]:
    counts = Counter(lines)
    return {line: at for at, line in enumerate(lines) if counts[line] == 1}


def _rising(pairs: Sequence[_Pair]) -> list[_Pair]:
    """The longest subsequence that rises in its second number (patience sorting)."""
    tops: list[int] = []
    top_pairs: list[int] = []
    before: list[int] = []
    for index, (_, value) in enumerate(pairs):
        pile = bisect_left(tops, value)
        before.append(top_pairs[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [value]
        top_pairs[pile : pile + 1] = [index]
    chosen: list[_Pair] = []
    index = top_pairs[-1] if top_pairs else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = before[index]
    return chosen[::-1]
