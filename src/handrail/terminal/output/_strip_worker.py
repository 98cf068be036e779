"""A range of output as plain text in a file, made in a process of its own, and the way back from it to the output.

Owns both ends of that process. It does not know what the text is wanted for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_STEP = 256 * 1024
_CODE = "import sys; sys.path.insert(0, sys.argv.pop(1)); from handrail.terminal.output._strip_worker import main; main()"


@dataclass(slots=True)
class Way:
    """From lines of the text back to lines of the output. Lines are counted from zero."""

    lines: int = 0
    """Line ends in the output."""
    blocks: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """A line and where it, or a part of it, begins in the output."""
    overwritten: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """From which line of the text on how many more lines were printed than stand."""

    def back(self, line: int) -> int:
        """The line of the output in which this line of the text began."""
        at = bisect_right(self.overwritten, line, key=lambda note: note[0])
        return line + (self.overwritten[at - 1][1] if at else 0)

    def near(self, line: int) -> tuple[int, int]:
        """The last block that begins before this line does: its first line, and its offset."""
        at = bisect_right(self.blocks, line - 1, key=lambda block: block[0])
        return self.blocks[max(0, at - 1)]


def command(text: int, ranges: list[tuple[int, int, int]]) -> list[str]:
    """How to start it: the file for the text, and the ranges of open files (descriptor, from, to)."""
    package = str(Path(__file__).parents[3])
    asked = json.dumps({"text": text, "ranges": ranges})
    return [sys.executable, "-I", "-S", "-c", _CODE, package, asked]


def way_of(process: subprocess.Popen[bytes], seconds: float) -> Way | None:
    """What it noted, once it is done; None when it could not finish."""
    try:
        out, _ = process.communicate(timeout=seconds)
        told = json.loads(out)
    except (subprocess.TimeoutExpired, ValueError):
        return None
    return Way(told["lines"], [(a, b) for a, b in told["blocks"]], [(a, b) for a, b in told["overwritten"]])


def main() -> None:
    """The other side."""
    asked = json.loads(sys.argv[1])
    way = strip(asked["text"], asked["ranges"])
    json.dump({"lines": way.lines, "blocks": way.blocks, "overwritten": way.overwritten}, sys.stdout)


def strip(text: int, ranges: list[tuple[int, int, int]]) -> Way:
    """Write the text of these ranges into an open file."""
    from handrail.terminal.output.plain_text import Paper  # noqa: PLC0415 - who only starts the process has no use for it

    paper, way, offset = Paper(), Way(), 0
    with open(text, "wb", closefd=False) as file:
        for data in _read(ranges):
            way.blocks.append((way.lines, offset))
            file.write(paper.feed(data).encode())
            way.lines += data.count(b"\n")
            offset += len(data)
        file.write(paper.finish().encode())
    way.overwritten = paper.overwritten
    return way


def _read(ranges: list[tuple[int, int, int]]) -> Iterator[bytes]:
    for fd, start, end in ranges:
        for at in range(start, end, _STEP):
            yield os.pread(fd, min(_STEP, end - at), at)
