"""Marks in a terminal's output: escape sequences by which a shell says where prompts, lines and outputs begin and end.

Owns what a mark looks like (OSC 133 and 633, with the nonce that only our own shell was told) and finding them in
bytes that come in pieces. It does not know what marks mean together (marks.py), nor how a shell is made to write them
(integration.py).

What the marks of a shell tell together: which commands ran, how each ended and which output is whose.

The marks of every terminal that is being asked about.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict, deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import anyio
import anyio.to_thread

from handrail.terminal.output.tail import Tail

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Kind = Literal["prompt", "input", "line", "cwd", "output", "end"]
    _Said = tuple[Kind, str, dict[str, str]]


MOST = 128 * 1024
"""Bytes one mark may take: a sequence that does not end is not held longer than this."""

_OPENING = b"\x1b]"
_CLOSINGS = (b"\x07", b"\x1b\\")
_CONTROL = re.compile(rb"[\x00-\x1f]")
_ESCAPED = re.compile(rb"\\(?:\\|x([0-9a-fA-F]{2}))")
_KINDS: dict[str, Kind] = {"A": "prompt", "B": "input", "C": "output", "D": "end"}


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing the shell said, and where it said it."""

    kind: Kind
    start: int
    end: int
    text: str
    """The line or the directory; the exit code at an end."""
    about: Mapping[str, str]


class Finder:
    """Finds the marks of one nonce; what is cut off by the end of a piece is kept until the next."""

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce.encode()
        self._kept = b""
        self._next = 0

    @property
    def held(self) -> int:
        """Bytes kept for the next piece."""
        return len(self._kept)

    def find(self, data: bytes, offset: int) -> Iterator[Mark]:
        """The marks that end in this piece. A piece that does not follow the last one begins anew."""
        if offset != self._next:
            self._kept = b""
        self._next = offset + len(data)
        data, offset = self._kept + data, offset - len(self._kept)
        done = 0  # no sequence that began before it matters any more
        while self._nonce and (at := data.find(self._nonce, done)) >= 0:
            start = data.rfind(_OPENING, done, at)
            done = at + len(self._nonce)
            if start < 0 or _CONTROL.search(data, start + 2, at):
                continue  # the nonce as a word, in no sequence
            closing = _CONTROL.search(data, done, start + MOST)
            done = min(start + MOST, len(data)) if closing is None else closing.start()
            mark = self._read(data[start + 2 : done])
            if mark and (closed := next((end for end in _CLOSINGS if data.startswith(end, done)), None)):
                done += len(closed)
                yield Mark(mark[0], offset + start, offset + done, *mark[1:])
        self._kept = _unfinished(data)

    def _read(self, body: bytes) -> _Said | None:
        code, _, rest = body.partition(b";")
        read = {b"133": self._read_133, b"633": self._read_633}.get(code)
        return read(rest) if read else None

    def _read_133(self, rest: bytes) -> _Said | None:
        letter, *fields = rest.decode("utf-8", errors="replace").split(";")
        about = {name: value for name, known, value in (field.partition("=") for field in fields) if known}
        kind = _KINDS.get(letter)
        if kind is None or about.get("nonce") != self._nonce.decode():
            return None
        return kind, "" if not fields or "=" in fields[0] else fields[0], about

    def _read_633(self, rest: bytes) -> _Said | None:
        parts = rest.split(b";")
        if len(parts) != 3 or parts[2] != self._nonce:
            return None
        match parts[0], parts[1].partition(b"="):
            case b"E", _:
                return "line", _unescape(parts[1]), {}
            case b"P", (b"Cwd", _, path):
                return "cwd", _unescape(path), {}
            case _:
                return None


def _unfinished(data: bytes) -> bytes:
    """What may be the beginning of a mark."""
    start = data.rfind(_OPENING, max(0, len(data) - MOST))
    if start >= 0:
        control = _CONTROL.search(data, start + 2)
        if control is None or (control.end() == len(data) and control[0] == b"\x1b"):
            return data[start:]
    return b"\x1b" if data.endswith(b"\x1b") else b""


def _unescape(text: bytes) -> str:
    whole = _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()) if found[1] else b"\\", text)
    return whole.decode("utf-8", errors="replace")


KEPT = 1000
"""Commands remembered of one terminal."""

_PIECE = 1024 * 1024
_ECHO = 4096
"""Bytes of an echoed line that are looked at: a longer one is not guessed."""
_TITLE = 1024
"""Bytes after a mark in which a shell's own words may stand, before those of the command."""
_PREFACE = re.compile(
    rb"(?:\x1b\[\?2004l)?(?:\x1b\]0;[^\x07\x1b]*(?:\x07|\x1b\\))?(?:\x1b\[[0-9;]*m|\x1b\([0B])*\r"
)
_SHOWN = re.compile(rb"([^\x00-\x1f\x7f]+)\r?\n(?:\x1b\[\?2004l)?\r?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One line that the shell ran. Offsets are those of the terminal's output."""

    line: str | None
    """None when the shell did not say and it was not plainly echoed either."""
    begin: int
    """Where its prompt begins."""
    output: int
    """Where its output begins."""
    end: int | None = None
    """Where its output ends; None while it runs, or when its end was dropped before it was read."""
    exit_code: int | None = None
    cwd: str | None = None
    """The directory it was started in."""
    started_at: float | None = None
    """Seconds since 1970."""
    duration_ms: int | None = None


class Marks:
    """The commands of one terminal, as far as its output has been read.

    `catch_up` may run in a thread, one at a time; what it found is replaced at once, never changed.
    """

    def __init__(self, nonce: str) -> None:
        self.commands: tuple[Command, ...] = ()
        """The last thousand, the oldest first."""
        self.at_prompt: bool | None = None
        """Whether the shell waits for a line; None before the first mark."""
        self.prompt_at = 0
        """Where the last prompt begins."""
        self.cwd: str | None = None
        """Where the shell stood when it last said so."""
        self.read_to = 0
        """How far the output has been read."""
        self._finder = Finder(nonce)
        self._commands: deque[Command] = deque(maxlen=KEPT)
        self._open: str | None = None  # the id of the command that runs, the last of all
        self._line: str | None = None
        self._input: int | None = None
        self._title = False  # the shell's own words after its mark may still come
        self._gap = False  # since the command that runs began

    @property
    def running(self) -> Command | None:
        """What the shell runs now."""
        last = self.commands[-1] if self.commands else None
        return None if self.at_prompt or last is None or last.end is not None else last

    def catch_up(self, tail: Tail, until: float = math.inf) -> None:
        """Read what has come since, up to an offset or a little further; bounded in memory, however far behind."""
        while self.read_to < until:
            data, following = tail.read(self.read_to, _PIECE)
            if not data:
                return
            if following - len(data) != self.read_to:
                self._skip()
            found = [self._take(mark, tail) for mark in self._finder.find(data, following - len(data))]
            self.read_to = following
            self._pass_title(tail)
            if found:
                self.commands = tuple(self._commands)

    def _skip(self) -> None:
        """Output was dropped before it was read, and marks may have been in it."""
        self._gap, self._line, self._input = True, None, None
        self.at_prompt = None if self.at_prompt else self.at_prompt

    def _take(self, mark: Mark, tail: Tail) -> None:
        match mark.kind:
            case "prompt":
                self._close(mark, tail)
                self.at_prompt, self.prompt_at, self._input, self._line = True, mark.start, None, None
            case "input":
                self._close(mark, tail)
                self.at_prompt, self._input = True, mark.end
            case "line":
                self._line = mark.text
            case "cwd":
                self._close(mark, tail)
                self.cwd = mark.text
            case "output":
                self._begin(mark, tail)
            case "end":
                if self._open == mark.about.get("id", ""):
                    self._close(mark, tail)
                self._open = None  # if it was that of another, the end of ours was dropped

    def _begin(self, mark: Mark, tail: Tail) -> None:
        self._close(mark, tail)
        began = self.prompt_at if self.at_prompt else mark.start
        started_at = _time_of(mark, tail)
        line = self._line if self._line is not None else self._echoed(mark, tail)
        self._commands.append(
            Command(line=line, begin=began, output=mark.end, cwd=self.cwd, started_at=started_at)
        )
        self._open, self._line, self._input, self._gap = mark.about.get("id", ""), None, None, False
        self.at_prompt, self._title = False, mark.about.get("then") == "title"

    def _close(self, mark: Mark, tail: Tail) -> None:
        """The command that runs has ended; how is known only from its own mark."""
        if self._open is None:
            return
        self._pass_title(tail)
        command, self._open = self._commands[-1], None
        said = mark if mark.kind == "end" else None
        self._commands[-1] = replace(
            command,
            end=None if self._gap and not said else mark.start,
            exit_code=_number(said.text) if said else None,
            duration_ms=_duration(command, said, tail) if said else None,
        )

    def _pass_title(self, tail: Tail) -> None:
        """A shell that writes something of its own after its mark: the command's output begins after that."""
        if self._title:
            command = self._commands[-1]
            data, following = tail.read(command.output, _TITLE)
            found = _PREFACE.match(data) if following - len(data) == command.output else None
            self._title = found is None and len(data) < _TITLE and self._open is not None
            if found:
                self._commands[-1] = replace(command, output=command.output + found.end())
                self.commands = tuple(self._commands)

    def _echoed(self, mark: Mark, tail: Tail) -> str | None:
        """The line as it was shown, where the shell did not say it and it was typed without editing."""
        if self._input is None or mark.start - self._input > _ECHO:
            return None
        shown = _SHOWN.match(tail.read(self._input, mark.start - self._input)[0])
        return shown[1].decode("utf-8", errors="replace").strip() or None if shown else None


def output_of(command: Command, tail: Tail) -> bytes:
    """What a command has printed so far, as far as it is still kept."""
    end = tail.end if command.end is None else command.end
    pieces: list[bytes] = []
    at = max(command.output, tail.first)
    while at < end:
        data, following = tail.read(at, min(_PIECE, end - at))
        if not data or following > end:
            break
        pieces.append(data)
        at = following
    return b"".join(pieces)


def strip(data: bytes, nonce: str, before: bytes = b"", after: bytes = b"") -> bytes:
    """The same bytes with another nonce of the same length, for whoever must not be able to write marks.

    A nonce that is cut in two by an edge of `data` is found only with what stands beside that edge: `before` and
    `after`, each at least as long as the nonce.
    """
    secret = nonce.encode()
    if not secret:
        return data
    whole = (before + data + after).replace(secret, b"-" * len(secret))
    return whole[len(before) : len(before) + len(data)]


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else None


def _time_of(mark: Mark, tail: Tail) -> float | None:
    """When it was written, in seconds since 1970: as the shell says, else as the keeper noted."""
    at = mark.about.get("at", "")
    if re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", at):
        return float(at)
    noted = tail.time_of(mark.start)
    return None if noted is None else noted / 1000


def _duration(command: Command, end: Mark, tail: Tail) -> int | None:
    said, at = _number(end.about.get("took", "")), _time_of(end, tail)
    if said is not None or at is None or command.started_at is None:
        return said
    return max(0, round((at - command.started_at) * 1000))


MOST_MARKS = 200
"""Terminals whose marks are held; those of another are read anew from its output."""


class Marked:
    """Marks by terminal, read as far as the output has come."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, tuple[Marks, anyio.Lock]] = OrderedDict()

    async def of(self, id: str, nonce: str, tail: Tail) -> Marks | None:
        """The marks of a terminal up to now; None when its shell makes none."""
        if not nonce:
            return None
        marks, lock = self._hold(id, nonce)
        async with lock:
            await anyio.to_thread.run_sync(marks.catch_up, tail)
        return marks

    def _hold(self, id: str, nonce: str) -> tuple[Marks, anyio.Lock]:
        if id not in self._held:
            self._held[id] = Marks(nonce), anyio.Lock()
        self._held.move_to_end(id)
        while len(self._held) > MOST_MARKS:
            self._held.popitem(last=False)
        return self._held[id]
