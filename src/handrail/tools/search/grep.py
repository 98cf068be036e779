"""Lines of a command's output that match a pattern.

Owns the bounds on the search and how matching lines are shown. It does not know commands.
"""

import re
import time
from collections.abc import Iterator

import anyio

from handrail.gate.tool import Refusal
from handrail.terminal.output.plain_text import plain
from handrail.terminal.output.tail import Tail
from handrail.terminal.safe_regex import THREADS, BadPattern, Regex, compile_pattern

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
