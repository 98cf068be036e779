"""Escape hidden characters in all text that is written to the terminal.

The table of these characters is `handrail.hidden_text`, which the page shares. Pure functions.
"""

from collections import Counter

from handrail.hidden_text import HIDDEN, SURROGATE, hidden_name, spell_hidden


def exact_text(text: str) -> str:
    """Escape hidden characters; keep newlines and tabs."""
    return spell_hidden(text)


def exact_line(text: str) -> str:
    """Escape hidden characters, newlines and tabs."""
    return escape_line_breaks(exact_text(text))


def escape_line_breaks(text: str) -> str:
    """Escape newlines and tabs only, so that agent text cannot start a line. `say` escapes the rest."""
    return text.replace("\n", "\\n").replace("\t", "\\t")


def hidden_warning(text: str) -> str | None:
    """A sentence that counts the hidden characters in the text; None if it has none."""
    kinds = Counter(hidden_name(found[0]) for found in HIDDEN.finditer(text))
    if not kinds:
        return None
    counts = ", ".join(_format_count(kind, count) for kind, count in kinds.items())
    return f"Contains hidden characters, shown escaped: {counts}."


def _format_count(kind: str, count: int) -> str:
    if count == 1:
        return f"1 {kind}"
    return f"{count} {'halves of characters' if kind == SURROGATE else f'{kind}s'}"
