"""What is indexed: a text, and where it stands.

Owns in which pieces. It does not know the file (file.py).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

TextKind = Literal["message", "input", "output", "title"]

PIECE = 8_000
"""Characters that are indexed together: an excerpt is sought in so many."""
LONGEST = 64 * 1024
"""Characters of one input or output."""
LONGEST_MESSAGE = 1024 * 1024
"""Characters of one message: what people look for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text to be found."""

    kind: TextKind
    text: str
    at: int
    workspace: str | None = None
    thread: str | None = None
    message: str | None = None
    call: str | None = None


def pieces(text: Text) -> Iterator[Text]:
    """Of a length that can be searched for an excerpt; cut between lines where there are any."""
    rest = text.text[: LONGEST_MESSAGE if text.kind == "message" else LONGEST]
    while rest:
        cut = len(rest) if len(rest) <= PIECE else _between(rest)
        yield replace(text, text=rest[:cut])
        rest = rest[cut:]


def _between(text: str) -> int:
    for gap in ("\n", " "):
        cut = text.rfind(gap, PIECE // 2, PIECE)
        if cut > 0:
            return cut + 1
    return PIECE
