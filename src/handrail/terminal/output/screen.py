"""The screen of a terminal as a person would see it now, made from its tail when somebody asks.

Owns the emulators that are kept for the terminals looked at last, and what is shown when there is none. It does not
know which bytes matter (feeding.py), nor what they mean (engine.py; for plain text, text.py).

All bytes are shown at the size that is asked for. A terminal that was resized shows its older lines as if it had
always had that size, wrapped anew; full-screen programs draw themselves again when they are resized.

The terminal emulator behind `screen.py`: bytes in, cells out.

Which bytes of a tail show its screen: the last stretch, and what must come before it.
"""

from __future__ import annotations

import importlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

from handrail.terminal.output.plain_text import plain

if TYPE_CHECKING:
    from pathlib import Path

    from handrail.terminal.output.tail import Tail


_ALTERNATE = 1
_OFF = (
    ("KITTY_IMAGE_STORAGE_LIMIT", "uint64_t*"),  # none at all, which also turns temporary files off
    ("KITTY_IMAGE_MEDIUM_FILE", "bool*"),
    ("KITTY_IMAGE_MEDIUM_SHARED_MEM", "bool*"),
)
"""Output is not trusted: it may not make us keep pictures, nor read or delete the files it names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A terminal as a person would see it."""

    lines: tuple[str, ...]
    """One for each row, trailing blanks trimmed."""
    cursor: tuple[int, int]
    """Column and row, from zero."""
    alternate: bool
    """A full-screen program has the alternate screen."""
    application_keys: bool
    """It wants application cursor keys (`keys.encode`)."""
    bracketed_paste: bool
    title: str


class Engine:
    """One emulated terminal, of one size. Not for two threads at once."""

    def __init__(self, cols: int, rows: int) -> None:
        self._library: Any = importlib.import_module("pyghostty")
        self._native: Any = self._library.Terminal(cols, rows, scrollback=0)
        self._rows = rows
        for option, kind in _OFF:
            self._set(option, self._library.ffi.new(kind, 0))

    def feed(self, data: bytes) -> None:
        self._native.feed(data)

    def shown(self) -> Shown:
        lines = [line.rstrip() for line in str(self._native.text()).split("\n")][: self._rows]
        column, row = self._native.cursor
        return Shown(
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
            self._native._t[0],  # noqa: SLF001 - it has no other way to say this
            getattr(lib, f"GHOSTTY_TERMINAL_OPT_{option}"),
            value,
        )
        if result:
            raise RuntimeError(f"The terminal emulator refuses {option}: {result}.")


__all__ = ["Shown", "plain", "render"]

MOST = 500
"""Columns and rows; an emulator's memory grows with both."""
_KEEP = 4
"""Emulators kept for who looks again; each holds one screen."""
_FALLBACK = 64 * 1024
_SHUNNED = 1000
"""Terminals remembered whose output takes too long."""
SECONDS = 2.0
"""For the emulator to take what shows one screen. Output can be made that takes it minutes: it is shown as text."""
_PIECE = 4096
"""Bytes fed between two looks at the clock: a few of them can repeat a character sixty thousand times."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Kept:
    engine: Engine
    end: int
    """It has seen all output up to here."""


class _Costly(Exception):
    """The emulator takes too long over this output."""


class _Shelf:
    """A few emulators, each taken off while one thread uses it; and whose output took too long, up to where."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[tuple[Path, int, int], _Kept] = OrderedDict()
        self._costly: OrderedDict[Path, int] = OrderedDict()

    def is_costly(self, folder: Path, end: int) -> bool:
        """What took too long would still be fed."""
        with self._lock:
            return end < self._costly.get(folder, -ENOUGH) + ENOUGH

    def shun(self, folder: Path, end: int) -> None:
        with self._lock:
            self._costly[folder] = end
            self._costly.move_to_end(folder)
            if len(self._costly) > _SHUNNED:
                self._costly.popitem(last=False)

    def take(self, key: tuple[Path, int, int]) -> _Kept | None:
        with self._lock:
            return self._kept.pop(key, None)

    def put(self, key: tuple[Path, int, int], kept: _Kept) -> None:
        with self._lock:
            spare = [self._kept.pop(key)] if key in self._kept else []
            self._kept[key] = kept
            if len(self._kept) > _KEEP:
                spare.append(self._kept.popitem(last=False)[1])
        for old in spare:
            old.engine.close()


_shelf = _Shelf()


def render(tail: Tail, cols: int, rows: int) -> Shown:
    """The screen as it stands now. Never raises. Takes up to a second: call it in a thread."""
    cols, rows = min(max(1, cols), MOST), min(max(1, rows), MOST)
    for again in (True, False):
        try:
            return _render(tail, cols, rows, again)
        except _Costly:
            break
        except Exception:
            _log.warning("A screen could not be shown%s.", ", trying anew" * again, exc_info=True)
    return _from_text(tail, cols, rows)


def _render(tail: Tail, cols: int, rows: int, may_go_on: bool) -> Shown:
    files = tail.files
    if not files:
        return Shown(
            lines=("",) * rows,
            cursor=(0, 0),
            alternate=False,
            application_keys=False,
            bracketed_paste=False,
            title="",
        )
    folder, end = files[0][1].parent, tail.end
    key = (folder, cols, rows)
    if _shelf.is_costly(folder, end):
        raise _Costly
    kept = _shelf.take(key)
    if kept is not None and not (may_go_on and files[0][0] <= kept.end <= end <= kept.end + ENOUGH):
        kept.engine.close()
        kept = None
    try:
        if kept is None:
            kept = _fed(Engine(cols, rows), feeding(tail, cols, rows, end), end)
        else:
            kept = _fed(kept.engine, stretch(tail, kept.end, end), end)
    except _Costly:
        _shelf.shun(folder, end)
        raise
    shown = kept.engine.shown()
    _shelf.put(key, kept)
    return shown


def _fed(engine: Engine, pieces: Iterable[bytes], end: int) -> _Kept:
    try:
        for piece in _in_time(pieces):
            engine.feed(piece)
    except BaseException:
        engine.close()
        raise
    return _Kept(engine, end)


def _in_time(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same in small pieces, as long as there is time. Raises _Costly."""
    until = time.monotonic() + SECONDS
    for piece in pieces:
        for at in range(0, len(piece), _PIECE):
            yield piece[at : at + _PIECE]
            if time.monotonic() > until:
                raise _Costly


def _from_text(tail: Tail, cols: int, rows: int) -> Shown:
    """The last lines as text, wrapped: what can be shown without an emulator."""
    end = tail.end
    text = plain(b"".join(stretch(tail, max(tail.first, end - _FALLBACK), end)))
    wrapped = [line[at : at + cols] for line in text.split("\n") for at in range(0, max(1, len(line)), cols)]
    lines = [line.rstrip() for line in wrapped[-rows:]]
    return Shown(
        lines=(*lines, *[""] * (rows - len(lines))),
        cursor=(min(cols - 1, len(lines[-1])), len(lines) - 1),
        alternate=False,
        application_keys=False,
        bracketed_paste=False,
        title="",
    )


KEPT = (1, 6, 7, 25, 66, 1000, 1002, 1003, 1004, 1006, 2004)
"""Private modes that matter to what is shown or typed: cursor keys, origin, wrapping, pasting …"""
ALTERNATE = frozenset((47, 1047, 1049))
LONGEST = 512
"""Bytes of the longest sequence looked for."""
_SETTING = re.compile(
    rb"\x1b(?:\[(?:\?([0-9;]{1,64})([hl])|([0-9]{0,5};[0-9]{0,5}|)r|(!p))|(c)|\]([02]);([^\x07\x1b]{0,400})[\x07\x1b])"
)


@dataclass(slots=True)
class Before:
    """The state after a stretch of output, as far as it was set in it."""

    modes: dict[int, bool] = field(default_factory=dict[int, bool])
    region: bytes = b""
    title: bytes = b""
    alternate_since: int | None = None
    """Where the sequence stands that turned the alternate screen on; None when it is off."""
    under: Before | None = None
    """The state when it was turned on."""

    def take(self, data: bytes, offset: int) -> None:
        """Read a stretch that begins at `offset`."""
        for found in _SETTING.finditer(data):
            modes, turn, region, soft, hard, _, title = found.groups()
            if modes is not None:
                self._set(modes, turn == b"h", offset + found.start())
            elif region is not None:
                self.region = region
            elif title is not None:
                self.title = title
            elif hard is not None:
                self.modes, self.region, self.alternate_since = {}, b"", None
            elif soft is not None:
                self.modes, self.region = {}, b""

    def again(self, rows: int) -> bytes:
        """Bytes that set the same on a screen of so many rows, but for the alternate screen.

        The cursor goes to the last line that scrolls, where a program that has printed much writes on.
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
                    self.under = Before(dict(self.modes), self.region, self.title)
            elif mode in KEPT:
                self.modes[mode] = on


ENOUGH = 1 << 20
"""Bytes at the end that surely show every row of an ordinary screen anew: a thousand lines of a thousand cells."""
FULL_SCREEN = 16 << 20
"""As many are fed of a full-screen program, which may have drawn something long ago that still stands."""
_UNDER = 64 * 1024
"""Bytes before a full-screen program began: what it will uncover when it ends."""
_STEP = 1 << 18


def feeding(tail: Tail, cols: int, rows: int, end: int) -> Iterator[bytes]:
    """Bytes for an emulator of this size that has seen nothing yet."""
    first = tail.first
    start = _line_start(tail, max(first, end - max(ENOUGH, 4 * cols * rows)), first)
    if start == first:
        yield from stretch(tail, first, end)
        return
    before = Before()
    _look(tail, first, start, before)
    since = before.alternate_since
    if since is None or before.under is None:
        yield before.again(rows)
        yield from stretch(tail, start, end)
        return
    begin = _line_start(tail, max(first, since - _UNDER), first)
    if begin:
        yield before.under.again(rows)
    if end - since <= FULL_SCREEN:
        yield from stretch(tail, begin, end)
    else:
        yield from stretch(tail, begin, since)
        yield b"\x1b[?1049h" + before.again(rows)
        yield from stretch(tail, start, end)


def stretch(tail: Tail, start: int, end: int) -> Iterator[bytes]:
    """The bytes between two offsets, as far as they are kept."""
    while start < end:
        data, following = tail.read(start, min(_STEP, end - start))
        if not data:
            return
        yield data[: max(0, end - (following - len(data)))]
        start = following


def _look(tail: Tail, start: int, end: int, before: Before) -> None:
    rest = b""
    for data in stretch(tail, start, end):
        before.take(rest + data, start - len(rest))
        start += len(data)
        cut = data.rfind(b"\x1b", max(0, len(data) - LONGEST))
        rest = data[cut:] if cut >= 0 else b""  # a sequence may be cut off; to read one twice does no harm


def _line_start(tail: Tail, at: int, first: int) -> int:
    """The first line that begins at or after `at`, unless it is far."""
    if at <= first:
        return first
    data, following = tail.read(at - 1, _STEP)
    found = data.find(b"\n")
    return following - len(data) + found + 1 if found >= 0 else at
