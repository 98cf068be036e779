"""Worker process that converts a range of output to plain text in a file, for output_search.

Defines both ends: `start_worker` and the result for the daemon, and `main` for the worker, a fork of the launcher. The
result maps lines of the text back to lines of the output.
"""

from __future__ import annotations

import json
import os
import select
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, TextIO, TypedDict

from handrail.lazy_dataclass import dataclass
from handrail.terminal.output.plain_text import PlainTextStream

if TYPE_CHECKING:
    from handrail.launcher.child import Child

_STEP = 256 * 1024


class StripRequest(TypedDict):
    """What the worker converts."""

    text: int
    """The descriptor that the text is written to."""
    ranges: list[tuple[int, int, int]]
    """The output: descriptor, start, end."""


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


def start_worker(text: int, ranges: list[tuple[int, int, int]]) -> Child:
    """Start a worker that writes the plain text of these ranges to the descriptor `text`."""
    from handrail.launcher.child import start_function  # noqa: PLC0415 - the worker does not need it

    return start_function(
        __name__, StripRequest(text=text, ranges=ranges), [text, *(fd for fd, _, _ in ranges)]
    )


def read_line_map(child: Child, seconds: float) -> LineMap | None:
    """Wait for the worker and read its result; None when it did not finish in time."""
    try:
        result = json.loads(_read_all(child.output, time.monotonic() + seconds))
    except ValueError:
        return None
    return LineMap(
        result["lines"],
        [(line, offset) for line, offset in result["blocks"]],
        [(line, more) for line, more in result["overwritten"]],
    )


def _read_all(output: int, until: float) -> bytes:
    """All output up to its end, or until the time is up."""
    poll, chunks = select.poll(), [b""]
    poll.register(output, select.POLLIN | select.POLLHUP)
    while poll.poll(max(0.0, until - time.monotonic()) * 1000) and (chunk := os.read(output, _STEP)):
        chunks.append(chunk)
    return b"".join(chunks)


def main(request: StripRequest, output: TextIO) -> None:
    """Entry point of the worker."""
    line_map = strip(request["text"], request["ranges"])
    json.dump(
        {"lines": line_map.lines, "blocks": line_map.blocks, "overwritten": line_map.overwritten}, output
    )


def strip(text: int, ranges: list[tuple[int, int, int]]) -> LineMap:
    """Write the plain text of these ranges to the descriptor `text`."""
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
