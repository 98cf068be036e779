"""Shell integration marks: OSC 133 and 633 sequences that delimit prompts, command lines and outputs.

`Finder` parses the marks in a byte stream; only marks with the nonce of our own shell count. `MarksReader` derives
`Marks` from them: the commands of one terminal with line, exit code and output range. `MarksCache` caches readers by terminal.
open_shell.py makes a shell write the marks.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict, deque
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import anyio
import anyio.to_thread

from handrail.lazy_dataclass import dataclass
from handrail.terminal.output.tail import Tail

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Kind = Literal["prompt", "input", "line", "cwd", "output", "end"]
    _ParsedMark = tuple[Kind, str, dict[str, str]]


MARK_BYTES_MAX = 128 * 1024
"""Upper bound for one mark: an unterminated sequence is not buffered beyond this."""

_OPENING = b"\x1b]"
_CLOSINGS = (b"\x07", b"\x1b\\")
_CONTROL = re.compile(rb"[\x00-\x1f]")
_ESCAPED = re.compile(rb"\\(?:\\|x([0-9a-fA-F]{2}))")
_KINDS: dict[str, Kind] = {"A": "prompt", "B": "input", "C": "output", "D": "end"}


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark and its position in the output."""

    kind: Kind
    start: int
    end: int
    text: str
    """The command line, the directory, or at an end the exit code."""
    about: Mapping[str, str]


class Finder:
    """Finds the marks with one nonce. A mark cut off at the end of a chunk is buffered until the next."""

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce.encode()
        self._buffer = b""
        self._next = 0

    @property
    def held(self) -> int:
        """Number of buffered bytes."""
        return len(self._buffer)

    def find(self, data: bytes, offset: int) -> Iterator[Mark]:
        """The marks that end in this chunk. A chunk that does not follow the last one resets the buffer."""
        if offset != self._next:
            self._buffer = b""
        self._next = offset + len(data)
        data, offset = self._buffer + data, offset - len(self._buffer)
        done = 0  # everything before it has been searched
        while self._nonce and (at := data.find(self._nonce, done)) >= 0:
            start = data.rfind(_OPENING, done, at)
            done = at + len(self._nonce)
            if start < 0 or _CONTROL.search(data, start + 2, at):
                continue  # the nonce as plain text, outside any sequence
            closing = _CONTROL.search(data, done, start + MARK_BYTES_MAX)
            done = min(start + MARK_BYTES_MAX, len(data)) if closing is None else closing.start()
            mark = self._read(data[start + 2 : done])
            if mark and (closed := next((end for end in _CLOSINGS if data.startswith(end, done)), None)):
                done += len(closed)
                yield Mark(mark[0], offset + start, offset + done, *mark[1:])
        self._buffer = _unfinished_mark(data)

    def _read(self, body: bytes) -> _ParsedMark | None:
        code, _, rest = body.partition(b";")
        read = {b"133": self._read_133, b"633": self._read_633}.get(code)
        return read(rest) if read else None

    def _read_133(self, rest: bytes) -> _ParsedMark | None:
        letter, *fields = rest.decode("utf-8", errors="replace").split(";")
        about = {name: value for name, known, value in (field.partition("=") for field in fields) if known}
        kind = _KINDS.get(letter)
        if kind is None or about.get("nonce") != self._nonce.decode():
            return None
        return kind, "" if not fields or "=" in fields[0] else fields[0], about

    def _read_633(self, rest: bytes) -> _ParsedMark | None:
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


def _unfinished_mark(data: bytes) -> bytes:
    """The end of `data` that may be the start of a mark."""
    start = data.rfind(_OPENING, max(0, len(data) - MARK_BYTES_MAX))
    if start >= 0:
        control = _CONTROL.search(data, start + 2)
        if control is None or (control.end() == len(data) and control[0] == b"\x1b"):
            return data[start:]
    return b"\x1b" if data.endswith(b"\x1b") else b""


def _unescape(text: bytes) -> str:
    data = _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()) if match[1] else b"\\", text)
    return data.decode("utf-8", errors="replace")


COMMANDS_MAX = 1000
"""Commands kept per terminal, a bound on memory."""

_PIECE = 1024 * 1024
_ECHO = 4096
"""Bytes of an echoed line that are searched; for a longer line there is no guess."""
_TITLE = 1024
"""Bytes after a mark in which the shell may write its title sequence, before the command's output."""
_PREFACE = re.compile(
    rb"(?:\x1b\[\?2004l)?(?:\x1b\]0;[^\x07\x1b]*(?:\x07|\x1b\\))?(?:\x1b\[[0-9;]*m|\x1b\([0B])*\r"
)
_ECHOED_LINE = re.compile(rb"([^\x00-\x1f\x7f]+)\r?\n(?:\x1b\[\?2004l)?\r?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command line that the shell ran. Offsets are absolute offsets in the terminal's output."""

    line: str | None
    """None when the shell did not report it and the echo could not be read."""
    begin: int
    """Where its prompt begins."""
    output: int
    """Where its output begins."""
    end: int | None = None
    """Where its output ends; None while it runs, or when the end mark was dropped before it was read."""
    exit_code: int | None = None
    cwd: str | None = None
    """The directory it was started in."""
    started_at: float | None = None
    """Seconds since 1970."""
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The state of one terminal's shell at one offset of its output: a snapshot, the same for every reader."""

    commands: tuple[Command, ...] = ()
    """The last `COMMANDS_MAX` commands, oldest first."""
    at_prompt: bool | None = None
    """Whether the shell is at its prompt; None before the first mark."""
    prompt_at: int = 0
    """Where the last prompt begins."""
    cwd: str | None = None
    """The shell's directory, as last reported."""
    read_to: int = 0
    """The output offset up to which marks have been read."""

    @property
    def running(self) -> Command | None:
        """The command that runs now."""
        last = self.commands[-1] if self.commands else None
        return None if self.at_prompt or last is None or last.end is not None else last


class MarksReader:
    """Reads the marks of one terminal.

    `catch_up` may run in a thread, one at a time. It replaces `marks` atomically: a reader in another thread never sees
    a new prompt without the command before it.
    """

    def __init__(self, nonce: str, read_to: int = 0) -> None:
        """Marks before the offset `read_to` are ignored."""
        self.marks = Marks(read_to=read_to)
        self._at_prompt: bool | None = None
        self._prompt_at = 0
        self._cwd: str | None = None
        self._finder = Finder(nonce)
        self._commands: deque[Command] = deque(maxlen=COMMANDS_MAX)
        self._open: str | None = None  # the id of the running command, the last in `_commands`
        self._line: str | None = None
        self._input: int | None = None
        self._title = False  # the shell's title sequence may still follow its mark
        self._gap = False  # output was dropped since the running command began

    def catch_up(self, tail: Tail, until: float = math.inf) -> None:
        """Read new output up to `until`, or slightly further. Memory use is bounded, however far behind it is."""
        while (read_to := self.marks.read_to) < until:
            data, following = tail.read(read_to, _PIECE)
            if not data:
                return
            if following - len(data) != read_to:
                self._note_gap()
            marks = list(self._finder.find(data, following - len(data)))
            for mark in marks:
                self._take(mark, tail)
            moved = self._skip_title(tail)
            self.marks = Marks(
                commands=tuple(self._commands) if marks or moved else self.marks.commands,
                at_prompt=self._at_prompt,
                prompt_at=self._prompt_at,
                cwd=self._cwd,
                read_to=following,
            )

    def _note_gap(self) -> None:
        """Output was dropped before it was read; it may have held marks."""
        self._gap, self._line, self._input = True, None, None
        self._at_prompt = None if self._at_prompt else self._at_prompt

    def _take(self, mark: Mark, tail: Tail) -> None:
        match mark.kind:
            case "prompt":
                self._close(mark, tail)
                self._at_prompt, self._prompt_at, self._input, self._line = True, mark.start, None, None
            case "input":
                self._close(mark, tail)
                self._at_prompt, self._input = True, mark.end
            case "line":
                self._line = mark.text
            case "cwd":
                self._close(mark, tail)
                self._cwd = mark.text
            case "output":
                self._begin(mark, tail)
            case "end":
                if self._open == mark.about.get("id", ""):
                    self._close(mark, tail)
                self._open = None  # with another id, the end mark of ours was dropped

    def _begin(self, mark: Mark, tail: Tail) -> None:
        self._close(mark, tail)
        began = self._prompt_at if self._at_prompt else mark.start
        started_at = _time_of(mark, tail)
        line = self._line if self._line is not None else self._read_echo(mark, tail)
        self._commands.append(
            Command(line=line, begin=began, output=mark.end, cwd=self._cwd, started_at=started_at)
        )
        self._open, self._line, self._input, self._gap = mark.about.get("id", ""), None, None, False
        self._at_prompt, self._title = False, mark.about.get("then") == "title"

    def _close(self, mark: Mark, tail: Tail) -> None:
        """Close the running command. Only its own end mark carries the exit code."""
        if self._open is None:
            return
        self._skip_title(tail)
        command, self._open = self._commands[-1], None
        end = mark if mark.kind == "end" else None
        self._commands[-1] = replace(
            command,
            end=None if self._gap and not end else mark.start,
            exit_code=_number(end.text) if end else None,
            duration_ms=_duration(command, end, tail) if end else None,
        )

    def _skip_title(self, tail: Tail) -> bool:
        """Move the start of the command's output behind the title that the shell writes after its mark.

        Returns whether it was moved.
        """
        if not self._title:
            return False
        command = self._commands[-1]
        data, following = tail.read(command.output, _TITLE)
        preface = _PREFACE.match(data) if following - len(data) == command.output else None
        self._title = preface is None and len(data) < _TITLE and self._open is not None
        if preface:
            self._commands[-1] = replace(command, output=command.output + preface.end())
        return preface is not None

    def _read_echo(self, mark: Mark, tail: Tail) -> str | None:
        """The echoed command line, used when the shell did not report it and it was typed without editing."""
        if self._input is None or mark.start - self._input > _ECHO:
            return None
        shown = _ECHOED_LINE.match(tail.read(self._input, mark.start - self._input)[0])
        return shown[1].decode("utf-8", errors="replace").strip() or None if shown else None


def output_of(command: Command, tail: Tail) -> bytes:
    """The command's output so far, as far as it is still kept."""
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
    """Replace the nonce by dashes of the same length, so that readers cannot forge marks.

    `before` and `after` are the bytes around `data`, each at least as long as the nonce. They are needed to find a
    nonce that an edge of `data` cuts in two.
    """
    secret = nonce.encode()
    if not secret:
        return data
    whole = (before + data + after).replace(secret, b"-" * len(secret))
    return whole[len(before) : len(before) + len(data)]


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else None


def _time_of(mark: Mark, tail: Tail) -> float | None:
    """When the mark was written, in seconds since 1970: the shell's time, else the keeper's."""
    at = mark.about.get("at", "")
    if re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", at):
        return float(at)
    noted = tail.time_of(mark.start)
    return None if noted is None else noted / 1000


def _duration(command: Command, end: Mark, tail: Tail) -> int | None:
    reported, at = _number(end.about.get("took", "")), _time_of(end, tail)
    if reported is not None or at is None or command.started_at is None:
        return reported
    return max(0, round((at - command.started_at) * 1000))


TERMINALS_MAX = 200
"""Terminals in the cache, a bound on memory; marks of other terminals are read from their output again."""


class MarksCache:
    """LRU cache of readers by terminal."""

    def __init__(self) -> None:
        self._cache: OrderedDict[str, tuple[MarksReader, anyio.Lock]] = OrderedDict()

    async def of(self, id: str, nonce: str, tail: Tail) -> Marks | None:
        """The marks of a terminal, read to the end of its output; None when its shell writes none."""
        if not nonce:
            return None
        reader, lock = self._get_or_create(id, nonce)
        async with lock:
            await anyio.to_thread.run_sync(reader.catch_up, tail)
        return reader.marks

    def _get_or_create(self, id: str, nonce: str) -> tuple[MarksReader, anyio.Lock]:
        if id not in self._cache:
            self._cache[id] = MarksReader(nonce), anyio.Lock()
        self._cache.move_to_end(id)
        while len(self._cache) > TERMINALS_MAX:
            self._cache.popitem(last=False)
        return self._cache[id]
