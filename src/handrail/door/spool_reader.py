"""A terminal's output, read from where the keeper writes it.

Owns a position and the file it lies in. Does not know when there is more (the keeper tells), nor what becomes of the
bytes. Segments follow each other without a gap, each named by its absolute offset; the oldest may be gone.
"""

from __future__ import annotations

import os

SUFFIX = ".seg"


class SpoolReader:
    """Reads on from a position, a piece at a time."""

    def __init__(self, directory: str, at: int = 0) -> None:
        self.at = at
        self.lost = 0
        """Bytes that were passed over, because they had been dropped before they could be read."""
        self._directory = directory
        self._start = -1
        self._fd = -1

    def read(self, most: int) -> bytes:
        """The next bytes, at most so many; none when all has been read."""
        while self._fd >= 0 or self._go_on():
            data = os.read(self._fd, most)
            if data:
                self.at += len(data)
                return data
            if not self._go_on():
                break
        return b""

    def skip(self, keep: int) -> int:
        """Pass over all but the last bytes that there are now; how many were passed over."""
        starts = self._starts()
        passed = starts[-1] + _size(self._path(starts[-1])) - keep - self.at if starts else 0
        if passed <= 0:
            return 0
        self.at += passed
        self.close()
        return passed

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = self._start = -1

    def _go_on(self) -> bool:
        """To the segment that begins where ours ends; where it was dropped, to the oldest that is left."""
        if self._start != self.at and self._open(self.at):
            return True
        while (start := self._holding()) is not None and start != self._start:
            if self._open(start):
                return True
        return False

    def _holding(self) -> int | None:
        starts = self._starts()
        return max((start for start in starts if start <= self.at), default=starts[0] if starts else None)

    def _open(self, start: int) -> bool:
        try:
            fd = os.open(self._path(start), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        self.close()
        self._fd, self._start = fd, start
        if start > self.at:
            self.lost += start - self.at
            self.at = start
        os.lseek(fd, self.at - start, os.SEEK_SET)
        return True

    def _starts(self) -> list[int]:
        try:
            names = os.listdir(self._directory)
        except FileNotFoundError:
            return []
        return sorted(int(name.removesuffix(SUFFIX)) for name in names if name.endswith(SUFFIX))

    def _path(self, start: int) -> str:
        return os.path.join(self._directory, f"{start:020d}{SUFFIX}")


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
