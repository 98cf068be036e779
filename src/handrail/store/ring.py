"""The newest entries, kept in memory so that followers near the tail cost no read.

Bounded in count and bytes. Does not know the database: a reader that is further behind must ask there.
"""

from collections import deque

from handrail.store.event import Entry, Event, ThreadDeleted, ThreadOpened, ThreadRenamed

RING_ENTRIES = 4096
RING_BYTES = 8 * 1024 * 1024
"""Bound what a burst of large results may hold in memory."""


class Ring:
    """Entries after `floor`, without gaps."""

    def __init__(self, floor: int, entries: int = RING_ENTRIES, size: int = RING_BYTES) -> None:
        self.floor = floor
        self._kept: deque[tuple[Entry, int]] = deque()
        self._bytes = 0
        self._entries_max = entries
        self._bytes_max = size

    def add(self, entry: Entry, size: int) -> None:
        self._kept.append((entry, size))
        self._bytes += size
        if isinstance(entry.event, ThreadDeleted):
            self._forget(entry.event.thread)
        while self._kept and (len(self._kept) > self._entries_max or self._bytes > self._bytes_max):
            oldest, freed = self._kept.popleft()
            self._bytes -= freed
            self.floor = oldest.seq

    def after(self, seq: int, limit: int) -> list[Entry] | None:
        """The first `limit` entries after `seq`; None when they are no longer all here."""
        if seq < self.floor:
            return None
        newer: list[Entry] = []
        for entry, _ in reversed(self._kept):
            if entry.seq <= seq:
                break
            newer.append(entry)
        newer.reverse()
        return newer[:limit]

    def _forget(self, thread: str) -> None:
        """What a deleted thread was called, as on disk: the facts that say so are no more."""
        kept = [each for each in self._kept if not _names(each[0].event, thread)]
        self._kept = deque(kept)
        self._bytes = sum(size for _, size in kept)


def _names(event: Event, thread: str) -> bool:
    return isinstance(event, ThreadOpened | ThreadRenamed) and event.thread == thread
