"""Parse a unified diff or SEARCH/REPLACE blocks into hunks.

Tolerates common mistakes of models: wrong counts, code fences, a missing space on an empty line. Reads the
extended header of git diffs: new or deleted file, mode. edit_tools.py applies the hunks.
"""

import re
from collections.abc import Sequence
from typing import Literal

from handrail.gate.tool import Refusal
from handrail.lazy_dataclass import dataclass

_MODE = re.compile(r"(old mode|new mode|new file mode|deleted file mode) ([0-7]{5,6})\s*")
_MOVED = ("rename from ", "rename to ", "copy from ", "copy to ")
_BINARY = ("GIT binary patch", "Binary files ")
_EXECUTABLE = {"100644": False, "100755": True}
"""The only modes git gives to a regular file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The header before the first hunk."""

    creates: bool = False
    deletes: bool = False
    executable: bool | None = None
    """Set or clear the executable bits; None when the diff has no mode."""

    @property
    def acts(self) -> bool:
        """Whether the header alone changes the file, without a hunk."""
        return self.creates or self.deletes or self.executable is not None


def read_head(lines: Sequence[str]) -> Head:
    """Parse the header. Raises Refusal for renames, copies, binary patches, links and several files."""
    for line in lines:
        _check(line)
    if sum(line.startswith("diff --git ") for line in lines) > 1:
        raise Refusal("The diff is of several files. apply_diff changes one file: send one call for each.")
    modes = {found[1]: found[2] for line in lines if (found := _MODE.fullmatch(line))}
    for mode in modes.values():
        _check_kind(mode)
    wanted = modes.get("new file mode") or modes.get("new mode")
    return Head(
        creates="new file mode" in modes or any(_is_nowhere("---", line) for line in lines),
        deletes="deleted file mode" in modes or any(_is_nowhere("+++", line) for line in lines),
        executable=None if wanted is None else _executable(wanted),
    )


def _check(line: str) -> None:
    if line.startswith(_MOVED):
        raise Refusal(
            f"The diff renames or copies the file ({line.strip()}), which apply_diff does not. Write the new file with "
            "write_file and delete the old one by a diff to /dev/null, or use execute_command."
        )
    if line.startswith(_BINARY):
        raise Refusal(f"The diff is more than a change of text ({line.strip()}). Use execute_command for it.")


def _check_kind(mode: str) -> None:
    if not mode.startswith("100"):
        raise Refusal(
            f"The diff is of a link or a submodule (mode {mode}), not of a file. Use execute_command for it."
        )


def _executable(mode: str) -> bool:
    if mode not in _EXECUTABLE:
        raise Refusal(
            f"The diff gives the file mode {mode}; apply_diff knows 100644 and 100755 (executable). Use one of them."
        )
    return _EXECUTABLE[mode]


def _is_nowhere(sign: str, line: str) -> bool:
    return line == f"{sign} /dev/null" or line.startswith((f"{sign} /dev/null\t", f"{sign} /dev/null\r"))


_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_SEARCH = re.compile(r"<{5,9} ?SEARCH\s*")
_DIVIDER = re.compile(r"={5,9}\s*")
_REPLACE = re.compile(r">{5,9} ?REPLACE\s*")

Sign = Literal[" ", "-", "+"]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a hunk."""

    sign: Sign
    text: str
    ends: bool = True
    """It ends with a newline."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines to find, and the lines that replace them."""

    name: str
    start: int | None
    """Number of the first old line, from 1; None when the patch has none."""
    rows: tuple[Row, ...]

    @property
    def old(self) -> list[Row]:
        return [row for row in self.rows if row.sign != "+"]

    @property
    def new(self) -> list[Row]:
        return [row for row in self.rows if row.sign != "-"]


@dataclass(frozen=True, slots=True)
class Patch:
    """The hunks and header of a patch for one file."""

    hunks: list[Hunk]
    head: Head


def parse(patch: str) -> Patch:
    """Parse a patch for one file. Raises Refusal."""
    lines = _unfenced(patch.split("\n"))
    if any(_SEARCH.fullmatch(line) for line in lines):
        parsed = Patch(_blocks(lines), Head())
    else:
        parsed = _Unified(lines).patch()
    if not parsed.hunks and not parsed.head.acts:
        raise Refusal(
            "The diff has no hunk. Give a unified diff with lines like `@@ -10,3 +10,4 @@`, or blocks of "
            "`<<<<<<< SEARCH`, `=======`, `>>>>>>> REPLACE`."
        )
    return parsed


def _unfenced(lines: list[str]) -> list[str]:
    while lines and lines[-1] == "":
        lines = lines[:-1]
    if len(lines) > 1 and lines[0].startswith("```") and lines[-1].strip() == "```":
        return lines[1:-1]
    return lines


def _blocks(lines: list[str]) -> list[Hunk]:
    hunks: list[Hunk] = []
    rows: list[Row] = []
    sign: Sign | None = None
    for line in lines:
        if sign is None and _SEARCH.fullmatch(line):
            sign, rows = "-", []
        elif sign == "-" and _DIVIDER.fullmatch(line):
            sign = "+"
        elif sign == "+" and _REPLACE.fullmatch(line):
            sign = None
            hunks.append(Hunk(f"Block {len(hunks) + 1}", None, tuple(rows)))
        elif sign is not None:
            rows.append(Row(sign, line))
    if sign is not None:
        lacks = "its `=======`" if sign == "-" else "its `>>>>>>> REPLACE`"
        raise Refusal(f"Block {len(hunks) + 1} of the diff lacks {lacks}. Nothing was changed.")
    return hunks


class _Unified:
    """Parses a unified diff from top to bottom."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    def patch(self) -> Patch:
        while self._at < len(self._lines) and not self._lines[self._at].startswith("@@"):
            self._at += 1
        head = read_head(self._lines[: self._at])
        return Patch(self._hunks(), head)

    def _hunks(self) -> list[Hunk]:
        found: list[Hunk] = []
        while self._at < len(self._lines):
            if not self._lines[self._at].startswith("@@"):
                raise Refusal(
                    f"Line {self._at + 1} of the diff begins another file or belongs to no hunk. apply_diff "
                    "changes one file: send one call for each."
                )
            found.append(self._hunk(f"Hunk {len(found) + 1}"))
        return found

    def _hunk(self, name: str) -> Hunk:
        header = _HEADER.match(self._lines[self._at])
        self._at += 1
        rows = None
        if header is not None:
            rows = self._counted(int(header[2] or 1), int(header[4] or 1))
        if rows is None:
            rows = self._uncounted()
        start = int(header[1]) if header is not None else None
        return Hunk(name, start, tuple(rows))

    def _counted(self, old: int, new: int) -> list[Row] | None:
        """The rows counted by the hunk header; None when the counts are wrong."""
        at, rows = self._at, list[Row]()
        while at < len(self._lines) and (old > 0 or new > 0 or self._lines[at].startswith("\\")):
            row = _row(self._lines[at])
            if row is None and not self._lines[at].startswith("\\"):
                return None
            old -= row is not None and row.sign != "+"
            new -= row is not None and row.sign != "-"
            _add(rows, row)
            at += 1
        at = self._past_blank(at)
        if old or new or not self._is_end(at):
            return None
        self._at = at
        return rows

    def _uncounted(self) -> list[Row]:
        """The rows up to the next hunk or the end."""
        end = self._at
        while not self._is_end(end):
            end += 1
        last = end
        while last > self._at and not self._lines[last - 1]:
            last -= 1  # blank lines before the next hunk are layout
        rows: list[Row] = []
        for number in range(self._at, last):
            row = _row(self._lines[number])
            if row is None and not self._lines[number].startswith("\\"):
                raise Refusal(
                    f"Line {number + 1} of the diff begins with {self._lines[number][:1]!r}; in a hunk every line "
                    "begins with a space, + or -. Nothing was changed."
                )
            _add(rows, row)
        self._at = end
        return rows

    def _past_blank(self, at: int) -> int:
        while at < len(self._lines) and not self._lines[at]:
            at += 1
        return at

    def _is_end(self, at: int) -> bool:
        if at >= len(self._lines) or self._lines[at].startswith(("@@", "diff --git ")):
            return True
        return self._lines[at].startswith("--- ") and "".join(self._lines[at + 1 : at + 2]).startswith("+++ ")


def _row(line: str) -> Row | None:
    match line[:1]:
        case "" | " ":
            return Row(" ", line[1:])
        case "-":
            return Row("-", line[1:])
        case "+":
            return Row("+", line[1:])
        case _:
            return None


def _add(rows: list[Row], row: Row | None) -> None:
    """Add a row; None stands for `\\ No newline at end of file` and changes the row before."""
    if row is not None:
        rows.append(row)
    elif rows:
        rows[-1] = Row(rows[-1].sign, rows[-1].text, ends=False)
