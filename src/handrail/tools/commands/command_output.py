"""Trim a command's output for a model: head and tail, or the lines that match a pattern.

The full output stays in the terminal's tail.
"""

import re
import time
from collections.abc import Iterator

import anyio

from handrail.gate.tool import Refusal
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Json, Result
from handrail.terminal.output.plain_text import plain_text
from handrail.terminal.output.tail import Tail
from handrail.terminal.safe_regex import REGEX_THREADS, BadPattern, Regex, compile_pattern

HEAD_LINES = 100
TAIL_LINES = 200
MOST_CHARS = 30_000
"""Characters of output in one result: more would fill a model's context."""
READ_HEAD = 64 * 1024
READ_TAIL = 256 * 1024
"""Bytes read from each end: bounds the work, however much a command printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The trimmed output, and the size of the rest."""

    text: str
    bytes: int
    """Bytes printed in total, including dropped ones."""
    left_out: int
    """Bytes that `text` does not show: between head and tail, or dropped at the start."""

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
    """Trim the output so far, or the part between two offsets; cheap enough to call at any time."""
    end = tail.end if end is None else end
    first = min(max(begin, tail.first), end)
    size, dropped = max(0, end - begin), first - min(begin, first)
    if end - first <= READ_HEAD + READ_TAIL:
        text = plain_text(tail.read_range(first, end))
        cut = _cut(text, head_lines, tail_lines)
        return Output(text=cut, bytes=size, left_out=dropped + (0 if cut == text else _missing(text, cut)))
    head = _first_lines(plain_text(tail.read_range(first, first + READ_HEAD)), head_lines)
    last = _last_lines(plain_text(tail.read_range(end - READ_TAIL, end)), tail_lines)
    shown = len(head.encode()) + len(last.encode())
    left = max(0, size - shown)
    return Output(text=f"{head}\n[… {left:,} bytes left out …]\n{last}", bytes=size, left_out=left)


def as_result(output: Output, terminal: str) -> Result:
    """A result with the output alone, for a command whose exit was not observed."""
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
    wanted = count + text.endswith("\n")  # a final newline yields an empty last item
    return "\n".join(lines[max(0, len(lines) - wanted) :])[-MOST_CHARS * 2 // 3 :]


SECONDS = 10.0
"""Bounds the matching: an output can be large."""
MOST_LINES = 500
LINE_CHARS = 1000
"""Characters shown of one line."""
LINE_BYTES = 1 << 20
"""Bytes searched as one line, in output without newlines."""
_BLOCK = 65536
_BEYOND_LINE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[ABEFJ\r\n]|[ -/]*[MPX\]^_\r\n])")
"""Escape sequences that may affect other lines: vertical moves, erase below, strings, cut sequences."""


def check(pattern: str) -> None:
    """Raises Refusal for a pattern that does not compile."""
    try:
        compile_pattern(pattern)
    except BadPattern as problem:
        raise Refusal(f"`output_grep`: {problem} Nothing was run.") from None


async def grep(pattern: str, tail: Tail, begin: int = 0, end: int | None = None) -> str:
    """Matching lines with their numbers, from all of the kept output or between two offsets."""
    regex = compile_pattern(pattern)
    blocks = _blocks(tail, max(begin, tail.first), tail.end if end is None else end)
    until = time.monotonic() + SECONDS
    with anyio.move_on_after(SECONDS):
        found = await REGEX_THREADS.run(_matching, regex, blocks, until, abandon=True)
        if found is not None:
            return found
    return f"[matching took longer than {SECONDS:g} s and was given up]"


def _matching(regex: Regex, blocks: Iterator[list[bytes]], until: float) -> str | None:
    """Matching lines as shown; None when the time is up."""
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
    """Lines as plain text. Independent lines are converted in one call, which is much faster."""
    block = b"\n".join(lines) + b"\n"
    if not _BEYOND_LINE.search(block):
        texts = plain_text(block).split("\n")[:-1]
        if len(texts) == len(lines):
            return texts
    return [plain_text(line.rstrip(b"\r\n")) for line in lines]


def _blocks(tail: Tail, after: int, end: int) -> Iterator[list[bytes]]:
    """The lines between two offsets, one list per read."""
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
