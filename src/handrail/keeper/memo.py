"""A few bytes the daemon asks the keeper to hold across its own restarts.

Owns the cap. Lies in memory alone, because a process of the same user could alter a file.
"""

from __future__ import annotations

MEMO_MAX = 64 * 1024
"""Bytes of keys and values in all, so that the keeper stays small."""


class Memo:
    """Keys and values; an empty value forgets its key."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def remember(self, key: str, value: bytes) -> bool:
        """False, and nothing changes, when it would hold too much."""
        kept = {**self._values, key: value}
        if not value:
            del kept[key]
        if sum(len(name.encode()) + len(held) for name, held in kept.items()) > MEMO_MAX:
            return False
        self._values = kept
        return True

    def recall(self, key: str) -> bytes | None:
        return self._values.get(key)
