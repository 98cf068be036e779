"""A terminal's output on disk: append-only segments named by their absolute offset, each with an index file.

This is the writer: it appends, starts new segments and deletes the oldest. Readers need only the directory. An index
holds the number of lines before its segment, then the offset and the time in milliseconds of each chunk.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import time

SEGMENT_MAX = 4 * 1024 * 1024
"""Bytes in one segment: deleting the oldest segment loses at most this much output."""
PARTS = 8
"""Minimum number of segments that the limits are divided into: deleting one loses at most this fraction."""


def segment_name(offset: int) -> str:
    return f"{offset:020d}.seg"


class Spool:
    """Writes one terminal's output. Creates nothing on disk before the first byte."""

    def __init__(self, directory: str, cap_bytes: int, cap_lines: int = 1_000_000) -> None:
        self.directory = directory
        self.size = 0
        self.lines = 0
        self.unrecorded: str | None = None
        self._cap = max(cap_bytes, PARTS)
        self._segment_max = min(self._cap // PARTS, SEGMENT_MAX)
        self._cap_lines = max(cap_lines, PARTS)
        self._segment_lines = self._cap_lines // PARTS
        self._starts: list[tuple[int, int]] = []  # for each segment: the bytes and the lines before it
        self._fd = -1
        self._index: Index | None = None

    @property
    def first(self) -> int:
        """The oldest offset that is still on disk."""
        return self._starts[0][0] if self._starts else 0

    @property
    def lines_dropped(self) -> int:
        return self._starts[0][1] if self._starts else 0

    def append(self, data: memoryview, lines: int | None = None) -> None:
        """Write bytes to disk. On an error, stop for good and set `unrecorded` to the reason.

        `lines` is the number of newlines in `data`; without it they are counted, which copies the data.
        """
        if self.unrecorded is not None:
            return
        if lines is None:
            lines = count_lines(data)
        try:
            while data:
                written, ended = self._write(data, lines)
                data, lines = data[written:], lines - ended
        except OSError as error:
            self.unrecorded = f"The output could not be written to {self.directory}: {error.strerror}."
            self.close()

    def note(self) -> None:
        """Flush the index, before readers are notified of new output."""
        if self._index is not None:
            self._index.flush()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._index is not None:
            self._index.close()
            self._index = None

    def delete(self) -> None:
        self.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _write(self, data: memoryview, lines: int) -> tuple[int, int]:
        """Write as much as fits into the segment; return the number of bytes and of newlines written."""
        if self._fd < 0 or self._room <= 0 or self._room_lines <= 0:
            self._roll()
        assert self._index is not None
        self._index.note(self.size)
        end = min(len(data), self._room)
        if lines > self._room_lines:
            end = min(end, after_lines(data.tobytes(), self._room_lines))
        written = os.write(self._fd, data[:end])
        ended = lines if written == len(data) or not lines else count_lines(data[:written])
        self.size += written
        self.lines += ended
        self._drop_oldest()
        return written, ended

    @property
    def _room(self) -> int:
        return self._starts[-1][0] + self._segment_max - self.size

    @property
    def _room_lines(self) -> int:
        return self._starts[-1][1] + self._segment_lines - self.lines

    def _roll(self) -> None:
        self.close()
        if not self._starts:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
        path = os.path.join(self.directory, segment_name(self.size))
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._index = Index(self.directory, self.size, self.lines)
        self._starts.append((self.size, self.lines))

    def _drop_oldest(self) -> None:
        while self.size - self.first > self._cap or self.lines - self.lines_dropped > self._cap_lines:
            oldest, _ = self._starts.pop(0)
            for name in (segment_name(oldest), index_name(oldest)):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.directory, name))


def count_lines(data: memoryview) -> int:
    return data.tobytes().count(b"\n")  # a memoryview has no count


def after_lines(data: bytes, lines: int) -> int:
    """The offset after the given number of lines, by binary search. `data` must contain that many."""
    low, high = 0, len(data)
    while high - low > 1:
        middle = (low + high) // 2
        count = data.count(b"\n", low, middle)
        if count >= lines:
            high = middle
        else:
            low, lines = middle, lines - count
    return high


PENDING_MAX = 4096
"""Index bytes buffered in memory before they are written."""
FREE_CHUNKS = 4096
"""Chunks of a segment that are indexed regardless of their size."""
CHUNK_MIN = 512
"""Bytes between index entries after those: a program that prints single bytes must not fill the disk with entries."""
_PAIR = struct.Struct(">QQ")


def index_name(offset: int) -> str:
    return f"{offset:020d}.idx"


class Index:
    """Writes one segment's index. Errors are ignored: output is kept without its times."""

    def __init__(self, directory: str, offset: int, lines: int) -> None:
        self._chunks = 0
        self._last = offset
        self._fd = -1
        self._pending = bytearray(_PAIR.pack(lines, 0))
        path = os.path.join(directory, index_name(offset))
        with contextlib.suppress(OSError):
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self.flush()

    def note(self, offset: int) -> None:
        """Record that a chunk begins at this offset now."""
        if self._chunks >= FREE_CHUNKS and offset - self._last < CHUNK_MIN:
            return
        self._chunks += 1
        self._last = offset
        self._pending += _PAIR.pack(offset, time.time_ns() // 1_000_000)
        if len(self._pending) >= PENDING_MAX:
            self.flush()

    def flush(self) -> None:
        if self._fd >= 0 and self._pending:
            try:
                whole = os.write(self._fd, self._pending) == len(self._pending)
            except OSError:
                whole = False
            if not whole:
                self._end()
        self._pending.clear()

    def close(self) -> None:
        self.flush()
        self._end()

    def _end(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
