"""Line framing: split a byte stream into lines, with a limit on the length of a line. Standard library only."""

from __future__ import annotations

HELLO = 1
"""Version of the hello line between a door and the daemon. If the versions differ, the daemon must be restarted."""
HELLO_MAX = 64 << 10
"""Bytes of a hello line; bounds the memory that a wrong peer can make us use."""


HOOK_MAX = 8 << 20
"""Bytes of a hook's payload. A door refuses a longer one without sending it; the daemon reads no longer one."""


class LineTooLong(ValueError):
    """A line exceeds the limit; the message may be shown to the peer."""


class LineBuffer:
    """Splits a byte stream into lines and holds at most one unfinished line."""

    def __init__(self, limit: int) -> None:
        """`limit` is the number of bytes of a line, without its newline."""
        self._limit = limit
        self._partial = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that end in this data. Raises LineTooLong, after which the buffer is empty."""
        first, *rest = data.split(b"\n")
        self._partial += first
        if max(len(self._partial), len(rest[-1]) if rest else 0) > self._limit:
            self._partial = bytearray()
            raise LineTooLong(f"A message is longer than {self._limit} bytes.")
        if not rest:
            return []
        *whole, last = rest
        lines = [bytes(self._partial), *whole]
        self._partial = bytearray(last)
        return lines
