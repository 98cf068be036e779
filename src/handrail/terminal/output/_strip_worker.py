"""Worker process that converts a range of output to plain text in a file, for output_search.

Defines both ends: the command line and result for the parent, and `main` for the worker. The result maps lines of the
text back to lines of the output.
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
class LineMap:
    """Maps lines of the text back to lines of the output. Lines are counted from zero."""

    lines: int = 0
    """Line ends in the output."""
    blocks: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """For each block read: the line it begins in, and its offset in the output."""
    overwritten: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Pairs (line of the text, n): from that line on, n more lines were printed than the text has."""

    def back(self, line: int) -> int:
        """The line of the output in which this line of the text begins."""
        at = bisect_right(self.overwritten, line, key=lambda note: note[0])
        return line + (self.overwritten[at - 1][1] if at else 0)

    def near(self, line: int) -> tuple[int, int]:
        """The first line and the offset of the last block that begins before this line."""
        at = bisect_right(self.blocks, line - 1, key=lambda block: block[0])
        return self.blocks[max(0, at - 1)]


def worker_command(text: int, ranges: list[tuple[int, int, int]]) -> list[str]:
    """The worker's command line. `text` is the output descriptor, `ranges` are (descriptor, start, end)."""
    package = str(Path(__file__).parents[3])
    request = json.dumps({"text": text, "ranges": ranges})
    return [sys.executable, "-I", "-S", "-c", _CODE, package, request]


def read_line_map(process: subprocess.Popen[bytes], seconds: float) -> LineMap | None:
    """Wait for the worker and read its result; None when it did not finish in time."""
    try:
        out, _ = process.communicate(timeout=seconds)
        result = json.loads(out)
    except (subprocess.TimeoutExpired, ValueError):
        return None
    return LineMap(
        result["lines"],
        [(line, offset) for line, offset in result["blocks"]],
        [(line, more) for line, more in result["overwritten"]],
    )


def main() -> None:
    """Entry point of the worker."""
    request = json.loads(sys.argv[1])
    line_map = strip(request["text"], request["ranges"])
    json.dump(
        {"lines": line_map.lines, "blocks": line_map.blocks, "overwritten": line_map.overwritten}, sys.stdout
    )


def strip(text: int, ranges: list[tuple[int, int, int]]) -> LineMap:
    """Write the plain text of these ranges to the descriptor `text`."""
    from handrail.terminal.output.plain_text import PlainTextStream  # noqa: PLC0415 - the parent does not need it

    stream, line_map, offset = PlainTextStream(), LineMap(), 0
    with open(text, "wb", closefd=False) as file:
        for data in _read(ranges):
            line_map.blocks.append((line_map.lines, offset))
            file.write(stream.feed(data).encode())
            line_map.lines += data.count(b"\n")
            offset += len(data)
        file.write(stream.finish().encode())
    line_map.overwritten = stream.overwritten
    return line_map


def _read(ranges: list[tuple[int, int, int]]) -> Iterator[bytes]:
    for fd, start, end in ranges:
        for at in range(start, end, _STEP):
            yield os.pread(fd, min(_STEP, end - at), at)
