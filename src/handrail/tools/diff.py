"""A unified diff of two byte strings: what will be written, as a person sees it.

Owns rendering only. It does not compare (anchors.py), and reads no diffs (patch.py).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from handrail.tools.anchors import Anchored
from handrail.tools.text import shown, split_raw

CONTEXT = 3

_Opcode = tuple[str, int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """A diff and its size in lines."""

    text: str
    added: int
    removed: int


def unified(path: str, before: bytes | None, after: bytes) -> Diff:
    """The change of a file; `before` is None when there was none."""
    old, new = split_raw(before or b""), split_raw(after)
    rows = [row for hunk in _hunks(old, new) for row in hunk]
    head = [f"--- {'/dev/null' if before is None else f'a/{path}'}\n", f"+++ b/{path}\n"]
    return Diff(
        text="".join([*head, *rows]) if rows else "",
        added=sum(row.startswith("+") for row in rows),
        removed=sum(row.startswith("-") for row in rows),
    )


def _hunks(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[list[str]]:
    start = max(0, _common(zip(old, new, strict=False)) - CONTEXT)
    room = min(len(old), len(new)) - start
    same = _common(zip(reversed(old), reversed(new), strict=False))
    end = max(0, min(same, room) - CONTEXT)
    left, right = old[start : len(old) - end], new[start : len(new) - end]
    for group in Anchored(left, right).get_grouped_opcodes(CONTEXT):
        yield _hunk(group, left, right, start)


def _common(pairs: Iterable[tuple[bytes, bytes]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _hunk(group: Sequence[_Opcode], left: Sequence[bytes], right: Sequence[bytes], start: int) -> list[str]:
    first, last = group[0], group[-1]
    rows = [
        f"@@ -{_range(start + first[1], last[2] - first[1])} +{_range(start + first[3], last[4] - first[3])} @@\n"
    ]
    for tag, left_from, left_to, right_from, right_to in group:
        if tag == "equal":
            rows += [_row(" ", line) for line in left[left_from:left_to]]
        else:
            rows += [_row("-", line) for line in left[left_from:left_to]]
            rows += [_row("+", line) for line in right[right_from:right_to]]
    return rows


def _range(start: int, count: int) -> str:
    return f"{start + (count > 0)},{count}" if count != 1 else f"{start + 1}"


def _row(sign: str, line: bytes) -> str:
    text = sign + shown(line)
    return text if text.endswith("\n") else f"{text}\n\\ No newline at end of file\n"
