"""Render a terminal's current screen from its output, with a terminal emulator (libghostty-vt).

`Engine` wraps the emulator. `select_bytes` selects the bytes to replay: the end of the output, and before it the modes set
earlier (`TerminalState`). A few emulators are cached, for terminals that are rendered again. Without a usable emulator the
screen is made from plain text.

All output is rendered at the requested size. After a resize, older lines are wrapped to the new width; full-screen
programs redraw themselves.
"""

from __future__ import annotations

import importlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import field
from threading import Lock
from typing import TYPE_CHECKING, Any

from handrail.lazy_dataclass import dataclass
from handrail.terminal.output.plain_text import plain_text

if TYPE_CHECKING:
    from pathlib import Path

    from handrail.terminal.output.tail import Tail


_ALTERNATE = 1
_OFF = (
    ("KITTY_IMAGE_STORAGE_LIMIT", "uint64_t*"),  # zero disables images, and with them temporary files
    ("KITTY_IMAGE_MEDIUM_FILE", "bool*"),
    ("KITTY_IMAGE_MEDIUM_SHARED_MEM", "bool*"),
)
"""Output is untrusted: it must not make us store images, or read or delete the files it names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedScreen:
    """A rendered screen."""

    lines: tuple[str, ...]
    """One for each row, trailing blanks trimmed."""
    cursor: tuple[int, int]
    """Column and row, from zero."""
    alternate: bool
    """A full-screen program has the alternate screen."""
    application_keys: bool
    """The program has turned on application cursor keys (see `keys.encode`)."""
    bracketed_paste: bool
    title: str


class Engine:
    """One emulated terminal of fixed size. Not thread-safe."""

    def __init__(self, cols: int, rows: int) -> None:
        self._library: Any = importlib.import_module("pyghostty")
        self._native: Any = self._library.Terminal(cols, rows, scrollback=0)
        self._rows = rows
        for option, kind in _OFF:
            self._set(option, self._library.ffi.new(kind, 0))

    def feed(self, data: bytes) -> None:
        self._native.feed(data)

    def shown(self) -> RenderedScreen:
        lines = [line.rstrip() for line in str(self._native.text()).split("\n")][: self._rows]
        column, row = self._native.cursor
        return RenderedScreen(
            lines=(*lines, *[""] * (self._rows - len(lines))),
            cursor=(int(column), int(row)),
            alternate=int(self._native.get("active_screen", "GhosttyTerminalScreen")) == _ALTERNATE,
            application_keys=bool(self._native.mode(1)),
            bracketed_paste=bool(self._native.mode(2004)),
            title=self._title(),
        )

    def close(self) -> None:
        self._native.close()

    def _title(self) -> str:
        title = self._native.get("title", "GhosttyString")
        if not title.len:
            return ""
        text: str = self._library.ffi.buffer(title.ptr, title.len)[:].decode(errors="replace")
        return "".join(char for char in text if char.isprintable())

    def _set(self, option: str, value: Any) -> None:
        lib: Any = self._library.lib
        result = lib.ghostty_terminal_set(
            self._native._t[0],  # noqa: SLF001 - there is no public way to set an option
            getattr(lib, f"GHOSTTY_TERMINAL_OPT_{option}"),
            value,
        )
        if result:
            raise RuntimeError(f"The terminal emulator rejected {option}: {result}.")


__all__ = ["RenderedScreen", "plain_text", "render_screen"]

CELLS_MAX = 500
"""Upper bound for columns and for rows: an emulator's memory grows with both."""
_CACHED_MAX = 4
"""Cached emulators, a bound on memory; each holds one screen."""
_FALLBACK = 64 * 1024
_COSTLY_MAX = 1000
"""Terminals remembered as too slow to emulate, a bound on memory."""
SECONDS = 2.0
"""Time limit for the emulator per screen. Hostile output can take minutes; it is rendered from plain text."""
_PIECE = 4096
"""Bytes between two checks of the time limit: a few bytes can repeat a character sixty thousand times."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _CachedEngine:
    engine: Engine
    end: int
    """The output offset up to which it was fed."""


class _Costly(Exception):
    """The emulator exceeds the time limit on this output."""


class _EngineCache:
    """Thread-safe LRU cache of emulators. A thread removes an emulator while it uses it.

    Also remembers the terminals whose output was too slow to emulate, with its end at that time.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[tuple[Path, int, int], _CachedEngine] = OrderedDict()
        self._costly: OrderedDict[Path, int] = OrderedDict()

    def is_costly(self, folder: Path, end: int) -> bool:
        """Whether the bytes to feed still include output that was too slow."""
        with self._lock:
            return end < self._costly.get(folder, -ENOUGH) + ENOUGH

    def mark_costly(self, folder: Path, end: int) -> None:
        with self._lock:
            self._costly[folder] = end
            self._costly.move_to_end(folder)
            if len(self._costly) > _COSTLY_MAX:
                self._costly.popitem(last=False)

    def take(self, key: tuple[Path, int, int]) -> _CachedEngine | None:
        with self._lock:
            return self._kept.pop(key, None)

    def put(self, key: tuple[Path, int, int], kept: _CachedEngine) -> None:
        with self._lock:
            spare = [self._kept.pop(key)] if key in self._kept else []
            self._kept[key] = kept
            if len(self._kept) > _CACHED_MAX:
                spare.append(self._kept.popitem(last=False)[1])
        for old in spare:
            old.engine.close()


_cache = _EngineCache()


def render_screen(tail: Tail, cols: int, rows: int) -> RenderedScreen:
    """Render the current screen. Never raises. May take seconds: call it in a thread."""
    cols, rows = min(max(1, cols), CELLS_MAX), min(max(1, rows), CELLS_MAX)
    for again in (True, False):
        try:
            return _render(tail, cols, rows, again)
        except _Costly:
            break
        except Exception:
            _log.warning("A screen could not be rendered%s.", ", retrying" * again, exc_info=True)
    return _render_text(tail, cols, rows)


def _render(tail: Tail, cols: int, rows: int, may_go_on: bool) -> RenderedScreen:
    files = tail.files
    if not files:
        return RenderedScreen(
            lines=("",) * rows,
            cursor=(0, 0),
            alternate=False,
            application_keys=False,
            bracketed_paste=False,
            title="",
        )
    folder, end = files[0][1].parent, tail.end
    key = (folder, cols, rows)
    if _cache.is_costly(folder, end):
        raise _Costly
    kept = _cache.take(key)
    if kept is not None and not (may_go_on and files[0][0] <= kept.end <= end <= kept.end + ENOUGH):
        kept.engine.close()
        kept = None
    try:
        if kept is None:
            kept = _feed_engine(Engine(cols, rows), select_bytes(tail, cols, rows, end), end)
        else:
            kept = _feed_engine(kept.engine, read_chunks(tail, kept.end, end), end)
    except _Costly:
        _cache.mark_costly(folder, end)
        raise
    shown = kept.engine.shown()
    _cache.put(key, kept)
    return shown


def _feed_engine(engine: Engine, pieces: Iterable[bytes], end: int) -> _CachedEngine:
    try:
        for piece in _limit_time(pieces):
            engine.feed(piece)
    except BaseException:
        engine.close()
        raise
    return _CachedEngine(engine, end)


def _limit_time(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in smaller pieces. Raises _Costly when the time limit passes."""
    until = time.monotonic() + SECONDS
    for piece in pieces:
        for at in range(0, len(piece), _PIECE):
            yield piece[at : at + _PIECE]
            if time.monotonic() > until:
                raise _Costly


def _render_text(tail: Tail, cols: int, rows: int) -> RenderedScreen:
    """The fallback without an emulator: the last lines as plain text, wrapped."""
    end = tail.end
    text = plain_text(b"".join(read_chunks(tail, max(tail.first, end - _FALLBACK), end)))
    wrapped = [line[at : at + cols] for line in text.split("\n") for at in range(0, max(1, len(line)), cols)]
    lines = [line.rstrip() for line in wrapped[-rows:]]
    return RenderedScreen(
        lines=(*lines, *[""] * (rows - len(lines))),
        cursor=(min(cols - 1, len(lines[-1])), len(lines) - 1),
        alternate=False,
        application_keys=False,
        bracketed_paste=False,
        title="",
    )


RESTORED_MODES = (1, 6, 7, 25, 66, 1000, 1002, 1003, 1004, 1006, 2004)
"""Private modes that affect the screen or the input: cursor keys, origin, wrapping, bracketed paste …"""
ALTERNATE = frozenset((47, 1047, 1049))
LONGEST = 512
"""Bytes of the longest sequence that is recognized."""
_SETTING = re.compile(
    rb"\x1b(?:\[(?:\?([0-9;]{1,64})([hl])|([0-9]{0,5};[0-9]{0,5}|)r|(!p))|(c)|\]([02]);([^\x07\x1b]{0,400})[\x07\x1b])"
)


@dataclass(slots=True)
class TerminalState:
    """The terminal state that a range of output leaves: modes, scroll region, title, alternate screen."""

    modes: dict[int, bool] = field(default_factory=dict[int, bool])
    region: bytes = b""
    title: bytes = b""
    alternate_since: int | None = None
    """The offset of the sequence that turned the alternate screen on; None when it is off."""
    under: TerminalState | None = None
    """The state when the alternate screen was turned on."""

    def apply(self, data: bytes, offset: int) -> None:
        """Apply the sequences in `data`, which begins at `offset`."""
        for match in _SETTING.finditer(data):
            modes, turn, region, soft, hard, _, title = match.groups()
            if modes is not None:
                self._set(modes, turn == b"h", offset + match.start())
            elif region is not None:
                self.region = region
            elif title is not None:
                self.title = title
            elif hard is not None:
                self.modes, self.region, self.alternate_since = {}, b"", None
            elif soft is not None:
                self.modes, self.region = {}, b""

    def restore_sequence(self, rows: int) -> bytes:
        """Bytes that restore this state on a screen with `rows` rows, except for the alternate screen.

        The cursor goes to the last line of the scroll region, where a program that printed much output continues.
        """
        modes = b"".join(
            b"\x1b[?%d%b" % (mode, b"h" if on else b"l") for mode, on in sorted(self.modes.items())
        )
        region = b"\x1b[%br" % self.region if self.region else b""
        title = b"\x1b]2;%b\x07" % self.title if self.title else b""
        bottom = self.region.partition(b";")[2] or b"%d" % rows
        return modes + region + title + b"\x1b[%b;1H" % bottom

    def _set(self, modes: bytes, on: bool, offset: int) -> None:
        for mode in (int(number) for number in modes.split(b";") if number and len(number) < 6):
            if mode in ALTERNATE:
                if not on:
                    self.alternate_since = None
                elif self.alternate_since is None:
                    self.alternate_since = offset
                    self.under = TerminalState(dict(self.modes), self.region, self.title)
            elif mode in RESTORED_MODES:
                self.modes[mode] = on


ENOUGH = 1 << 20
"""Bytes at the end that redraw every row of an ordinary screen: a thousand lines of a thousand cells."""
FULL_SCREEN = 16 << 20
"""Bytes replayed for a full-screen program, whose screen may still show text that it drew long ago."""
_UNDER = 64 * 1024
"""Bytes replayed from before a full-screen program started: they restore the screen under it."""
_STEP = 1 << 18


def select_bytes(tail: Tail, cols: int, rows: int, end: int) -> Iterator[bytes]:
    """The bytes to feed to a new emulator of this size."""
    first = tail.first
    start = _line_start(tail, max(first, end - max(ENOUGH, 4 * cols * rows)), first)
    if start == first:
        yield from read_chunks(tail, first, end)
        return
    before = TerminalState()
    _scan_state(tail, first, start, before)
    since = before.alternate_since
    if since is None or before.under is None:
        yield before.restore_sequence(rows)
        yield from read_chunks(tail, start, end)
        return
    begin = _line_start(tail, max(first, since - _UNDER), first)
    if begin:
        yield before.under.restore_sequence(rows)
    if end - since <= FULL_SCREEN:
        yield from read_chunks(tail, begin, end)
    else:
        yield from read_chunks(tail, begin, since)
        yield b"\x1b[?1049h" + before.restore_sequence(rows)
        yield from read_chunks(tail, start, end)


def read_chunks(tail: Tail, start: int, end: int) -> Iterator[bytes]:
    """The bytes between two offsets, in chunks, as far as they are kept."""
    while start < end:
        data, following = tail.read(start, min(_STEP, end - start))
        if not data:
            return
        yield data[: max(0, end - (following - len(data)))]
        start = following


def _scan_state(tail: Tail, start: int, end: int, before: TerminalState) -> None:
    rest = b""
    for data in read_chunks(tail, start, end):
        before.apply(rest + data, start - len(rest))
        start += len(data)
        cut = data.rfind(b"\x1b", max(0, len(data) - LONGEST))
        rest = data[cut:] if cut >= 0 else b""  # a sequence may be cut off; reading one twice is harmless


def _line_start(tail: Tail, at: int, first: int) -> int:
    """The offset of the first line start at or after `at`; `at` itself if no line starts nearby."""
    if at <= first:
        return first
    data, following = tail.read(at - 1, _STEP)
    newline = data.find(b"\n")
    return following - len(data) + newline + 1 if newline >= 0 else at
