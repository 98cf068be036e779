"""The screen of a terminal as a person would see it now, made from its tail when somebody asks.

Owns the emulators that are kept for the terminals looked at last, and what is shown when there is none. It does not
know which bytes matter (feeding.py), nor what they mean (engine.py; for plain text, text.py).

All bytes are shown at the size that is asked for. A terminal that was resized shows its older lines as if it had
always had that size, wrapped anew; full-screen programs draw themselves again when they are resized.

The terminal emulator behind `screen.py`: bytes in, cells out.
"""

from __future__ import annotations

import importlib
import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from handrail.terminal.output.plain_text import plain
from handrail.terminal.output.screen_replay import ENOUGH, feeding, stretch

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
