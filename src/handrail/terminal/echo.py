"""Whether a terminal showed what somebody typed.

Owns what counts as an echo; pure but for the reading. When in doubt it was not shown: what follows from a yes is that
the text is written down for good.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from handrail.terminal import screen

if TYPE_CHECKING:
    from handrail.terminal.tail import Tail

ECHO_BYTES = 64 * 1024
"""Output looked through for one line: bounds the work, and what may be taken for an echo."""
SURE_LENGTH = 4
"""Characters below which a text may stand in any output by chance, and must begin it to be an echo."""
_SPACE = re.compile(r"\s+")


def shown(text: str, data: bytes) -> bool:
    """Whether the output after somebody began to type holds what they typed."""
    plain = screen.plain(data)
    flat, wanted = _SPACE.sub("", plain), _SPACE.sub("", text)
    if len(wanted) < SURE_LENGTH:
        return bool(wanted) and flat.startswith(wanted)
    return wanted in flat or wanted in _SPACE.sub("", screen.plain(data.replace(b"\r", b"")))


def output_after(tail: Tail, after: int) -> bytes:
    """What came after somebody began to type, across segments."""
    data, following = tail.read(after, ECHO_BYTES)
    return data + tail.read(following, ECHO_BYTES - len(data))[0] if data else b""
