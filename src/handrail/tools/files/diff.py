"""Unified diffs of two byte strings, in bounded time.

Long inputs are split at anchors, lines that occur once on each side, before difflib compares the parts. Diffs
are parsed in patch.py.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import Match, SequenceMatcher
from itertools import pairwise, takewhile

from handrail.lazy_dataclass import dataclass
from handrail.tools.files.encoding import shown, split_raw

CONTEXT = 3

_Opcode = tuple[str, int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """A diff and its size in lines."""

    text: str
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class Span:
    """A range of old lines and the new lines that replace it; half-open, from 0."""

    old: tuple[int, int]
    new: tuple[int, int]


def unified(path: str, before: bytes | None, after: bytes | None) -> Diff:
    """The diff of a file; None means that there is no file."""
    old, new = split_raw(before or b""), split_raw(after or b"")
    rows = [row for group in _groups(old, new) for row in _rows(group, old, new)]
    left = "/dev/null" if before is None else f"a/{path}"
    right = "/dev/null" if after is None else f"b/{path}"
    return Diff(
        text="".join([f"--- {left}\n+++ {right}\n", *rows]) if rows else "",
        added=sum(row.startswith("+") for row in rows),
        removed=sum(row.startswith("-") for row in rows),
    )


def changed(before: Sequence[bytes], after: Sequence[bytes]) -> list[Span]:
    """The changed line ranges of a diff, without context."""
    found: list[Span] = []
    for group in _groups(before, after):
        parts = [opcode for opcode in group if opcode[0] != "equal"]
        found.append(Span((parts[0][1], parts[-1][2]), (parts[0][3], parts[-1][4])))
    return found


def _groups(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[list[_Opcode]]:
    start = max(0, _common(zip(old, new, strict=False)) - CONTEXT)
    room = min(len(old), len(new)) - start
    same = _common(zip(reversed(old), reversed(new), strict=False))
    end = max(0, min(same, room) - CONTEXT)
    left, right = old[start : len(old) - end], new[start : len(new) - end]
    for group in Anchored(left, right).get_grouped_opcodes(CONTEXT):
        yield [(tag, start + a, start + b, start + c, start + d) for tag, a, b, c, d in group]


def _common(pairs: Iterable[tuple[bytes, bytes]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _rows(group: Sequence[_Opcode], old: Sequence[bytes], new: Sequence[bytes]) -> list[str]:
    first, last = group[0], group[-1]
    rows = [f"@@ -{_range(first[1], last[2] - first[1])} +{_range(first[3], last[4] - first[3])} @@\n"]
    for tag, old_from, old_to, new_from, new_to in group:
        if tag == "equal":
            rows += [_row(" ", line) for line in old[old_from:old_to]]
        else:
            rows += [_row("-", line) for line in old[old_from:old_to]]
            rows += [_row("+", line) for line in new[new_from:new_to]]
    return rows


def _range(start: int, count: int) -> str:
    return f"{start + (count > 0)},{count}" if count != 1 else f"{start + 1}"


def _row(sign: str, line: bytes) -> str:
    text = sign + shown(line)
    return text if text.endswith("\n") else f"{text}\n\\ No newline at end of file\n"


BETWEEN_MAX = 1000
"""Lines that difflib compares between two anchors: its time is quadratic."""

_Pair = tuple[int, int]


class Anchored(SequenceMatcher[bytes]):
    """A SequenceMatcher that splits at anchors, so that time is almost linear in the length."""

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
    """The longest increasing sequence of lines that occur exactly once on each side."""
    once_left, once_right = _once(left), _once(right)
    pairs = [(at, once_right[line]) for line, at in once_left.items() if line in once_right]
    return _rising(pairs)


def _once(lines: Sequence[bytes]) -> dict[bytes, int]:
    counts = Counter(lines)
    return {line: at for at, line in enumerate(lines) if counts[line] == 1}


def _rising(pairs: Sequence[_Pair]) -> list[_Pair]:
    """The longest subsequence whose second numbers increase (patience sorting)."""
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
