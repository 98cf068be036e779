"""Text shown exactly: whatever could hide, disguise itself or drive the terminal is spelled out.

Owns which characters are not what they seem, as the page does on its side. Pure; does not know who wrote the
text, because everything that reaches the terminal passes here.
"""

import re
from collections import Counter

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff]"
)
"""Control (but newline and tab), formatting, bidi, zero-width, odd spaces, fillers, tags, lone surrogates."""

_SHORT = {"\r": "\\r", "\b": "\\b", "\f": "\\f", "\v": "\\v", "\0": "\\0", "\x1b": "\\e"}

_NAMES = (
    (0x00, 0x1F, "control character"),
    (0x7F, 0x9F, "control character"),
    (0x061C, 0x061C, "text direction mark"),
    (0x2000, 0x200A, "unusual space"),
    (0x200B, 0x200D, "zero-width character"),
    (0x200E, 0x200F, "text direction mark"),
    (0x2028, 0x2029, "unusual line break"),
    (0x202A, 0x202E, "text direction override"),
    (0x2060, 0x2064, "zero-width character"),
    (0x2066, 0x2069, "text direction override"),
    (0xFEFF, 0xFEFF, "zero-width character"),
    (0xE0000, 0xE0FFF, "invisible tag"),
)


def exact_text(text: str) -> str:
    """Any text, its lines and tabs kept."""
    return _HIDDEN.sub(lambda found: _spelled(found[0]), text)


def exact_line(text: str) -> str:
    """Any text on one line."""
    return flat(exact_text(text))


def flat(text: str) -> str:
    """Text that must not begin a line of its own among ours; the rest of it is still to be spelled out."""
    return text.replace("\n", "\\n").replace("\t", "\\t")


def warning(text: str) -> str | None:
    """One sentence about what is hidden in the text, or none."""
    kinds = Counter(_kind(ord(found[0])) for found in _HIDDEN.finditer(text))
    if not kinds:
        return None
    told = ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in kinds.items())
    return f"Holds what the eye would miss, spelled out here: {told}."


def _spelled(character: str) -> str:
    return _SHORT.get(character) or f"\\u{{{ord(character):x}}}"


def _kind(point: int) -> str:
    return next((name for first, last, name in _NAMES if first <= point <= last), "invisible character")
