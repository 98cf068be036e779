"""What a command printed, cut to what a model can use: head, tail, and what was left out between them.

Owns the cutting. The whole output stays in the terminal's tail; this module never changes it.

Lines of a command's output that match a pattern.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

import anyio

from handrail.gate.tool import Refusal
from handrail.store.values import Json, Result
from handrail.terminal.output.plain_text import plain
from handrail.terminal.output.tail import Tail
from handrail.terminal.safe_regex import THREADS, BadPattern, Regex, compile_pattern

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


SECONDS = 10.0
"""How long the matching may take: an output can be large."""
MOST_LINES = 500
LINE_CHARS = 1000
"""Shown of one line."""
LINE_BYTES = 1 << 20
"""Searched as one line, of an output without line ends."""
_BLOCK = 65536
_BEYOND_LINE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[ABEFJ\r\n]|[ -/]*[MPX\]^_\r\n])")
"""Escapes that may act on other lines: vertical movement, erasing below, strings, and one that a line end cuts off."""


def check(pattern: str) -> None:
    """Raises Refusal for a pattern that cannot be used."""
    try:
        compile_pattern(pattern)
    except BadPattern as problem:
        raise Refusal(f"`output_grep`: {problem} Nothing was run.") from None


async def grep(pattern: str, tail: Tail, begin: int = 0, end: int | None = None) -> str:
    """The matching lines, each with its number; of all that is kept, or of what lies between two offsets."""
    regex = compile_pattern(pattern)
    blocks = _blocks(tail, max(begin, tail.first), tail.end if end is None else end)
    until = time.monotonic() + SECONDS
    with anyio.move_on_after(SECONDS):
        found = await THREADS.run(_matching, regex, blocks, until, abandon=True)
        if found is not None:
            return found
    return f"[matching took longer than {SECONDS:g} s and was given up]"


def _matching(regex: Regex, blocks: Iterator[list[bytes]], until: float) -> str | None:
    """The matching lines as shown; None when there was no time for all of them."""
    found: list[str] = []
    for number, text in enumerate((text for block in blocks for text in _texts(block)), 1):
        if regex.search(text.encode()) is not None:
            found.append(f"{number}: {text[:LINE_CHARS]}\n")
        if len(found) == MOST_LINES:
            found.append(f"[stopped after {MOST_LINES} matching lines]\n")
            break
        if time.monotonic() > until:
            return None
    return "".join(found) or "[no line matches]\n"


def _texts(lines: list[bytes]) -> list[str]:
    """Each line as text. Lines that are independent are resolved together, which is many times faster."""
    block = b"\n".join(lines) + b"\n"
    if not _BEYOND_LINE.search(block):
        texts = plain(block).split("\n")[:-1]
        if len(texts) == len(lines):
            return texts
    return [plain(line.rstrip(b"\r\n")) for line in lines]


def _blocks(tail: Tail, after: int, end: int) -> Iterator[list[bytes]]:
    """The lines between two offsets, as many as each read completes."""
    rest = b""
    while after < end:
        data, after = tail.read(after, min(_BLOCK, end - after))
        if not data:
            break
        *whole, rest = (rest + data).split(b"\n")
        if whole:
            yield whole
        while len(rest) >= LINE_BYTES:
            yield [rest[:LINE_BYTES]]
            rest = rest[LINE_BYTES:]
    if rest:
        yield [rest]
