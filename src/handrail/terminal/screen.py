"""The screen of a terminal as a person would see it now, made from its tail when somebody asks.

Owns the emulators that are kept for the terminals looked at last, and what is shown when there is none. It does not
know which bytes matter (feeding.py), nor what they mean (engine.py; for plain text, text.py).

All bytes are shown at the size that is asked for. A terminal that was resized shows its older lines as if it had
always had that size, wrapped anew; full-screen programs draw themselves again when they are resized.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from handrail.terminal.engine import Engine, Shown
from handrail.terminal.feeding import ENOUGH, feeding, stretch
from handrail.terminal.text import plain

if TYPE_CHECKING:
    from pathlib import Path

    from handrail.terminal.tail import Tail

__all__ = ["Shown", "plain", "render"]

MOST = 500
"""Columns and rows; an emulator's memory grows with both."""
_KEEP = 4
"""Emulators kept for who looks again; each holds one screen."""
_FALLBACK = 64 * 1024

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Kept:
    engine: Engine
    end: int
    """It has seen all output up to here."""


class _Shelf:
    """A few emulators, each taken off while one thread uses it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[tuple[Path, int, int], _Kept] = OrderedDict()

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
    key, end = (files[0][1].parent, cols, rows), tail.end
    kept = _shelf.take(key)
    if kept is not None and not (may_go_on and files[0][0] <= kept.end <= end <= kept.end + ENOUGH):
        kept.engine.close()
        kept = None
    if kept is None:
        kept = _fed(Engine(cols, rows), feeding(tail, cols, rows, end), end)
    else:
        kept = _fed(kept.engine, stretch(tail, kept.end, end), end)
    shown = kept.engine.shown()
    _shelf.put(key, kept)
    return shown


def _fed(engine: Engine, pieces: Iterable[bytes], end: int) -> _Kept:
    try:
        for piece in pieces:
            engine.feed(piece)
    except BaseException:
        engine.close()
        raise
    return _Kept(engine, end)


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
