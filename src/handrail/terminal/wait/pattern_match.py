"""Match a regular expression against output as it arrives.

`Matcher` keeps a bounded window of plain text. Does not read the output itself.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

from handrail.lazy_dataclass import dataclass
from handrail.terminal.output.plain_text import PlainTextStream
from handrail.terminal.safe_regex import REGEX_THREADS, BadPattern, Regex, compile_pattern

if TYPE_CHECKING:
    from collections.abc import Generator


SECONDS = 10.0
"""Time limit for the search in one chunk of output."""
WINDOW = 256 * 1024
"""Characters in which a match must lie: bounds memory, so a match cannot span any number of lines."""
SHOWN = 1000
"""Characters of a match in the answer."""
MATCHERS_MAX = 64
"""Concurrent matchers, a bound on memory: each holds a window and a compiled pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A match, cut to `SHOWN` characters."""

    text: str
    line: str
    """The line in which the match begins."""


class Matcher:
    """Takes output in chunks and searches the last `WINDOW` characters of its text."""

    def __init__(self, regex: Regex) -> None:
        self._regex = regex
        self._raw = b""
        self._settled = ""
        self._stream = PlainTextStream()

    @property
    def held(self) -> int:
        """Characters and bytes kept for the next search."""
        return len(self._raw) + len(self._settled) + len(self._stream.rest)

    async def see(self, data: bytes) -> Hit | None:
        """Add output and return the first match, if any. Raises BadPattern when the search takes too long."""
        with anyio.move_on_after(SECONDS):
            return await REGEX_THREADS.run(self._add_and_search, data, abandon=True)
        raise BadPattern(f"Matching took longer than {SECONDS:g} s and was stopped. Use a simpler pattern.")

    def _add_and_search(self, data: bytes) -> Hit | None:
        text = self._add(data).encode()
        span = self._regex.search(text)
        return None if span is None else _build_hit(text, *span)

    def _add(self, data: bytes) -> str:
        """Add output and return the current window."""
        self._raw = (self._raw + data)[-WINDOW:]
        self._settled += self._stream.feed(data)
        if len(self._stream.rest) > WINDOW:  # an endless line, which `PlainTextStream` would keep whole
            self._stream = PlainTextStream()
            self._settled = self._stream.feed(self._raw)
        self._settled = _cut_to_window(self._settled)
        return _cut_to_window(self._settled + self._stream.rest)


@contextmanager
def open_matcher(pattern: str) -> Generator[Matcher]:
    """Context manager for a matcher. Raises BadPattern for a bad pattern or too many concurrent matchers."""
    if len(_active) >= MATCHERS_MAX:
        raise BadPattern(
            f"{MATCHERS_MAX} patterns are waited for already. Wait for one of them to be found, then ask again."
        )
    matcher = Matcher(compile_pattern(pattern, multiline=True))
    _active.add(matcher)
    try:
        yield matcher
    finally:
        _active.discard(matcher)


_active: set[Matcher] = set()


def _cut_to_window(text: str) -> str:
    """The last `WINDOW` characters, cut at the start of a line if possible."""
    if len(text) <= WINDOW:
        return text
    end = text[-WINDOW:]
    return end[end.find("\n") + 1 :]


def _build_hit(text: bytes, start: int, end: int) -> Hit:
    line = text[text.rfind(b"\n", 0, start) + 1 :].partition(b"\n")[0]
    return Hit(text=_shorten(text[start:end]), line=_shorten(line))


def _shorten(text: bytes) -> str:
    return text[: 4 * SHOWN].decode(errors="ignore")[:SHOWN]
