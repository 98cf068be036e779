"""Whether a terminal showed what somebody typed.

Owns what counts as an echo; pure but for the reading. When in doubt it was not shown: what follows from a yes is that
the text is written down for good. Hostile output takes a tenth of a second to read: call it in a thread.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from handrail.terminal.output import screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handrail.terminal.output.tail import Tail

ECHO_BYTES = 64 * 1024
"""Output looked through for one entry: bounds the work, and what may be taken for an echo."""
SURE_LENGTH = 4
"""Characters below which a text may stand in any output by chance, and must begin it to be an echo."""
_SPACE = re.compile(r"\s+")


def shown(lines: Sequence[str], data: bytes) -> int:
    """How many of the lines, from the first on, the output holds that came after somebody began to type them."""
    wanted = [_SPACE.sub("", line) for line in lines]
    if not any(wanted):
        return 0
    count = _found(wanted, screen.plain(data))
    if count < len(wanted) and b"\r" in data:
        count = max(count, _found(wanted, screen.plain(data.replace(b"\r", b""))))
    return count if any(wanted[:count]) else 0


def output_after(tail: Tail, after: int) -> bytes:
    """What came after somebody began to type, across segments."""
    data, following = tail.read(after, ECHO_BYTES)
    return data + tail.read(following, ECHO_BYTES - len(data))[0] if data else b""


def _found(wanted: list[str], plain: str) -> int:
    """How many stand there one after the other; a short one only right behind the one before, or at the beginning."""
    flat, at = _SPACE.sub("", plain), 0
    for count, text in enumerate(wanted):
        begin = at if flat.startswith(text, at) else -1
        if begin < 0 and len(text) >= SURE_LENGTH:
            begin = flat.find(text, at)
        if begin < 0:
            return count
        at = begin + len(text)
    return len(wanted)
