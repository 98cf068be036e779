"""A terminal's output on disk: append-only segments named by their absolute offset.

Owns writing, rolling and dropping. Does not know who reads; readers need nothing but the directory.
"""

from __future__ import annotations

import contextlib
import os
import shutil

SEGMENT_MAX = 4 * 1024 * 1024
"""Bytes in one segment, so that dropping the oldest never costs more than this."""


def segment_name(offset: int) -> str:
    return f"{offset:020d}.seg"


class Spool:
    """The writing end. Nothing is made on disk before the first byte."""

    def __init__(self, directory: str, cap_bytes: int) -> None:
        self.directory = directory
        self.size = 0
        self.unrecorded: str | None = None
        self._cap = max(cap_bytes, 8)
        self._segment_max = min(self._cap // 8, SEGMENT_MAX)
        self._starts: list[int] = []
        self._fd = -1

    @property
    def first(self) -> int:
        """The oldest offset still kept."""
        return self._starts[0] if self._starts else 0

    def append(self, data: memoryview) -> None:
        """Record bytes; when the disk refuses, stop recording for good and say why in `unrecorded`."""
        if self.unrecorded is not None:
            return
        try:
            while data:
                data = data[self._write(data) :]
        except OSError as error:
            self.unrecorded = f"The output could not be written to {self.directory}: {error.strerror}."
            self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def delete(self) -> None:
        self.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _write(self, data: memoryview) -> int:
        room = self._starts[-1] + self._segment_max - self.size if self._fd >= 0 else 0
        if room <= 0:
            self._roll()
            room = self._segment_max
        written = os.write(self._fd, data[:room])
        self.size += written
        if self.size - self.first > self._cap:
            self._drop_oldest()
        return written

    def _roll(self) -> None:
        self.close()
        if not self._starts:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
        path = os.path.join(self.directory, segment_name(self.size))
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._starts.append(self.size)

    def _drop_oldest(self) -> None:
        oldest = self._starts.pop(0)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.directory, segment_name(oldest)))
