"""What a command printed, cut to what a model can use: head, tail, and what was left out between them.

Owns the cutting. The whole output stays in the terminal's tail; this module never changes it.
"""

from dataclasses import dataclass

from handrail.store.value import Json, Result
from handrail.terminal.output.plain_text import plain
from handrail.terminal.output.tail import Tail

HEAD_LINES = 100
TAIL_LINES = 200
MOST_CHARS = 30_000
"""Of one output in a result: more would crowd out a model's context."""
READ_HEAD = 64 * 1024
READ_TAIL = 256 * 1024
"""Bytes looked at from either end: bounds the work of one reading, whatever a command printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The readable part of an output, and the facts about the rest."""

    text: str
    bytes: int
    """All that was printed, dropped bytes included."""
    left_out: int
    """Bytes between head and tail, or dropped at the start, that `text` does not show."""

    @property
    def captured(self) -> bool:
        return self.bytes > 0


def read_output(
    tail: Tail,
    head_lines: int = HEAD_LINES,
    tail_lines: int = TAIL_LINES,
    *,
    begin: int = 0,
    end: int | None = None,
) -> Output:
    """The output so far, or the part of it between two offsets, cut; cheap enough to be called at any moment."""
    end = tail.end if end is None else end
    first = min(max(begin, tail.first), end)
    size, dropped = max(0, end - begin), first - min(begin, first)
    if end - first <= READ_HEAD + READ_TAIL:
        text = plain(tail.read_range(first, end))
        cut = _cut(text, head_lines, tail_lines)
        return Output(text=cut, bytes=size, left_out=dropped + (0 if cut == text else _missing(text, cut)))
    head = _first_lines(plain(tail.read_range(first, first + READ_HEAD)), head_lines)
    last = _last_lines(plain(tail.read_range(end - READ_TAIL, end)), tail_lines)
    shown = len(head.encode()) + len(last.encode())
    left = max(0, size - shown)
    return Output(text=f"{head}\n[… {left:,} bytes left out …]\n{last}", bytes=size, left_out=left)


def as_result(output: Output, terminal: str) -> Result:
    """An output alone, of a command whose end nobody saw."""
    data: Json = {
        "output": output.text,
        "output_captured": output.captured,
        "output_bytes": output.bytes,
        "terminal_id": terminal,
    }
    return Result(text=output.text, data=data)


def _cut(text: str, head_lines: int, tail_lines: int) -> str:
    lines = text.split("\n")
    if len(lines) <= head_lines + tail_lines and len(text) <= MOST_CHARS:
        return text
    head = _first_lines(text, head_lines)
    last = _last_lines(text[len(head) :], tail_lines)
    left = len(text.encode()) - len(head.encode()) - len(last.encode())
    return f"{head}\n[… {left:,} bytes left out …]\n{last}" if left > 0 else text


def _missing(text: str, cut: str) -> int:
    return max(0, len(text.encode()) - len(cut.encode()))


def _first_lines(text: str, count: int) -> str:
    return "\n".join(text.split("\n")[:count])[: MOST_CHARS // 3]


def _last_lines(text: str, count: int) -> str:
    if not count:
        return ""
    lines = text.split("\n")
    wanted = count + text.endswith("\n")  # what follows the last line's end is no line
    return "\n".join(lines[max(0, len(lines) - wanted) :])[-MOST_CHARS * 2 // 3 :]
