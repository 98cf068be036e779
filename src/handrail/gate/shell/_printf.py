"""The arguments of printf that a shell calculates. In zsh, an expression can hold a command: `printf %d 'path[$(id)]'`."""

import re
from collections.abc import Iterator, Sequence

_CONVERSION = re.compile(r"%(%|[^a-zA-Z%]*[a-zA-Z]?)")
_TEXT = frozenset("sbqc")
"""Conversions that print their argument as it is."""
_NUMBER = re.compile(r"""[+-]?(0[xX][0-9a-fA-F]+|\d*\.?\d*)|["'].""", re.DOTALL)


def has_expressions(arguments: Sequence[str]) -> bool:
    """Whether an argument stands where a number is printed, and is none."""
    words = arguments[1:] if arguments and arguments[0] == "--" else arguments
    kinds = list(_kinds(words[0])) if words else []
    if not kinds:
        return False
    return any(
        not _NUMBER.fullmatch(word)
        for at, word in enumerate(words[1:])
        if kinds[at % len(kinds)] not in _TEXT
    )


def _kinds(format: str) -> Iterator[str]:
    """One letter for each argument that a format takes. A width that is an argument is a number too."""
    for found in _CONVERSION.finditer(format):
        text = found[1]
        if text != "%":
            yield from "*" * text.count("*")
            yield "d" if "$" in text else text[-1:]
