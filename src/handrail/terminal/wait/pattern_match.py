"""Watching output for a pattern.

Owns the text in which a match may lie. It does not know whose output it is, nor who waits.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from handrail.terminal.output.plain_text import Paper
from handrail.terminal.safe_regex import THREADS, BadPattern, Regex, compile_pattern

if TYPE_CHECKING:
    from collections.abc import Generator


SECONDS = 10.0
"""How long one piece of output may be looked at."""
WINDOW = 256 * 1024
"""Characters in which a match must lie: it may span lines, but not any number of them."""
SHOWN = 1000
"""Characters of a match in the answer."""
MOST = 64
"""Patterns watched for at the same time: each holds a window and its compiled pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A match."""

    text: str
    line: str
    """The line in which the match begins."""


class Matcher:
    """Takes output piece by piece and searches the end of the text so far."""

    def __init__(self, regex: Regex) -> None:
        self._regex = regex
        self._raw = b""
        self._settled = ""
        self._paper = Paper()

    @property
    def held(self) -> int:
        """Characters and bytes kept for the next search."""
        return len(self._raw) + len(self._settled) + len(self._paper.rest)

    async def see(self, data: bytes) -> Hit | None:
        """Add output; returns the first match, if there is one. Raises BadPattern when the search takes too long."""
        with anyio.move_on_after(SECONDS):
            return await THREADS.run(self._see, data, abandon=True)
        raise BadPattern(f"Matching took longer than {SECONDS:g} s and was given up. Use a simpler pattern.")

    def _see(self, data: bytes) -> Hit | None:
        text = self._add(data).encode()
        span = self._regex.search(text)
        return None if span is None else _hit(text, *span)

    def _add(self, data: bytes) -> str:
        """The end of the text as it stands now."""
        self._raw = (self._raw + data)[-WINDOW:]
        self._settled += self._paper.feed(data)
        if len(self._paper.rest) > WINDOW:  # a line without end, of which the paper would keep everything
            self._paper = Paper()
            self._settled = self._paper.feed(self._raw)
        self._settled = _window(self._settled)
        return _window(self._settled + self._paper.rest)


@contextmanager
def matching(pattern: str) -> Generator[Matcher]:
    """A matcher for as long as it is needed. Raises BadPattern, also when there are too many."""
    if len(_under_way) >= MOST:
        raise BadPattern(
            f"{MOST} patterns are waited for already. Wait for one of them to be found, then ask again."
        )
    matcher = Matcher(compile_pattern(pattern, multiline=True))
    _under_way.add(matcher)
    try:
        yield matcher
    finally:
        _under_way.discard(matcher)


_under_way: set[Matcher] = set()


def _window(text: str) -> str:
    """The end of a long text, from the beginning of a line on if there is one."""
    if len(text) <= WINDOW:
        return text
    kept = text[-WINDOW:]
    return kept[kept.find("\n") + 1 :]


def _hit(text: bytes, start: int, end: int) -> Hit:
    line = text[text.rfind(b"\n", 0, start) + 1 :].partition(b"\n")[0]
    return Hit(text=_shown(text[start:end]), line=_shown(line))


def _shown(text: bytes) -> str:
    return text[: 4 * SHOWN].decode(errors="ignore")[:SHOWN]
