"""Lines on which a cursor moves: overwritten progress bars, edited command lines, bars of several lines.

Owns what carriage returns, backspaces, erasing and relative movement do to the last lines of a text. It has no width
and no height, so it does not know wrapping nor absolute positions: a screen does (screen.py). Work and memory are in
proportion to what is written, whatever that is.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

LONGEST = 16 * 1024
"""Cells of one line a cursor can move over; what is longer stands, and the line goes on after it."""
BLANKS = 64 * 1024
BLANKS_PER_CHARACTER = 8
"""Blanks that movements may leave before text, at first and for each character or movement: a few bytes that go to the
right end of every line must not become gigabytes of nothing. Beyond that, text stands right after what was there."""
_TOKEN = re.compile(
    r"([^\x00-\x08\x0a-\x1f\x7f-\x9f]+)"
    r"|\x1b\[([0-?]{0,256})[ -/]{0,8}([@-~])"
    r"|(\x1b[ -/]{0,8}[0-~]|[\r\n\b])"
)


@dataclass(slots=True)
class _Row:
    cells: list[str] = field(default_factory=list[str])
    stands: list[str] = field(default_factory=list[str])
    """Before the cells, out of the cursor's reach."""

    def text(self) -> str:
        return "".join((*self.stands, *self.cells))


class Sheet:
    """The last lines of a text, and a cursor among them."""

    def __init__(self, reach: int) -> None:
        self._reach = reach
        self._above: list[str] = []
        self._rows = [_Row()]
        self._row = 0
        self._column = 0
        self._blanks = BLANKS
        self.lines = 0
        """How many lines are complete, those already taken away included."""

    @property
    def clean(self) -> bool:
        """The cursor stands at the beginning of an empty last line."""
        return (
            len(self._rows) == 1 and not self._column and not self._rows[0].cells and not self._rows[0].stands
        )

    def append(self, lines: str) -> None:
        """Complete lines of mere text, onto a clean sheet."""
        self._above.append(lines)
        self.lines += lines.count("\n")

    def write(self, text: str) -> None:
        """Text with whatever moves the cursor."""
        for run, params, verb, other in _TOKEN.findall(text):
            if run:
                self._put(run)
            elif verb:
                self._obey(verb, params)
            elif other == "\r":
                self._column = 0
            elif other == "\n":
                self._newline()
            elif other == "\b":
                self._column = max(0, self._column - 1)
            elif other == "\x1bM":
                self._up(1)

    def drain(self) -> str:
        """The lines that no cursor can reach any more."""
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
        """All that was not drained yet."""
        return "".join(self._above) + "\n".join(row.text() for row in self._rows)

    def close(self) -> str:
        """All that is left."""
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
            row.stands.append("".join(row.cells))
            row.cells, self._column = [], 0
            at += room
        self._overwrite(cells[at:] if at else cells)
        self._blanks += BLANKS_PER_CHARACTER * len(run)

    def _overwrite(self, cells: list[str]) -> None:
        there = self._rows[self._row].cells
        if self._column > len(there):
            there.extend(" " * self._afford(self._column - len(there)))
            self._column = len(there)
        end = self._column + len(cells)
        if self._column < len(there):  # half of a wide character that is written over leaves a blank
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
        """Everything above the last line is text again, until a cursor goes up."""
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

    def _obey(self, verb: str, params: str) -> None:
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
            count = max(1, count) if verb != "@" else self._afford(min(max(1, count), 256))
            _shift(self._rows[self._row].cells, verb, self._column, count)

    def _afford(self, blanks: int) -> int:
        """How many of these blanks may be written."""
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
    """Characters deleted, blanks inserted, or characters blanked, at a column."""
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
    """A line taken up again. Of a very long one the first part stays as it is, as when it was written."""
    whole = _cells(line, [], 0)
    stands = len(whole) // LONGEST * LONGEST
    return _Row(whole[stands:], ["".join(whole[:stands])] if stands else [])


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
    """One string for each cell: a wide character has an empty one after it, marks stand with what they mark."""
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
