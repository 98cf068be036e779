"""Finding lines of a tail by pattern.

Owns what a match is. It does not know who searches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio.to_thread

from handrail.terminal.buffer import read
from handrail.terminal.screen import plain

if TYPE_CHECKING:
    from handrail.terminal.tail import Tail


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One matching line."""

    line_number: int
    """Counted from the first line ever printed, those no longer kept included."""
    offset: int
    """Where the line begins in the tail."""
    text: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search found, oldest first."""

    matches: tuple[Match, ...]
    more: bool
    """There may be matches beyond these."""


class BadPattern(Exception):
    """The pattern is no regular expression, and why."""


async def search(
    tail: Tail,
    pattern: str,
    *,
    raw: bool = False,
    context: int = 0,
    max_results: int = 100,
    case_insensitive: bool = False,
) -> Found:
    """The lines that match, in Rust's regular expressions (as search_content)."""
    return await anyio.to_thread.run_sync(_search, tail, pattern, raw, context, max_results, case_insensitive)


def _search(
    tail: Tail, pattern: str, raw: bool, context: int, max_results: int, case_insensitive: bool
) -> Found:
    try:
        wanted = re.compile(pattern, re.IGNORECASE if case_insensitive else 0)
    except re.error as error:
        raise BadPattern(f"The pattern is not a regular expression: {error}.") from None
    reading = read(tail, mode="raw", limit=1 << 30)
    assert isinstance(reading.data, bytes)
    matches: list[Match] = []
    offset = reading.start
    lines = reading.data.split(b"\n")
    shown = [line.decode(errors="replace") if raw else plain(line) for line in lines]
    for number, line in enumerate(lines):
        if wanted.search(shown[number]):
            matches.append(
                Match(
                    line_number=reading.lines_dropped + number + 1,
                    offset=offset,
                    text=shown[number],
                    before=tuple(shown[max(0, number - context) : number]),
                    after=tuple(shown[number + 1 : number + 1 + context]),
                )
            )
        offset += len(line) + 1
    return Found(matches=tuple(matches[:max_results]), more=len(matches) > max_results)
