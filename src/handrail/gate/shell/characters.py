"""Characters that do not show what they do.

Owns which those are, by their place in Unicode. It does not know what they stand in.
"""

import re
import unicodedata
from collections.abc import Iterator

Checks = dict[str, str]
"""A check by its name, and the sentence that is told when it finds something."""

CHARACTERS: Checks = {
    "control": "holds a control character",
    "direction": "holds a character that turns the direction of writing",
    "invisible": "holds a character that cannot be seen",
    "blank": "holds a blank that is none for the shell",
}

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_DIRECTION = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u180b\u180c\u180d\u180f")
"""Letters and marks by their category, yet nothing to see."""
_CATEGORIES = {
    "Cc": "control",
    "Cf": "invisible",
    "Cn": "invisible",
    "Co": "invisible",
    "Cs": "invisible",
    "Zs": "blank",
    "Zl": "blank",
    "Zp": "blank",
}


def hidden(text: str) -> Iterator[tuple[str, str]]:
    """For each kind that is in it, the first such character and the sentence."""
    seen: set[str] = set()
    if text.isascii() and not _CONTROL.search(text):
        return
    for char in dict.fromkeys(text):
        kind = _kind(char)
        if kind and kind not in seen and CHARACTERS[kind]:
            seen.add(kind)
            yield char, f"{CHARACTERS[kind]} (U+{ord(char):04X})"


def _kind(char: str) -> str:
    if " " <= char <= "~" or char in "\n\t":
        return ""
    if char in _DIRECTION:
        return "direction"
    if char in _FILLERS or "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef":
        return "invisible"
    return _CATEGORIES.get(unicodedata.category(char), "")
