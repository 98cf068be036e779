"""The index beside a segment: when each chunk of it was written, and how many lines came before it.

Owns the file's form: 16 bytes of header (the lines before this segment, and 8 bytes unused), then 16 bytes for each
chunk (its absolute offset, and milliseconds since 1970), all of it big-endian. Does not know the output itself. It is
a help to readers and no record: when the disk refuses it, it ends, and the output goes on.
"""

from __future__ import annotations

import contextlib
import os
import struct
import time

PENDING_MAX = 4096
"""Bytes gathered before they are written even if nobody is told of any growth."""
FREE_CHUNKS = 4096
"""Chunks of a segment that are noted however small they are."""
CHUNK_MIN = 512
"""Bytes between notes after those, so that a program that prints byte by byte does not fill the disk with their times."""
_PAIR = struct.Struct(">QQ")


def index_name(offset: int) -> str:
    return f"{offset:020d}.idx"


class Index:
    """The writing end of one segment's index."""

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
        """A chunk begins here, now."""
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
