"""The end of a terminal's output as an agent gets it: plain text of at most so many bytes, cut at its start.

Owns the cut. It does not know who asks, nor what escape sequences mean (terminal/output/text.py).
"""

from handrail.terminal.output.plain_text import plain
from handrail.terminal.output.tail import Tail

_LEAST = 64 * 1024
"""Bytes looked at, however few are wanted: colours and movements are bytes too."""
_GROWTH = 4


def last(tail: Tail, limit: int) -> tuple[str, bool]:
    """The last `limit` bytes of the text, and whether anything before them is left out.

    Looks at no more of the output than it takes. A line that began before that is left out.
    """
    kept = tail.extent
    window = max(_LEAST, _GROWTH * limit)
    while True:
        begin = max(kept.first, kept.end - window)
        text = plain(tail.read_range(begin, kept.end))
        if begin > kept.first:
            text = text.partition("\n")[2]
        raw = text.encode()
        if begin == kept.first or len(raw) >= limit:
            return cut(raw, limit), begin > 0 or len(raw) > limit
        window *= _GROWTH


def cut(raw: bytes, limit: int) -> str:
    """The end of a UTF-8 text, from the beginning of a character on."""
    begin = max(0, len(raw) - limit)
    while begin < len(raw) and raw[begin] & 0xC0 == 0x80:  # within a character
        begin += 1
    return raw[begin:].decode()
