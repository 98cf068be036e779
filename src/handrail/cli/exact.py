"""Escape hidden characters in all text that is written to the terminal.

The table of these characters is hidden_text.py, which the page shares. Pure.
"""

from collections import Counter

from handrail.hidden_text import ESCAPES, HIDDEN, SURROGATE, hidden_name


def exact_text(text: str) -> str:
    """Any text, its lines and tabs kept."""
    return HIDDEN.sub(lambda found: _spelled(found[0]), text)


def exact_line(text: str) -> str:
    """Any text on one line."""
    return flat(exact_text(text))


def flat(text: str) -> str:
    """Text that must not begin a line of its own among ours; the rest of it is still to be spelled out."""
    return text.replace("\n", "\\n").replace("\t", "\\t")


def warning(text: str) -> str | None:
    """One sentence about what is hidden in the text, or none."""
    kinds = Counter(hidden_name(found[0]) for found in HIDDEN.finditer(text))
    if not kinds:
        return None
    told = ", ".join(_counted(kind, count) for kind, count in kinds.items())
    return f"Holds what the eye would miss, spelled out here: {told}."


def _spelled(character: str) -> str:
    return ESCAPES.get(character) or f"\\u{{{ord(character):x}}}"


def _counted(kind: str, count: int) -> str:
    if count == 1:
        return f"1 {kind}"
    return f"{count} {'halves of characters' if kind == SURROGATE else f'{kind}s'}"
