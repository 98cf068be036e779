"""Convert terminal output to plain text, incrementally (`PlainTextStream`) or in one call (`plain_text`).

Removes escape sequences and control characters. Output that only scrolls takes a fast path; where the cursor moves
back (progress bars, edited command lines), `Sheet` resolves the overwritten cells. Memory is bounded: only the lines
that the cursor can still reach are kept.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import field

from handrail.lazy_dataclass import dataclass

REACH = 100
"""Lines above the last one that the cursor can move back to, as progress bars of several lines need. Bounds memory."""
_BLOCK = 32 * 1024
"""Characters tried together on the fast path: one line with cursor movements sends this many to the slow path."""
_NOTES = 100_000
"""Entries in `overwritten`, a bound on memory; beyond it, line numbers of hostile output are approximate."""
_COLOURS = re.compile(r"\x1b\[(?:[0-9;:]{0,256}m|0?K)")
"""By far the most frequent sequences. Erasing to the right has no effect while the cursor only moves forward."""
_STRINGS = ("\x1b]", "\x1bP", "\x1bX", "\x1b^", "\x1b_")
_STRING = re.compile(r"\x1b[\]PX^_][^\x07\x18\x1a\x1b]*(?:[\x07\x18\x1a]|\x1b\\|(?=\x1b)|\Z)")
"""OSC, DCS, SOS, PM, APC: titles, links, clipboard, images. The next escape ends an unterminated one."""
_STRING_END = re.compile(r"[\x07\x18\x1a\x1b]")
_STATIC = re.compile(
    r"\x1b\[[0-?]{0,256}[ -/]{0,8}[HIL-OQ-WYZ\[-_a-~]"  # CSI without effect within a line: modes, positions
    r"|\x1b\[0?K"
    r"|\x1b[ -/]{1,8}[0-~]"  # character sets
    r"|\x1b[0-LN-OQ-WYZ\\`-~]"  # two-character escapes
    f"|{_STRING.pattern}"
)
"""One regex, so that the text around a removed sequence cannot form a new one."""
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]{0,256}[ -/]{0,8}|[ -/]{0,8})\Z")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_INNER_RETURN = re.compile(r"\r(?!\r*\n)")
_CONTROLS = bytes([*range(9), *range(0x0B, 0x20), 0x7F])
_C1 = re.compile(b"\xc2[\x80-\x9f]")


def plain_text(data: bytes) -> str:
    """The text as the terminal would show it, line by line; invalid UTF-8 is replaced."""
    stream = PlainTextStream()
    return stream.feed(data) + stream.finish()


class PlainTextStream:
    """Converts output to text incrementally. Chunk boundaries do not change the text."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._buffer = ""
        self._in_string = False
        self._sheet = Sheet(REACH)
        self._lines = 0
        self.overwritten: list[tuple[int, int]] = []
        """Pairs (line of the text from zero, n): from that line on, n more lines were printed than the text has."""

    def feed(self, data: bytes) -> str:
        """Add output; returns the text that is now final."""
        return "".join(self._convert(self._decoder.decode(data)))

    @property
    def rest(self) -> str:
        """The text that may still change, in its current state."""
        return self._sheet.text

    def finish(self) -> str:
        """End the stream; returns the remaining text."""
        return "".join(self._convert(self._decoder.decode(b"", True))) + self._sheet.close()

    def _convert(self, text: str) -> Iterator[str]:
        fed = self._buffer + text
        text = self._whole_sequences(fed)
        if len(text) + len(self._buffer) != len(fed):
            # Newlines within a string sequence count as printed lines.
            self._lines += fed.count("\n") - text.count("\n")
        at = 0
        while at < len(text):
            end = self._block_end(text, at)
            self._resolve(text[at:end])
            yield self._sheet.drain()
            at = end

    def _whole_sequences(self, text: str) -> str:
        """Cut an unfinished sequence off the end: an escape is buffered for the next chunk, a string is dropped."""
        if self._in_string:
            text = self._after_string(text)
        self._buffer = ""
        escape = text.rfind("\x1b")
        if escape >= 0 and _UNFINISHED.match(text, escape):
            self._buffer, text = text[escape:], text[:escape]
            escape = text.rfind("\x1b")
        if _is_open(text, escape, len(text)):
            self._in_string = self._buffer in ("", "\x1b")  # the latter may end it
            while _is_open(text, before := text.rfind("\x1b", 0, escape), escape):
                escape = before  # the escape that is cut off ended this string
            text = text[:escape]
        return text

    def _after_string(self, text: str) -> str:
        end = _STRING_END.search(text)
        if end is None:
            return ""
        at = end.start()
        if text[at] == "\x1b" and at + 1 == len(text):
            return "\x1b"  # the next chunk decides its meaning
        self._in_string = False
        return (
            text[at:]
            if text[at] == "\x1b" and text[at + 1] != "\\"
            else text[at + 1 + (text[at] == "\x1b") :]
        )

    def _block_end(self, text: str, at: int) -> int:
        """The end of the next block, at a line end: many lines, or one line while the sheet is in use."""
        end = text.rfind("\n", at, at + _BLOCK) + 1 if self._sheet.clean else 0
        end = end or text.find("\n", at) + 1 or len(text)
        while end < len(text) and _is_open(text, text.rfind("\x1b", at, end), end):
            end = text.find("\n", end) + 1 or len(text)  # this newline is inside a string sequence
        return end

    def _resolve(self, text: str) -> None:
        until = self._lines + text.count("\n")
        if not self._append_scrolled(text):
            for line in _LINE.findall(_STRING.sub("\0", text)):
                if not self._append_scrolled(line):
                    self._sheet.write(line)
                self._lines += line[-1] == "\n"
                self._note_overwritten()
        self._lines = until
        self._note_overwritten()

    def _append_scrolled(self, text: str) -> bool:
        """Fast path: append complete lines that only scroll to a clean sheet; False when it does not apply."""
        lines = _strip_scrolling(text) if self._sheet.clean and text[-1] == "\n" else None
        if lines is not None:
            self._sheet.append(lines)
        return lines is not None

    def _note_overwritten(self) -> None:
        if self._sheet.clean and len(self.overwritten) < _NOTES:
            more = self._lines - self._sheet.lines
            if more != (self.overwritten[-1][1] if self.overwritten else 0):
                self.overwritten.append((self._sheet.lines, more))


def _is_open(text: str, escape: int, end: int) -> bool:
    """Whether the escape at `escape` begins a string sequence that does not end before `end`."""
    return (
        escape >= 0
        and text[escape : escape + 2] in _STRINGS
        and not _STRING_END.search(text, escape + 1, end)
    )


def _strip_scrolling(text: str) -> str | None:
    """Complete lines without escapes and control characters; None when the cursor moves back within them."""
    if "\b" in text or (text.count("\r") != text.count("\r\n") and _INNER_RETURN.search(text)):
        return None
    if "\x1b" in text:
        text, marked = _COLOURS.sub("", text), text
        if "\x1b" in text:
            text = _STATIC.sub("", marked)
            if "\x1b" in text:
                return None
    data = text.encode().translate(None, _CONTROLS)
    return (_C1.sub(b"", data) if b"\xc2" in data else data).decode()


LONGEST = 16 * 1024
"""Cells per line that the cursor can reach, a bound on memory. Longer lines are fixed up to here and continue."""
BLANKS = 64 * 1024
BLANKS_PER_CHARACTER = 8
"""Budget of blanks that cursor movements may insert, initially and per character or movement: a few bytes that move to
the right end of every line must not become gigabytes of blanks. Beyond it, text is appended without a gap."""
_TOKEN = re.compile(
    r"([^\x00-\x08\x0a-\x1f\x7f-\x9f]+)"
    r"|\x1b\[([0-?]{0,256})[ -/]{0,8}([@-~])"
    r"|(\x1b[ -/]{0,8}[0-~]|[\r\n\b])"
)


@dataclass(slots=True)
class _Row:
    cells: list[str] = field(default_factory=list[str])
    fixed: list[str] = field(default_factory=list[str])
    """Fixed text before the cells, which the cursor cannot reach."""

    def text(self) -> str:
        return "".join((*self.fixed, *self.cells))


class Sheet:
    """The last lines of a text, with a cursor that can overwrite them."""

    def __init__(self, reach: int) -> None:
        self._reach = reach
        self._above: list[str] = []
        self._rows = [_Row()]
        self._row = 0
        self._column = 0
        self._blanks = BLANKS
        self.lines = 0
        """Number of complete lines, including drained ones."""

    @property
    def clean(self) -> bool:
        """Whether the cursor is at the start of an empty last line."""
        return (
            len(self._rows) == 1 and not self._column and not self._rows[0].cells and not self._rows[0].fixed
        )

    def append(self, lines: str) -> None:
        """Append complete lines of plain text. The sheet must be clean."""
        self._above.append(lines)
        self.lines += lines.count("\n")

    def write(self, text: str) -> None:
        """Write text with cursor movements."""
        for run, params, verb, other in _TOKEN.findall(text):
            if run:
                self._put(run)
            elif verb:
                self._execute(verb, params)
            elif other == "\r":
                self._column = 0
            elif other == "\n":
                self._newline()
            elif other == "\b":
                self._column = max(0, self._column - 1)
            elif other == "\x1bM":
                self._up(1)

    def drain(self) -> str:
        """Remove and return the lines that the cursor can no longer reach."""
        above = "".join(self._above)
        at = len(above)
        for _ in range(self._reach + 1):
            at = above.rfind("\n", 0, at)
            if at < 0:
                self._above = [above]
                return ""
        self._above = [above[at + 1 :]]
        return above[: at + 1]

    @property
    def text(self) -> str:
        """The text that is not drained yet."""
        return "".join(self._above) + "\n".join(row.text() for row in self._rows)

    def close(self) -> str:
        """Remove and return the remaining text."""
        text = self.text
        self._above, self._rows, self._row, self._column = [], [_Row()], 0, 0
        return text

    def _put(self, run: str) -> None:
        cells = list(run) if run.isascii() else _cells(run, self._rows[self._row].cells, self._column)
        at = 0
        while self._column + len(cells) - at > LONGEST:
            room = LONGEST - self._column
            self._overwrite(cells[at : at + room])
            row = self._rows[self._row]
            row.fixed.append("".join(row.cells))
            row.cells, self._column = [], 0
            at += room
        self._overwrite(cells[at:] if at else cells)
        self._blanks += BLANKS_PER_CHARACTER * len(run)

    def _overwrite(self, cells: list[str]) -> None:
        there = self._rows[self._row].cells
        if self._column > len(there):
            there.extend(" " * self._spend_blanks(self._column - len(there)))
            self._column = len(there)
        end = self._column + len(cells)
        if self._column < len(there):  # overwriting half of a wide character leaves a blank
            if not there[self._column] and cells and self._column:
                there[self._column - 1] = " "
            if end < len(there) and not there[end] and cells:
                there[end] = " "
        there[self._column : end] = cells
        self._column = end

    def _newline(self) -> None:
        self._row += 1
        self._column = 0
        if self._row == len(self._rows):
            self._rows.append(_Row())
        if self._row == len(self._rows) - 1:
            self._settle()

    def _settle(self) -> None:
        """Convert the rows above the last line back to text, until the cursor moves up again."""
        self._above += [row.text() + "\n" for row in self._rows[:-1]]
        self.lines += len(self._rows) - 1
        del self._rows[:-1]
        self._row = 0

    def _up(self, count: int) -> None:
        missing = min(count, self._reach) - self._row
        if missing > 0:
            self._reopen(missing)
        self._row = max(0, self._row - count)

    def _reopen(self, count: int) -> None:
        lines = "".join(self._above).rsplit("\n", count + 1)
        again = lines[-count - 1 : -1]
        self._above = [lines[0] + "\n"] if len(lines) == count + 2 else []
        self._rows[:0] = [_row(line) for line in again]
        self._row += len(again)
        self.lines -= len(again)

    def _execute(self, verb: str, params: str) -> None:
        self._blanks += BLANKS_PER_CHARACTER
        count = _number(params) if params else 0
        if verb in "ABCDEFG`":
            self._move(verb, max(1, count))
        elif verb == "J" and count == 0:
            _erase(self._rows[self._row], self._column, 0)
            del self._rows[self._row + 1 :]
        elif verb == "K":
            _erase(self._rows[self._row], self._column, count)
        elif verb in "P@X":
            count = max(1, count) if verb != "@" else self._spend_blanks(min(max(1, count), 256))
            _shift(self._rows[self._row].cells, verb, self._column, count)

    def _spend_blanks(self, blanks: int) -> int:
        """How many of these blanks the budget allows; deducts them."""
        granted = min(blanks, self._blanks)
        self._blanks -= granted
        return granted

    def _move(self, verb: str, count: int) -> None:
        if verb in "AF":
            self._up(count)
        elif verb in "BE":
            self._row = min(len(self._rows) - 1, self._row + count)
        elif verb == "C":
            self._column = min(LONGEST - 1, self._column + count)
        elif verb == "D":
            self._column = max(0, self._column - count)
        else:
            self._column = min(LONGEST - 1, count - 1)
        if verb in "EF":
            self._column = 0


def _shift(cells: list[str], verb: str, column: int, count: int) -> None:
    """Delete characters (P), blank them (X) or insert blanks (@) at a column."""
    stop = min(len(cells), column + count)
    if column >= stop:
        return
    if verb == "P":
        del cells[column:stop]
    elif verb == "X":
        cells[column:stop] = " " * (stop - column)
    else:
        cells[column:column] = " " * count
        del cells[LONGEST:]


def _row(line: str) -> _Row:
    """A row for an existing line. The first part of a very long line stays fixed, as when it was written."""
    whole = _cells(line, [], 0)
    fixed = len(whole) // LONGEST * LONGEST
    return _Row(whole[fixed:], ["".join(whole[:fixed])] if fixed else [])


def _erase(row: _Row, column: int, what: int) -> None:
    if what == 0:
        del row.cells[column:]
    elif what == 1:
        row.cells[: column + 1] = " " * min(column + 1, len(row.cells))
    elif what == 2:
        row.cells.clear()


def _number(params: str) -> int:
    digits = params.partition(";")[0][:6]
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def _cells(run: str, before: list[str], column: int) -> list[str]:
    """One string per cell: an empty one follows a wide character; combining marks share the cell of their base."""
    if run.isascii():
        return list(run)
    cells: list[str] = []
    for char in run:
        if unicodedata.combining(char) or char in "\u200d\ufe0e\ufe0f":
            if cells:
                at = -1 if cells[-1] or len(cells) == 1 else -2
                cells[at] += char
            elif 0 < column <= len(before):
                at = column - 1 if before[column - 1] or column == 1 else column - 2
                before[at] += char
            else:
                cells.append(char)
        elif unicodedata.east_asian_width(char) in "WF":
            cells += (char, "")
        else:
            cells.append(char)
    return cells
