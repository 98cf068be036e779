"""What an agent last said on its standard error, for when it fails.

Owns the last lines, made readable. Does not know who reads the pipe.
"""

import re
from collections import deque
from dataclasses import dataclass, field

SAID_LINES = 50
SAID_CHARS = 500
"""Kept of its standard error: so many last lines, and of each so much."""
_ESCAPES = re.compile(
    r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]"
)


@dataclass
class Said:
    """The last lines of a standard error."""

    _lines: deque[str] = field(default_factory=lambda: deque(maxlen=SAID_LINES))
    _partial: bytes = b""

    def feed(self, data: bytes) -> None:
        *whole, self._partial = (self._partial + data).split(b"\n")
        self._partial = self._partial[: 4 * SAID_CHARS]
        self._lines.extend(filter(None, map(_readable, whole)))

    @property
    def lines(self) -> tuple[str, ...]:
        last = _readable(self._partial)
        return (*self._lines, last)[-SAID_LINES:] if last else tuple(self._lines)


def _readable(line: bytes) -> str:
    text = _ESCAPES.sub("", line[: 4 * SAID_CHARS].decode(errors="replace")).rstrip()
    return text if len(text) <= SAID_CHARS else f"{text[:SAID_CHARS]}…"
