"""Regular expressions from agents and people, run by RE2 within bounds.

Defines the dialect, the cost limits, and the error for a bad pattern; ripgrep searches share them. RE2 takes time
linear in the text for any pattern and releases the GIL, so searches run in threads. Only this module calls re2,
which has no types.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from handrail.terminal.thread_pool import ThreadPool

DIALECT = "RE2 / Rust regex syntax: no look-around, no backreferences"
"""For tool input descriptions."""
MOST_CHARACTERS = 1000
MOST_INSTRUCTIONS = 5000
"""Size of a compiled pattern. The worst case is proportional to it: seconds for a megabyte of text."""
MEMORY = 2 << 20
"""Bytes for a compiled pattern and the states it builds while it searches."""
REGEX_THREADS = ThreadPool("regex", 4)
"""Threads for searches in large texts."""
_SHOWN = 60


class BadPattern(Exception):
    """The pattern cannot be used; the message gives the reason and the remedy."""


class Regex:
    """A compiled pattern. Its searches may run in any thread."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def search(self, text: bytes) -> tuple[int, int] | None:
        """Start and end of the first match in UTF-8 text, in bytes."""
        match = self._native.search(text)
        return None if match is None else match.span()


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
        library.purge()  # otherwise its cache would keep every pattern in memory
    if native.programsize > MOST_INSTRUCTIONS:
        raise bad_pattern(pattern, "it is too large, use smaller repetition counts")
    return Regex(native)


def check_characters(pattern: str, most: int) -> None:
    """Raises BadPattern for a pattern that is too long or contains NUL or a surrogate."""
    if len(pattern) > most:
        raise BadPattern(
            f"The pattern has {len(pattern):,} characters, and {most:,} are possible. Shorten it."
        )
    if "\0" in pattern or any("\ud800" <= char <= "\udfff" for char in pattern):
        raise BadPattern(
            "The pattern holds a character that cannot be matched (NUL, or half of a surrogate pair). Remove it."
        )


def bad_pattern(pattern: str, why: str) -> BadPattern:
    """The error for a pattern that the engine rejects."""
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
