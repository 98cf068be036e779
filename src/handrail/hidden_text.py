"""Table of characters that a reader cannot see, or that change how the text around them looks.

The shell parser, the command line and the notifier use this table. The page uses a TypeScript copy, generated with
`python -m handrail.hidden_text > ui/src/hidden_text.ts`. Newline and tab are not in the table. Standard library only.
"""

import re
import sys
from bisect import bisect_right

CONTROL = "control character"
DIRECTION_MARK = "text direction mark"
DIRECTION_OVERRIDE = "text direction override"
INVISIBLE = "invisible character"
LINE_BREAK = "unusual line break"
NO_BREAK_SPACE = "no-break space"
SPACE = "unusual space"
SURROGATE = "half a character"
TAG = "invisible tag"
VARIATION = "variation selector"
ZERO_WIDTH = "zero-width character"

RANGES: tuple[tuple[int, int, str], ...] = (
    (0x00, 0x08, CONTROL),
    (0x0B, 0x1F, CONTROL),
    (0x7F, 0x9F, CONTROL),
    (0xA0, 0xA0, NO_BREAK_SPACE),
    (0xAD, 0xAD, "soft hyphen"),
    (0x034F, 0x034F, INVISIBLE),
    (0x061C, 0x061C, DIRECTION_MARK),
    (0x115F, 0x1160, INVISIBLE),
    (0x1680, 0x1680, SPACE),
    (0x17B4, 0x17B5, INVISIBLE),
    (0x180B, 0x180F, INVISIBLE),
    (0x2000, 0x200A, SPACE),
    (0x200B, 0x200D, ZERO_WIDTH),
    (0x200E, 0x200F, DIRECTION_MARK),
    (0x2028, 0x2029, LINE_BREAK),
    (0x202A, 0x202E, DIRECTION_OVERRIDE),
    (0x202F, 0x202F, SPACE),
    (0x205F, 0x205F, SPACE),
    (0x2060, 0x2064, ZERO_WIDTH),
    (0x2065, 0x2065, INVISIBLE),
    (0x2066, 0x2069, DIRECTION_OVERRIDE),
    (0x206A, 0x206F, INVISIBLE),
    (0x2800, 0x2800, INVISIBLE),
    (0x3000, 0x3000, SPACE),
    (0x3164, 0x3164, INVISIBLE),
    (0xD800, 0xDFFF, SURROGATE),
    (0xFE00, 0xFE0F, VARIATION),
    (0xFEFF, 0xFEFF, ZERO_WIDTH),
    (0xFFA0, 0xFFA0, INVISIBLE),
    (0xFFF0, 0xFFFB, INVISIBLE),
    (0x13430, 0x1345F, INVISIBLE),
    (0x1BCA0, 0x1BCA3, INVISIBLE),
    (0x1D173, 0x1D17A, INVISIBLE),
    (0xE0000, 0xE0FFF, TAG),
)
"""First and last code point, and a name for people; sorted, without overlaps."""

ESCAPES = {"\r": "\\r", "\b": "\\b", "\f": "\\f", "\v": "\\v", "\0": "\\0", "\x1b": "\\e"}
"""Short spellings; every other character is spelled `\\u{hex}`."""

EMOJI_STYLE = 0xFE0F
"""Variation selector 16. After a symbol it selects the emoji glyph, so text such as a warning sign is full of it."""
_EMOJI_BASES: tuple[tuple[int, int], ...] = (
    *((0xA9, 0xA9), (0xAE, 0xAE), (0x203C, 0x203C), (0x2049, 0x2049), (0x2122, 0x2122), (0x2139, 0x2139)),
    *((0x2190, 0x21FF), (0x2300, 0x23FF), (0x2460, 0x24FF), (0x25A0, 0x27BF), (0x2900, 0x297F)),
    *((0x2B00, 0x2BFF), (0x3030, 0x3030), (0x303D, 0x303D), (0x3297, 0x3297), (0x3299, 0x3299)),
    (0x1F000, 0x1FAFF),
)
"""Symbols after which EMOJI_STYLE is not escaped for display."""

_FIRSTS = [first for first, _, _ in RANGES]


def hidden_name(character: str) -> str:
    """Return the character's name in the table, or an empty string."""
    _, last, name = RANGES[bisect_right(_FIRSTS, ord(character)) - 1]
    return name if ord(character) <= last else ""


def spell_hidden(text: str) -> str:
    """The text with its hidden characters spelled out."""
    return HIDDEN.sub(lambda match: ESCAPES.get(match[0], f"\\u{{{ord(match[0]):x}}}"), text)


def _display_pattern(form: str) -> str:
    """Build the regular expression of characters escaped for display; `form` is the format of one code point."""

    def spans(ranges: list[tuple[int, int]]) -> str:
        return "".join(
            form.format(first) + (f"-{form.format(last)}" if last > first else "") for first, last in ranges
        )

    hidden = [(first, last - (last == EMOJI_STYLE)) for first, last, _ in RANGES]
    return f"[{spans(hidden)}]|(?<![{spans([*_EMOJI_BASES])}]){form.format(EMOJI_STYLE)}"


HIDDEN = re.compile(_display_pattern("\\U{:08x}"))
"""Matches each character of the table, but EMOJI_STYLE only where it does not follow a symbol."""


def typescript() -> str:
    """Generate the TypeScript module with the same tables."""
    pattern = _display_pattern("\\u{{{:x}}}")
    names = "".join(f'  [0x{first:04x}, 0x{last:04x}, "{name}"],\n' for first, last, name in RANGES)
    escapes = "".join(
        f'  "\\u{ord(character):04x}": "\\{escape}",\n' for character, escape in ESCAPES.items()
    )
    return (
        _HEADER
        + f"export const HIDDEN =\n  /{pattern}/gu;\n\n"
        + "/** First and last code point, and a name for people; sorted, without overlaps. */\n"
        + f"export const HIDDEN_NAMES: readonly (readonly [number, number, string])[] = [\n{names}];\n\n"
        + "/** Short spellings; every other character is spelled `\\u{hex}`. */\n"
        + f"export const ESCAPES: Readonly<Record<string, string>> = {{\n{escapes}}};\n"
    )


_HEADER = """/**
 * Table of characters that a reader cannot see, or that change how the text around them looks.
 *
 * Generated from src/handrail/hidden_text.py with `python -m handrail.hidden_text > ui/src/hidden_text.ts`. Do not edit.
 * Exports: HIDDEN (what display escapes), HIDDEN_NAMES (names by code point), ESCAPES (short spellings).
 */

/** Matches each character of the table, but U+FE0F only where it does not follow a symbol. */
"""

if __name__ == "__main__":
    sys.stdout.write(typescript())
