"""TypingHistory history of terminals: entries made from people's keystrokes and from agents' input.

Guarantee: **the history holds only text that the terminal showed.** A person's line is recorded with its text only if
that text is then found in the output. Input that the terminal hid (echo off in canonical mode) is never buffered. Each
input of an agent is one entry; its text is already in the call. Does not write the journal.

Each input takes at most about a millisecond to process, and lines that arrive in one burst become one entry, so a
pasted or piped file neither blocks the loop nor fills the journal. Only the oldest entry is searched for in the output,
in a thread.

A person who types into an agent's terminal has control of it; this module ends that control some seconds after the
last key.
"""

from __future__ import annotations

import math
import re
import time
from collections import deque
from dataclasses import field
from itertools import groupby
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from handrail.lazy_dataclass import dataclass
from handrail.terminal.input.keys import BACKSPACE, ENTER, Key, Keystrokes, Skipped, Text, readable
from handrail.terminal.output import screen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from handrail.terminal.output.tail import Tail
    from handrail.terminal.terminal import InputSender, Terminal

    Record = Callable[[Terminal, str, bool, str | None, int], None]


JOIN = 0.25
"""Lines that end less than this many seconds apart were not typed by hand: they become one entry."""
BURST_SECONDS = 10.0
"""Longest duration of one entry: a stream of lines without a pause is recorded in parts."""
ECHO_AFTER = (JOIN, 0.4, 1.0, 2.5)
"""Seconds after an entry's end at which the output is searched for its echo. Not found by the last, it was hidden."""
LINES_MAX = 20
TEXT_MAX = 4000
"""Upper bounds for the lines and characters of one entry."""


@dataclass(slots=True, kw_only=True)
class Entry:
    """One entry of the history: either settled, or lines to search for in the output at the times in `due`."""

    by: str
    person: bool
    offset: int
    text: str | None = None
    """The text to record once it is settled; None when the terminal did not show it."""
    lines: list[str] = field(default_factory=list[str])
    more: int = 0
    """Lines counted but not kept; pieces, if keys are among them."""
    due: deque[float] = field(default_factory=deque[float])
    begun: float = 0.0
    last: float = 0.0
    is_open: bool = False
    """Its last line is complete: input that follows within `JOIN` may be merged into it."""
    merges_all: bool = False
    """A burst: all further input, including keys, is merged until there is a pause."""

    @property
    def is_settled(self) -> bool:
        return not self.due

    def can_merge(self, other: Entry, crowded: bool) -> bool:
        """Whether `other` belongs to the same burst."""
        if not (self.person and other.person and self.by == other.by):
            return False
        if other.last - self.last > JOIN or other.last - self.begun > BURST_SECONDS:
            return False
        return self.merges_all or crowded or (self.is_open and not (other.is_settled or self.is_settled))

    def merge(self, other: Entry) -> None:
        """Merge `other`: keep the lines that fit, and count the rest."""
        self.merges_all |= other.is_settled or self.is_settled
        for line in other.lines:
            if self.more or self.merges_all or not self._has_room(line):
                self.more += 1
            else:
                self.lines.append(line)
        self.more += other.more or (not other.lines)
        self.last, self.is_open = other.last, other.is_open
        self.schedule(other.last)

    def schedule(self, now: float) -> None:
        """Schedule the searches for its echo, after any input that may still be merged."""
        self.due = deque(now + after for after in ECHO_AFTER)

    def resolve(self, shown: int, now: float) -> None:
        """Settle if all lines were echoed, or with the echoed ones after the last search. `shown` counts the echoed
        lines."""
        while self.due and self.due[0] <= now:
            self.due.popleft()
        if shown == len(self.lines) or not self.due:
            self.due.clear()
            text = "\n".join(self.lines[:shown]) if self.lines else self.text
            self.more += len(self.lines) - shown
            self.text = (
                append_count(text, self.more, "piece" if self.merges_all else "line") if text else None
            )
            self.lines = []

    def give_up(self) -> None:
        """Settle without text."""
        self.text, self.lines = None, []
        self.due.clear()

    def _has_room(self, line: str) -> bool:
        return len(self.lines) < LINES_MAX and sum(map(len, self.lines)) + len(line) <= TEXT_MAX


def line_entry(by: str, offset: int, text: str | None, more: int, now: float, *, ended: bool) -> Entry:
    """The entry for lines typed by a person; without `text` it only counts lines."""
    lines = [] if text is None else text.split("\n")
    entry = Entry(by=by, person=True, offset=offset, begun=now, last=now, is_open=ended)
    entry.lines, entry.more = lines[:LINES_MAX], more + len(lines[LINES_MAX:])
    entry.schedule(now)
    return entry


def key_entry(by: str, offset: int, names: list[str], more: int, now: float) -> Entry:
    """The entry for keys, in order; repeated keys are counted (`<up> x3`)."""
    runs = [(name, len(list(same))) for name, same in groupby(names)]
    text = " ".join(name if times == 1 else f"{name} x{times}" for name, times in runs)
    text = append_count(text, more, "key", " ")
    return Entry(by=by, person=True, offset=offset, text=text, begun=now, last=now)


def agent_entry(by: str, offset: int, data: bytes) -> Entry:
    """The entry for one input of an agent."""
    text, more = readable(data)
    more += text[TEXT_MAX:].count("\n")
    return Entry(by=by, person=False, offset=offset, text=append_count(text[:TEXT_MAX], more, "line"))


def append_count(text: str, more: int, what: str, between: str = "\n") -> str:
    """Append the number of omitted items to a text."""
    return f"{text}{between}… and {more:,} more {what}{'s' * (more != 1)}" if more else text


KEYS_MAX = 64
"""Upper bound for the keys of one entry; further keys are only counted."""


@dataclass(slots=True)
class Draft:
    """The unfinished input of one person. At most one of `text`, `keys` and `hidden` is set."""

    by: str
    continues_last: Callable[[Entry], bool]
    """Whether an entry would merge into the last one: an empty line is recorded only as part of a burst."""
    strokes: Keystrokes = field(default_factory=Keystrokes)
    offset: int = 0
    text: str = ""
    keys: list[str] = field(default_factory=list[str])
    more: int = 0
    """Lines of the text, or keys, beyond the limit."""
    hidden: bool = False
    at: float = 0.0
    """Time of the last key, in monotonic seconds."""

    @property
    def is_empty(self) -> bool:
        return not (self.text or self.keys or self.hidden)

    def hide(self, offset: int, now: float) -> Iterator[Entry]:
        """Process input that the terminal hid."""
        self.at = now
        if not self.hidden:
            yield from self.close(now)
            self.hidden, self.offset = True, offset
        self.strokes = Keystrokes()  # drop any partial sequence: hidden input is never buffered

    def feed(self, data: bytes, offset: int, now: float) -> Iterator[Entry]:
        """Process input; yields the entries that it completes."""
        self.at = now
        for piece in self.strokes.feed(data):
            if self._ends_with(piece):
                yield from self.close(now)
            if self.is_empty:
                self.offset = offset
            if isinstance(piece, Skipped):
                yield from self._count_skipped(piece, offset, now)
            elif isinstance(piece, Text):
                self._add_text(piece.text)
            elif piece.name == BACKSPACE and self.text:
                self.text = self.text[:-1]
            elif piece.name == ENTER and self._is_line(now):
                yield self._finish_line(now, ended=True)
            else:
                self._add_key(piece.name)

    def close(self, now: float) -> Iterator[Entry]:
        """Yield the unfinished input as an entry."""
        if self.text:
            yield self._finish_line(now, ended=False)
        elif self.keys:
            keys, more, self.keys, self.more = self.keys, self.more, [], 0
            yield key_entry(self.by, self.offset, keys, more, now)
        elif self.hidden:
            self.hidden = False
            yield Entry(by=self.by, person=True, offset=self.offset, begun=now, last=now)

    def _ends_with(self, piece: Text | Key | Skipped) -> bool:
        """Whether `piece` starts a new entry."""
        if isinstance(piece, Key):
            return self.hidden or (bool(self.text) and piece.name not in (BACKSPACE, ENTER))
        return self.hidden or (isinstance(piece, Text) and bool(self.keys))

    def _count_skipped(self, skipped: Skipped, offset: int, now: float) -> Iterator[Entry]:
        """Count the rest of a flood without recording its text."""
        if self.keys and not skipped.lines:
            self.more += skipped.size
            return
        more = max(1, skipped.lines)
        if self.text:
            more = skipped.lines - 1  # the first line end completes the current line
            yield self._finish_line(now, ended=True)
        yield from self.close(now)
        if more > 0:
            yield line_entry(self.by, offset, None, more, now, ended=True)

    def _is_line(self, now: float) -> bool:
        empty = line_entry(self.by, self.offset, "", 0, now, ended=True)
        return bool(self.text) or (self.is_empty and self.continues_last(empty))

    def _finish_line(self, now: float, *, ended: bool) -> Entry:
        text, more, self.text, self.more = self.text, self.more, "", 0
        return line_entry(self.by, self.offset, text, more, now, ended=ended)

    def _add_text(self, text: str) -> None:
        room = TEXT_MAX - len(self.text)
        self.text += text[:room]
        self.more += text.count("\n", room)

    def _add_key(self, name: str) -> None:
        if len(self.keys) < KEYS_MAX:
            self.keys.append(name)
        else:
            self.more += 1


ECHO_BYTES = 64 * 1024
"""Output searched for one entry: bounds the work, and false matches far behind the input."""
SURE_LENGTH = 4
"""A shorter text may be in any output by chance, so it counts as echo only at the start."""
_SPACE = re.compile(r"\s+")


def shown(lines: Sequence[str], data: bytes) -> int:
    """How many of the lines, counted from the first, are in `data`, the output since the typing began."""
    texts = [_SPACE.sub("", line) for line in lines]
    if not any(texts):
        return 0
    count = _count_in_order(texts, screen.plain_text(data))
    if count < len(texts) and b"\r" in data:
        count = max(count, _count_in_order(texts, screen.plain_text(data.replace(b"\r", b""))))
    return count if any(texts[:count]) else 0


def read_output_after(tail: Tail, after: int) -> bytes:
    """The output from `after` on, at most `ECHO_BYTES`, across two segments."""
    data, following = tail.read(after, ECHO_BYTES)
    return data + tail.read(following, ECHO_BYTES - len(data))[0] if data else b""


def _count_in_order(texts: list[str], plain: str) -> int:
    """How many texts occur in order. A short text counts only right behind the one before, or at the start."""
    flat, at = _SPACE.sub("", plain), 0
    for count, text in enumerate(texts):
        begin = at if flat.startswith(text, at) else -1
        if begin < 0 and len(text) >= SURE_LENGTH:
            begin = flat.find(text, at)
        if begin < 0:
            return count
        at = begin + len(text)
    return len(texts)


PAUSE = 1.0
"""Seconds without a key after which unfinished input becomes an entry."""
CROWD = 16
"""Unrecorded entries of one terminal from which on all input within `JOIN` is merged."""
WAITING_MAX = 256
"""Unrecorded entries of one terminal, a bound on memory; beyond it the oldest settles without text."""
HIDDEN_APART = 10.0
"""Seconds between two entries without text by the same person: a keyboard game must not fill the journal."""
SOFT_SECONDS = 10.0
"""Seconds after a person's last key until the agent may type into its terminal again."""
RELEASED_BY = "Handrail"


@dataclass(slots=True)
class _TerminalHistory:
    """The unrecorded entries and drafts of one terminal, in typing order."""

    terminal: Terminal
    drafts: dict[str, Draft] = field(default_factory=dict[str, Draft])
    waiting: deque[Entry] = field(default_factory=deque[Entry])
    release_at: float | None = None
    last_hidden: tuple[str, float] = ("", 0.0)

    def draft(self, by: str) -> Draft:
        if by not in self.drafts:
            self.drafts[by] = Draft(by, self.continues_last)
        return self.drafts[by]

    def continues_last(self, entry: Entry) -> bool:
        """Whether `entry` belongs to the same burst as the last one."""
        return bool(self.waiting) and self.waiting[-1].can_merge(entry, crowded=False)

    def push(self, entry: Entry) -> None:
        if self.waiting and self.waiting[-1].can_merge(entry, len(self.waiting) >= CROWD):
            self.waiting[-1].merge(entry)
            return
        self.waiting.append(entry)
        if len(self.waiting) > WAITING_MAX:
            self.waiting[0].give_up()


class TypingHistory:
    """The typing history of all terminals. Calls `record` with terminal, typist, person, text and output offset."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._histories: dict[str, _TerminalHistory] = {}
        self._wakes_at = -math.inf
        self._bell = anyio.Event()

    async def run(self) -> None:
        """Record entries when they are due, until cancelled. Sleeps while there is no input."""
        while True:
            bell, self._wakes_at = self._bell, -math.inf  # input from here on is handled below: no ring
            for history in list(self._histories.values()):
                await self._process_due(history)
            self._wakes_at = min(map(_next_due, self._histories.values()), default=math.inf)
            with anyio.move_on_after(max(0.0, self._wakes_at - time.monotonic())):
                await bell.wait()

    def hear(self, terminal: Terminal, typist: InputSender, data: bytes | None, offset: int) -> None:
        """Process input; `data` is None when the terminal hid it."""
        history = self._histories.setdefault(terminal.id, _TerminalHistory(terminal))
        now = time.monotonic()
        if not typist.person:
            history.push(agent_entry(typist.name, offset, data or b""))
        else:
            draft = history.draft(typist.name)
            for entry in draft.hide(offset, now) if data is None else draft.feed(data, offset, now):
                history.push(entry)
            if terminal.taken is not None and not terminal.taken.holds:
                history.release_at = now + SOFT_SECONDS
        self._record_settled(history, now)
        if _next_due(history) < self._wakes_at:
            self.ring()

    def ring(self) -> None:
        """Wake `run`: there was input, or a terminal ended."""
        self._bell.set()
        self._bell = anyio.Event()

    async def _process_due(self, history: _TerminalHistory) -> None:
        """Record the entries that are due. Searches for at most one echo, so that every terminal gets its turn."""
        now, has_ended = time.monotonic(), history.terminal.exit is not None
        for draft in history.drafts.values():
            if not draft.is_empty and (has_ended or draft.at + PAUSE <= now):
                for entry in draft.close(now):
                    history.push(entry)
        self._record_settled(history, now)
        if history.waiting and history.waiting[0].due[0] <= now:
            await _search_echo(history.waiting[0], history.terminal.tail, now)
            self._record_settled(history, now)
        _release_after_pause(history, now)
        if has_ended and _next_due(history) == math.inf:
            del self._histories[history.terminal.id]

    def _record_settled(self, history: _TerminalHistory, now: float) -> None:
        while history.waiting and history.waiting[0].is_settled:
            self._record_entry(history, history.waiting.popleft(), now)

    def _record_entry(self, history: _TerminalHistory, entry: Entry, now: float) -> None:
        by, at = history.last_hidden
        if entry.text is None:
            if by == entry.by and now - at < HIDDEN_APART:
                return
            history.last_hidden = (entry.by, now)
        else:
            history.last_hidden = ("", 0.0)
        self._record(history.terminal, entry.by, entry.person, entry.text, entry.offset)


async def _search_echo(entry: Entry, tail: Tail, now: float) -> None:
    """Search for its echo, in a thread: a screen that was redrawn many times takes long to read."""
    lines, offset = tuple(entry.lines), entry.offset
    count = (
        await anyio.to_thread.run_sync(lambda: shown(lines, read_output_after(tail, offset))) if lines else 0
    )
    if not entry.is_settled:  # `give_up` may have been called meanwhile
        entry.resolve(count, now)


def _release_after_pause(history: _TerminalHistory, now: float) -> None:
    taken = history.terminal.taken
    if taken is None or taken.holds:
        history.release_at = None
    elif history.release_at is not None and history.release_at <= now:
        history.release_at = None
        history.terminal.release(RELEASED_BY)


def _next_due(history: _TerminalHistory) -> float:
    """The time of the next work for this terminal, in monotonic seconds."""
    times = [draft.at + PAUSE for draft in history.drafts.values() if not draft.is_empty]
    times += [history.waiting[0].due[0]] if history.waiting else []
    times += [history.release_at] if history.release_at is not None else []
    return min(times, default=math.inf)
