"""Where to begin, for whoever shows a terminal's output and cannot take all of it.

Owns only that. Does not know who shows it, nor what the bytes mean, but for lines and for the alternate screen.
"""

import re

from handrail.terminal.output.tail import Tail

_ALTERNATE = re.compile(rb"\x1b\[\?(?:\d+;)*(?:1049|1047|47)(?:;\d+)*([hl])")
_LONGEST = 64
"""Bytes of one such sequence: two pieces that are looked through must overlap by as much."""
_PIECE = 1024 * 1024


def near_end(tail: Tail, reach: int) -> int:
    """The start of a line, at most `reach` bytes from the end; anywhere, when no line begins there."""
    first, end = tail.first, tail.end
    start = max(first, end - reach)
    if start == 0:
        return 0
    at = start - (start > first)  # a line that begins exactly at `start` has its newline one before
    while at < end:
        data, following = tail.read(at, min(_PIECE, end - at))
        if not data:
            break
        newline = data.find(b"\n")
        if newline >= 0:
            return following - len(data) + newline + 1
        at = following
    return start


def is_alternate(tail: Tail, at: int) -> bool:
    """Whether a full-screen program had the alternate screen at this offset, as far back as output is kept.

    Reads what was printed before, so call it in a thread.
    """
    first, high = tail.first, at
    while high > first:
        low = max(first, high - _PIECE)
        *_, last = [b"", *_ALTERNATE.findall(tail.read_range(low, min(at, high + _LONGEST)))]
        if last:
            return last == b"h"
        high = low
    return False
