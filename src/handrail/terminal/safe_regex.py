"""Regular expressions that an agent or a person supplies.

Owns the dialect of all such patterns, the bounds on their cost, and every call into re2, which has no types. RE2's
time is linear in the text for any pattern, and it releases the GIL while it searches, so a search runs in a thread.
The searches that ripgrep does (ripgrep.py) share the dialect and the sentence for a bad pattern.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from handrail.terminal.thread_pool import Room

DIALECT = "RE2 / Rust regex syntax: no look-around, no backreferences"
"""For the descriptions of inputs."""
MOST_CHARACTERS = 1000
MOST_INSTRUCTIONS = 5000
"""Size of a compiled pattern. The worst case is proportional to it: seconds for a megabyte of text."""
MEMORY = 2 << 20
"""Bytes for a compiled pattern and the states it builds while it searches."""
THREADS = Room("regex", 4)
"""For searches in texts that may be large."""
_SHOWN = 60


class BadPattern(Exception):
    """The pattern cannot be used; the sentence gives the reason and the remedy."""


class Regex:
    """A compiled pattern. Its searches may run in any thread."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def search(self, text: bytes) -> tuple[int, int] | None:
        """Start and end of the first match in UTF-8 text, in bytes."""
        found = self._native.search(text)
        return None if found is None else found.span()


def compile_pattern(pattern: str, *, multiline: bool = False) -> Regex:
    """Compile within the bounds; with `multiline`, `^` and `$` match at each line. Raises BadPattern."""
    check_characters(pattern, MOST_CHARACTERS)
    library = _library()
    flags = "(?m)" if multiline else ""
    try:
        native = library.compile(flags + pattern, _options())
    except library.error as error:
        raise bad_pattern(pattern, error.args[0].decode(errors="replace").replace("(?m)", "")) from None
    finally:
        library.purge()  # its cache would keep every pattern's memory
    if native.programsize > MOST_INSTRUCTIONS:
        raise bad_pattern(pattern, "it is too large, use smaller repetition counts")
    return Regex(native)


def check_characters(pattern: str, most: int) -> None:
    """Raises BadPattern for a pattern that is too long, or holds a character that no text can hold."""
    if len(pattern) > most:
        raise BadPattern(
            f"The pattern has {len(pattern):,} characters, and {most:,} are possible. Shorten it."
        )
    if "\0" in pattern or any("\ud800" <= char <= "\udfff" for char in pattern):
        raise BadPattern(
            "The pattern holds a character that cannot be matched (NUL, or half of a surrogate pair). Remove it."
        )


def bad_pattern(pattern: str, why: str) -> BadPattern:
    """The error for a pattern that the engine refuses."""
    shown = pattern if len(pattern) <= _SHOWN else pattern[: _SHOWN - 1] + "…"
    return BadPattern(
        f"The pattern {shown} is not a regular expression that can be used here: {why.rstrip('.')}. The syntax is that "
        "of RE2 and Rust: look-around and backreferences are not supported, and a character that is meant literally "
        "needs a backslash. Rewrite the pattern."
    )


@cache
def _library() -> Any:
    return importlib.import_module("re2")


def _options() -> Any:
    options = _library().Options()
    options.max_mem = MEMORY
    options.never_capture = True
    options.log_errors = False
    return options
