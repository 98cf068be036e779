"""Finding lines of a tail by a regular expression, in the output as it is or in the text it shows.

Owns what a match is and where it stands, and what ripgrep is asked (ripgrep.py runs it). A process of its own makes
the text (strip.py), so that a large output does not hold up the daemon. It does not know who asks.

Lines that lie across the end of a segment, which a search segment by segment would not see whole.

A tail's segments held open together, so that none is dropped while someone goes through them all.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from handrail.terminal.output._strip_worker import Way, command, way_of
from handrail.terminal.output.paging import Window, window
from handrail.terminal.output.tail import lines_before
from handrail.terminal.ripgrep import MOST_CHARACTERS, Search, complain, in_thread, unnamed_file
from handrail.terminal.safe_regex import check_characters
from handrail.terminal.thread_pool import PEOPLE, Room

if TYPE_CHECKING:
    from handrail.terminal.output.tail import Tail


_HELD_STEP = 1 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """One segment, as large as it was when it was opened."""

    fd: int
    start: int
    size: int
    lines_before: int | None
    """Lines that end before it; None where nobody counted."""

    @property
    def end(self) -> int:
        return self.start + self.size


class Held:
    """All of a tail that is kept, as it was when it was opened."""

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces
        self.start = pieces[0].start if pieces else 0
        self.end = pieces[-1].end if pieces else 0
        self._counted: dict[int, int] = {}

    def read(self, start: int, end: int) -> bytes:
        found: list[bytes] = []
        at = bisect_right(self.pieces, start, key=lambda piece: piece.start) - 1
        for piece in self.pieces[max(0, at) :]:
            if piece.start >= end:
                break
            begin = max(start, piece.start)
            found.append(os.pread(piece.fd, max(0, min(end, piece.end) - begin), begin - piece.start))
        return b"".join(found)

    def lines_before(self, index: int) -> int:
        """Lines that end before the piece of this index, counted where nobody did."""
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
def holding(tail: Tail) -> Generator[Held]:
    """Open for as long as this lasts."""
    pieces: list[Piece] = []
    try:
        for start, path in tail.files:
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue  # dropped since it was listed
            pieces.append(Piece(fd, start, os.fstat(fd).st_size, lines_before(path)))
        yield Held(pieces)
    finally:
        for piece in pieces:
            os.close(piece.fd)


_STEP = 4096


@dataclass(frozen=True, slots=True, order=True)
class Hit:
    """A matching line, in an open file or, with fd -1, on stdin."""

    fd: int
    line: int
    """From one."""
    column: int
    """Bytes from the beginning of the line to the match, from zero."""
    offset: int
    """Where the line begins."""


@dataclass(frozen=True, slots=True)
class Seam:
    """A line that begins in one segment and ends in a later one."""

    start: int
    end: int
    """After its line end, or the end of everything."""
    after: int
    """The segment at whose end it was cut first."""


def seams(held: Held) -> list[Seam]:
    found: list[Seam] = []
    for index, piece in enumerate(held.pieces[:-1]):
        if (found and found[-1].end > piece.end) or held.read(piece.end - 1, piece.end) == b"\n":
            continue  # within a longer one, or none
        start = found[-1].end if found and found[-1].end > piece.start else piece.start
        found.append(Seam(_begin(held, start, piece.end), _end(held, piece.end), index))
    return found


def kept(held: Held, joined: Sequence[Seam], hits: Sequence[Hit]) -> Iterator[tuple[int, int, int]]:
    """Offset, number (from zero) and column of each line that really is one."""
    by_fd = {piece.fd: index for index, piece in enumerate(held.pieces)}
    for hit in hits:
        if hit.fd < 0:
            seam = joined[hit.line - 1]
            yield seam.start, held.lines_before(seam.after + 1), hit.column
            continue
        index = by_fd[hit.fd]
        offset = held.pieces[index].start + hit.offset
        if not any(seam.start <= offset < seam.end for seam in joined):
            yield offset, held.lines_before(index) + hit.line - 1, hit.column


def _begin(held: Held, first: int, at: int) -> int:
    """Where the line that goes on at `at` began."""
    step = _STEP
    while at > first:
        start = max(first, at - step)
        found = held.read(start, at).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        at, step = start, step * 2
    return first


def _end(held: Held, at: int) -> int:
    step = _STEP
    while at < held.end:
        found = held.read(at, min(held.end, at + step)).find(b"\n")
        if found >= 0:
            return at + found + 1
        at, step = min(held.end, at + step), step * 2
    return held.end


SECONDS = 10.0
"""How long one search may take; what was found until then is given."""
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
    "--max-columns=1",  # the lines are read where they stand, however long they are
)
_RECORD = re.compile(rb"^/dev/fd/(\d+)\0(\d+):(\d+):(\d+):|^<stdin>\0(\d+):(\d+):(\d+):", re.MULTILINE)
_SPLIT = 8 << 20
"""Bytes from which on two processes make the text sooner than one."""
_LINE = 1 << 20
"""How far to look for a line end to split at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One matching line."""

    line_number: int
    """From one, counted from the first line ever printed, those no longer kept included."""
    offset: int
    """Where the line begins in the tail."""
    text: str
    """The line; of a very long one the part around the match."""
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search found, oldest first."""

    matches: tuple[Match, ...]
    more: bool
    """There are matches beyond these, or there was no time to look at all."""


async def search(
    tail: Tail,
    pattern: str,
    *,
    raw: bool = False,
    context: int = 0,
    max_results: int = 100,
    case_insensitive: bool = False,
    room: Room = PEOPLE,
) -> Found:
    """The lines that match a regular expression. Raises BadPattern and NoRipgrep.

    `raw` looks at the output with its escape sequences; otherwise at the text that `plain` makes of it, where a line
    that was overwritten stands as it was in the end, under the number of the line in which it began.
    """
    check_characters(pattern, MOST_CHARACTERS)
    asking = _Asking(pattern, max_results + 1, case_insensitive)
    looking = partial(_in_output if raw else _in_text, tail, asking, context, max_results)
    return await in_thread(room, asking.search, looking)


class _Asking:
    """What is searched for, and the processes that do it."""

    def __init__(self, pattern: str, most: int, case_insensitive: bool) -> None:
        self.search = Search()
        self._options = (f"--max-count={most}", *(("--ignore-case",) if case_insensitive else ()))
        self._pattern = pattern

    def lines(self, fds: Sequence[int], stdin: bytes = b"") -> tuple[list[Hit], bool]:
        """The first matching lines of each open file, and whether there was time to look at all. Raises BadPattern."""
        files = [f"/dev/fd/{fd}" for fd in fds]
        arguments = (*_ARGUMENTS, *self._options, f"--regexp={self._pattern}", "--", *files, "-")
        out = bytearray()

        def take(chunk: bytes) -> bool:
            out.extend(chunk)
            return True

        with _unnamed_files(1) as (given,):
            os.pwrite(given, stdin, 0)
            ended = self.search.run(arguments, take, seconds=SECONDS, stdin=given, pass_fds=fds)
        if ended.code == 2 and not out:
            raise complain(ended.complaint, self._pattern)
        return _hits(bytes(out)), ended.code in (0, 1)


def _in_output(tail: Tail, asking: _Asking, context: int, most: int) -> Found:
    with holding(tail) as held:
        joined = seams(held)
        stdin = b"".join(held.read(seam.start, seam.end).removesuffix(b"\n") + b"\n" for seam in joined)
        hits, all_seen = asking.lines([piece.fd for piece in held.pieces], stdin)
        lines = sorted(kept(held, joined, hits))
        matches: list[Match] = []
        for offset, number, column in lines[:most]:
            seen = window(held.read, held.start, held.end, offset, offset + column, context)
            matches.append(_match(seen, number + 1, offset))
    return Found(matches=tuple(matches), more=not all_seen or len(lines) > most)


def _in_text(tail: Tail, asking: _Asking, context: int, most: int) -> Found:
    with holding(tail) as held, _unnamed_files(len(parts := _parts(held))) as texts:
        ways = _strip(asking, held, parts, texts)
        hits, all_seen = asking.lines(texts)
        hits.sort(key=lambda hit: (texts.index(hit.fd), hit.line))
        matches = [_text_match(held, parts, ways, texts, hit, context) for hit in hits[:most]]
    return Found(matches=tuple(matches), more=None in ways or not all_seen or len(hits) > most)


def _text_match(
    held: Held,
    parts: list[tuple[int, int]],
    ways: Sequence[Way | None],
    texts: list[int],
    hit: Hit,
    context: int,
) -> Match:
    part = texts.index(hit.fd)

    def read(start: int, end: int) -> bytes:
        return os.pread(hit.fd, end - start, start)

    seen = window(read, 0, os.fstat(hit.fd).st_size, hit.offset, hit.offset + hit.column, context)
    before = held.lines_before(0) + sum(way.lines for way in ways[:part] if way)
    way = ways[part]
    if way is None:
        return _match(seen, before + hit.line, parts[part][0])
    line = way.back(hit.line - 1)
    return _match(seen, before + line + 1, _offset(held, parts[part], way, line))


def _match(seen: Window, line_number: int, offset: int) -> Match:
    return Match(line_number=line_number, offset=offset, text=seen.text, before=seen.before, after=seen.after)


def _offset(held: Held, part: tuple[int, int], way: Way, line: int) -> int:
    """Where a line of a part begins in the output."""
    if line == 0:
        return part[0]
    before, offset = way.near(line)
    start = part[0] + offset
    block = held.read(start, min(part[1], start + _LINE))
    at = -1
    for _ in range(line - before):
        at = block.find(b"\n", at + 1)
    return start + at + 1


def _parts(held: Held) -> list[tuple[int, int]]:
    """The output in ranges for each of which a process makes the text: two, where that is worth it."""
    if not held.pieces:
        return []
    middle = (held.start + held.end) // 2
    if held.end - held.start >= _SPLIT and (os.cpu_count() or 1) > 1:
        at = held.read(middle, middle + _LINE).find(b"\n")
        if at >= 0:
            return [(held.start, middle + at + 1), (middle + at + 1, held.end)]
    return [(held.start, held.end)]


def _strip(asking: _Asking, held: Held, parts: list[tuple[int, int]], texts: list[int]) -> list[Way | None]:
    running = [
        asking.search.start(command(text, ranges), pass_fds=[text, *(fd for fd, _, _ in ranges)])
        for text, ranges in zip(texts, (_ranges(held, *part) for part in parts), strict=True)
    ]
    try:
        return [way_of(process, SECONDS) for process in running]
    finally:
        for process in running:
            asking.search.end(process)


def _ranges(held: Held, start: int, end: int) -> list[tuple[int, int, int]]:
    return [
        (piece.fd, max(start, piece.start) - piece.start, min(end, piece.end) - piece.start)
        for piece in held.pieces
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


def _hits(out: bytes) -> list[Hit]:
    found: list[Hit] = []
    for record in _RECORD.finditer(out):
        fd, *numbers = (
            (record[1], record[2], record[3], record[4]) if record[1] else (b"-1", *record.groups()[4:])
        )
        line, column, offset = (int(number) for number in numbers)
        found.append(Hit(int(fd), line, column - 1, offset))
    return found
