"""Search a tail for lines that match a regular expression, in raw output or in its plain text.

Runs ripgrep on the open segments, or on text files that worker processes make from them (_strip_worker.py), so that a
large output does not block the daemon. `OpenSegments` keeps the segments open, so that none is dropped during the search.
A `Seam` is a line that crosses a segment boundary; those lines are passed to ripgrep on stdin.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from handrail.terminal.output._strip_worker import LineMap, read_line_map, start_worker
from handrail.terminal.output.paging import Window, window
from handrail.terminal.output.tail import lines_before
from handrail.terminal.ripgrep import PATTERN_MAX, Search, pattern_error, run_search, unnamed_file
from handrail.terminal.safe_regex import check_characters
from handrail.terminal.thread_pool import PEOPLE, ThreadPool

if TYPE_CHECKING:
    from handrail.terminal.output.tail import Tail


_HELD_STEP = 1 << 20


@dataclass(frozen=True, slots=True)
class Segment:
    """One open segment, with its size when it was opened."""

    fd: int
    start: int
    size: int
    lines_before: int | None
    """Number of lines that end before it; None without an index."""

    @property
    def end(self) -> int:
        return self.start + self.size


class OpenSegments:
    """The open segments of a tail: a snapshot."""

    def __init__(self, pieces: list[Segment]) -> None:
        self.pieces = pieces
        self.start = pieces[0].start if pieces else 0
        self.end = pieces[-1].end if pieces else 0
        self._counted: dict[int, int] = {}

    def read(self, start: int, end: int) -> bytes:
        chunks: list[bytes] = []
        at = bisect_right(self.pieces, start, key=lambda piece: piece.start) - 1
        for piece in self.pieces[max(0, at) :]:
            if piece.start >= end:
                break
            begin = max(start, piece.start)
            chunks.append(os.pread(piece.fd, max(0, min(end, piece.end) - begin), begin - piece.start))
        return b"".join(chunks)

    def lines_before(self, index: int) -> int:
        """Number of lines that end before the segment at `index`; counted if it has no index file."""
        piece = self.pieces[index]
        if piece.lines_before is not None:
            return piece.lines_before
        if index == 0:
            return 0
        if index not in self._counted:
            before = self.pieces[index - 1]
            lines = sum(
                self.read(at, min(at + _HELD_STEP, before.end)).count(b"\n")
                for at in range(before.start, before.end, _HELD_STEP)
            )
            self._counted[index] = self.lines_before(index - 1) + lines
        return self._counted[index]


@contextmanager
def open_segments(tail: Tail) -> Generator[OpenSegments]:
    """Context manager: open all segments of a tail."""
    pieces: list[Segment] = []
    try:
        for start, path in tail.files:
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue  # dropped since the listing
            pieces.append(Segment(fd, start, os.fstat(fd).st_size, lines_before(path)))
        yield OpenSegments(pieces)
    finally:
        for piece in pieces:
            os.close(piece.fd)


_STEP = 4096


@dataclass(frozen=True, slots=True, order=True)
class Hit:
    """A matching line in an open file, or on stdin if `fd` is -1."""

    fd: int
    line: int
    """From one."""
    column: int
    """Offset of the match in the line, in bytes."""
    offset: int
    """Offset of the line in the file, in bytes."""


@dataclass(frozen=True, slots=True)
class Seam:
    """A line that begins in one segment and ends in a later one."""

    start: int
    end: int
    """The offset after its line end, or the end of the output."""
    after: int
    """The index of the segment in which it begins."""


def find_seams(segments: OpenSegments) -> list[Seam]:
    seams: list[Seam] = []
    for index, piece in enumerate(segments.pieces[:-1]):
        if (seams and seams[-1].end > piece.end) or segments.read(piece.end - 1, piece.end) == b"\n":
            continue  # inside a longer seam, or the segment ends with a line end
        start = seams[-1].end if seams and seams[-1].end > piece.start else piece.start
        seams.append(
            Seam(_find_line_start(segments, start, piece.end), _find_line_end(segments, piece.end), index)
        )
    return seams


def locate_hits(
    segments: OpenSegments, joined: Sequence[Seam], hits: Sequence[Hit]
) -> Iterator[tuple[int, int, int]]:
    """Offset, line number (from zero) and column of each hit. Drops hits in parts of a line that crosses segments."""
    by_fd = {piece.fd: index for index, piece in enumerate(segments.pieces)}
    for hit in hits:
        if hit.fd < 0:
            seam = joined[hit.line - 1]
            yield seam.start, segments.lines_before(seam.after + 1), hit.column
            continue
        index = by_fd[hit.fd]
        offset = segments.pieces[index].start + hit.offset
        if not any(seam.start <= offset < seam.end for seam in joined):
            yield offset, segments.lines_before(index) + hit.line - 1, hit.column


def _find_line_start(segments: OpenSegments, first: int, at: int) -> int:
    """The start of the line that continues at `at`."""
    step = _STEP
    while at > first:
        start = max(first, at - step)
        newline = segments.read(start, at).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        at, step = start, step * 2
    return first


def _find_line_end(segments: OpenSegments, at: int) -> int:
    step = _STEP
    while at < segments.end:
        newline = segments.read(at, min(segments.end, at + step)).find(b"\n")
        if newline >= 0:
            return at + newline + 1
        at, step = min(segments.end, at + step), step * 2
    return segments.end


SECONDS = 10.0
"""Time limit for one search; matches up to then are returned."""
_ARGUMENTS = (
    "--no-heading",
    "--with-filename",
    "--null",
    "--text",
    "--encoding=none",
    "--mmap",
    "--line-number",
    "--column",
    "--byte-offset",
    "--max-columns=1",  # lines may be very long, so they are read from the segments instead
)
_RECORD = re.compile(rb"^/dev/fd/(\d+)\0(\d+):(\d+):(\d+):|^<stdin>\0(\d+):(\d+):(\d+):", re.MULTILINE)
_SPLIT = 8 << 20
"""Size from which two worker processes are faster than one."""
_LINE = 1 << 20
"""Bytes searched for a line end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One matching line."""

    line_number: int
    """From one, counted from the first line ever printed, including dropped lines."""
    offset: int
    """Where the line begins in the tail."""
    text: str
    """The line; for a very long line, the part around the match."""
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The result of a search, oldest match first."""

    matches: tuple[Match, ...]
    more: bool
    """There are further matches, or the time limit passed before all output was searched."""


async def search_tail(
    tail: Tail,
    pattern: str,
    *,
    raw: bool = False,
    context: int = 0,
    max_results: int = 100,
    case_insensitive: bool = False,
    room: ThreadPool = PEOPLE,
) -> SearchResult:
    """Find the lines that match a regular expression. Raises BadPattern and NoRipgrep.

    `raw` searches the output with its escape sequences; otherwise the plain text, in which an overwritten line has its
    final state and the number of the line in which it begins.
    """
    check_characters(pattern, PATTERN_MAX)
    query = _Query(pattern, max_results + 1, case_insensitive)
    work = partial(_search_output if raw else _search_text, tail, query, context, max_results)
    return await run_search(room, query.search, work)


class _Query:
    """A pattern with its options, and the processes of the search."""

    def __init__(self, pattern: str, most: int, case_insensitive: bool) -> None:
        self.search = Search()
        self._options = (f"--max-count={most}", *(("--ignore-case",) if case_insensitive else ()))
        self._pattern = pattern

    def lines(self, fds: Sequence[int], stdin: bytes = b"") -> tuple[list[Hit], bool]:
        """The first matching lines of each open file, and whether all were searched in time. Raises BadPattern."""
        files = [f"/dev/fd/{fd}" for fd in fds]
        arguments = (*_ARGUMENTS, *self._options, f"--regexp={self._pattern}", "--", *files, "-")
        out = bytearray()

        def take(chunk: bytes) -> bool:
            out.extend(chunk)
            return True

        with _unnamed_files(1) as (stdin_fd,):
            os.pwrite(stdin_fd, stdin, 0)
            ended = self.search.run(arguments, take, seconds=SECONDS, stdin=stdin_fd, pass_fds=fds)
        if ended.code == 2 and not out:
            raise pattern_error(ended.complaint, self._pattern)
        return _parse_hits(bytes(out)), ended.code in (0, 1)


def _search_output(tail: Tail, query: _Query, context: int, most: int) -> SearchResult:
    with open_segments(tail) as segments:
        joined = find_seams(segments)
        stdin = b"".join(segments.read(seam.start, seam.end).removesuffix(b"\n") + b"\n" for seam in joined)
        hits, is_complete = query.lines([piece.fd for piece in segments.pieces], stdin)
        lines = sorted(locate_hits(segments, joined, hits))
        matches: list[Match] = []
        for offset, number, column in lines[:most]:
            excerpt = window(segments.read, segments.start, segments.end, offset, offset + column, context)
            matches.append(_build_match(excerpt, number + 1, offset))
    return SearchResult(matches=tuple(matches), more=not is_complete or len(lines) > most)


def _search_text(tail: Tail, query: _Query, context: int, most: int) -> SearchResult:
    with open_segments(tail) as segments, _unnamed_files(len(parts := _split_ranges(segments))) as texts:
        line_maps = _strip_parts(query, segments, parts, texts)
        hits, is_complete = query.lines(texts)
        hits.sort(key=lambda hit: (texts.index(hit.fd), hit.line))
        matches = [_build_text_match(segments, parts, line_maps, texts, hit, context) for hit in hits[:most]]
    return SearchResult(matches=tuple(matches), more=None in line_maps or not is_complete or len(hits) > most)


def _build_text_match(
    segments: OpenSegments,
    parts: list[tuple[int, int]],
    line_maps: Sequence[LineMap | None],
    texts: list[int],
    hit: Hit,
    context: int,
) -> Match:
    part = texts.index(hit.fd)

    def read(start: int, end: int) -> bytes:
        return os.pread(hit.fd, end - start, start)

    excerpt = window(read, 0, os.fstat(hit.fd).st_size, hit.offset, hit.offset + hit.column, context)
    before = segments.lines_before(0) + sum(line_map.lines for line_map in line_maps[:part] if line_map)
    line_map = line_maps[part]
    if line_map is None:
        return _build_match(excerpt, before + hit.line, parts[part][0])
    line = line_map.back(hit.line - 1)
    return _build_match(excerpt, before + line + 1, _offset_of_line(segments, parts[part], line_map, line))


def _build_match(excerpt: Window, line_number: int, offset: int) -> Match:
    return Match(
        line_number=line_number, offset=offset, text=excerpt.text, before=excerpt.before, after=excerpt.after
    )


def _offset_of_line(segments: OpenSegments, part: tuple[int, int], line_map: LineMap, line: int) -> int:
    """The output offset of a line of a part."""
    if line == 0:
        return part[0]
    before, offset = line_map.near(line)
    start = part[0] + offset
    block = segments.read(start, min(part[1], start + _LINE))
    at = -1
    for _ in range(line - before):
        at = block.find(b"\n", at + 1)
    return start + at + 1


def _split_ranges(segments: OpenSegments) -> list[tuple[int, int]]:
    """The ranges of output for the worker processes: two for a large output, else one."""
    if not segments.pieces:
        return []
    middle = (segments.start + segments.end) // 2
    if segments.end - segments.start >= _SPLIT and (os.cpu_count() or 1) > 1:
        at = segments.read(middle, middle + _LINE).find(b"\n")
        if at >= 0:
            return [(segments.start, middle + at + 1), (middle + at + 1, segments.end)]
    return [(segments.start, segments.end)]


def _strip_parts(
    query: _Query, segments: OpenSegments, parts: list[tuple[int, int]], texts: list[int]
) -> list[LineMap | None]:
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                query.search.hold(partial(start_worker, text, _segment_ranges(segments, *part)))
            )
            for text, part in zip(texts, parts, strict=True)
        ]
        return [read_line_map(child, SECONDS) for child in running]


def _segment_ranges(segments: OpenSegments, start: int, end: int) -> list[tuple[int, int, int]]:
    return [
        (piece.fd, max(start, piece.start) - piece.start, min(end, piece.end) - piece.start)
        for piece in segments.pieces
        if piece.start < end and piece.end > start
    ]


@contextmanager
def _unnamed_files(count: int) -> Generator[list[int]]:
    files = [unnamed_file() for _ in range(count)]
    try:
        yield files
    finally:
        for fd in files:
            os.close(fd)


def _parse_hits(out: bytes) -> list[Hit]:
    hits: list[Hit] = []
    for record in _RECORD.finditer(out):
        fd, *numbers = (
            (record[1], record[2], record[3], record[4]) if record[1] else (b"-1", *record.groups()[4:])
        )
        line, column, offset = (int(number) for number in numbers)
        hits.append(Hit(int(fd), line, column - 1, offset))
    return hits
