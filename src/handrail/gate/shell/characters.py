"""Hidden characters in a command, as reasons why the command cannot be classified.

Uses the shared table (hidden_text.py) and, beyond it, Unicode categories.
"""

import re
import unicodedata
from collections.abc import Iterator

from handrail.hidden_text import (
    CONTROL,
    DIRECTION_MARK,
    DIRECTION_OVERRIDE,
    LINE_BREAK,
    NO_BREAK_SPACE,
    SPACE,
    hidden_name,
)

Checks = dict[str, str]
"""Check name → sentence reported when the check finds something; an empty sentence disables the check."""

CHARACTERS: Checks = {
    "control": "holds a control character",
    "direction": "holds a character that turns the direction of writing",
    "invisible": "holds a character that cannot be seen",
    "blank": "holds a blank that is none for the shell",
}

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_KINDS = {
    CONTROL: "control",
    DIRECTION_MARK: "direction",
    DIRECTION_OVERRIDE: "direction",
    LINE_BREAK: "blank",
    NO_BREAK_SPACE: "blank",
    SPACE: "blank",
}
"""The check for a name of the shared table; every other name is `invisible`."""
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
"""Stricter than the table: unassigned and private characters, and format characters that some fonts draw."""


def find_hidden(text: str) -> Iterator[tuple[str, str]]:
    """For each kind of hidden character in the text: the first such character and a sentence."""
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
    if name := hidden_name(char):
        return _KINDS.get(name, "invisible")
    return _CATEGORIES.get(unicodedata.category(char), "")
