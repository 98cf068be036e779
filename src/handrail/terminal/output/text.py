"""Terminal bytes into lines of plain text, piece by piece or all at once.

Owns which bytes are text, and the fast way through output that only scrolls. Where the cursor goes back over what
stands already, sheet.py resolves it. It does not know where the bytes come from; it keeps no more than the lines a
cursor may still reach, however much is fed.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from handrail.terminal.output.sheet import Sheet

REACH = 100
"""Lines above the last one that a program may still go back to, as progress bars of several lines do."""
_BLOCK = 32 * 1024
"""Characters resolved together: one line with movements in it costs this many the slow way."""
_NOTES = 100_000
"""Of where lines were overwritten: beyond these, the line numbers of hostile output are approximate."""
_COLOURS = re.compile(r"\x1b\[(?:[0-9;:]{0,256}m|0?K)")
"""By far the most frequent; erasing to the right erases nothing where the cursor only goes forward."""
_STRINGS = ("\x1b]", "\x1bP", "\x1bX", "\x1b^", "\x1b_")
_STRING = re.compile(r"\x1b[\]PX^_][^\x07\x18\x1a\x1b]*(?:[\x07\x18\x1a]|\x1b\\|(?=\x1b)|\Z)")
"""OSC, DCS, SOS, PM, APC: titles, links, clipboard, images. The next escape ends one that was never ended."""
_STRING_END = re.compile(r"[\x07\x18\x1a\x1b]")
_STILL = re.compile(
    r"\x1b\[[0-?]{0,256}[ -/]{0,8}[HIL-OQ-WYZ\[-_a-~]"  # CSI that moves nothing on a line: modes, positions
    r"|\x1b\[0?K"
    r"|\x1b[ -/]{1,8}[0-~]"  # character sets
    r"|\x1b[0-LN-OQ-WYZ\\`-~]"  # two-character escapes
    f"|{_STRING.pattern}"
)
"""In one go: what is left when one sequence is taken out must not become another."""
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]{0,256}[ -/]{0,8}|[ -/]{0,8})\Z")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_INNER_RETURN = re.compile(r"\r(?!\r*\n)")
_CONTROLS = bytes([*range(9), *range(0x0B, 0x20), 0x7F])
_C1 = re.compile(b"\xc2[\x80-\x9f]")


def plain(data: bytes) -> str:
    """The text as it would stand after the terminal showed it, line by line; bad UTF-8 is replaced."""
    paper = Paper()
    return paper.feed(data) + paper.finish()


class Paper:
    """Turns output into text as it comes. Where it is cut into pieces makes no difference to the text."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""
        self._in_string = False
        self._sheet = Sheet(REACH)
        self._lines = 0
        self.overwritten: list[tuple[int, int]] = []
        """From which line of the text on (from zero) how many more lines were printed than stand."""

    def feed(self, data: bytes) -> str:
        """The text that nothing can change any more."""
        return "".join(self._take(self._decoder.decode(data)))

    @property
    def rest(self) -> str:
        """The text that may still change, as it stands now."""
        return self._sheet.text

    def finish(self) -> str:
        """The rest, as it stands."""
        return "".join(self._take(self._decoder.decode(b"", True))) + self._sheet.close()

    def _take(self, text: str) -> Iterator[str]:
        fed = self._held + text
        text = self._whole_sequences(fed)
        if len(text) + len(self._held) != len(fed):  # lines within a string are printed too, if not shown
            self._lines += fed.count("\n") - text.count("\n")
        at = 0
        while at < len(text):
            end = self._block_end(text, at)
            self._resolve(text[at:end])
            yield self._sheet.drain()
            at = end

    def _whole_sequences(self, text: str) -> str:
        """Without what is cut off at the end: an escape is held for the next piece, of a string nothing is needed."""
        if self._in_string:
            text = self._after_string(text)
        self._held = ""
        escape = text.rfind("\x1b")
        if escape >= 0 and _UNFINISHED.match(text, escape):
            self._held, text = text[escape:], text[:escape]
            escape = text.rfind("\x1b")
        if _is_open(text, escape, len(text)):
            self._in_string = self._held in ("", "\x1b")  # the latter may end it
            text = text[:escape]
        return text

    def _after_string(self, text: str) -> str:
        end = _STRING_END.search(text)
        if end is None:
            return ""
        at = end.start()
        if text[at] == "\x1b" and at + 1 == len(text):
            return "\x1b"  # what it means stands in the next piece
        self._in_string = False
        return (
            text[at:]
            if text[at] == "\x1b" and text[at + 1] != "\\"
            else text[at + 1 + (text[at] == "\x1b") :]
        )

    def _block_end(self, text: str, at: int) -> int:
        """Where a line ends: many lines on, or the next one while the sheet is in use."""
        end = text.rfind("\n", at, at + _BLOCK) + 1 if self._sheet.clean else 0
        end = end or text.find("\n", at) + 1 or len(text)
        while end < len(text) and _is_open(
            text, text.rfind("\x1b", at, end), end
        ):  # that line end belongs to a string
            end = text.find("\n", end) + 1 or len(text)
        return end

    def _resolve(self, text: str) -> None:
        until = self._lines + text.count("\n")
        if not self._append(text):
            for line in _LINE.findall(_STRING.sub("\0", text)):
                if not self._append(line):
                    self._sheet.write(line)
                self._lines += line[-1] == "\n"
                self._note()
        self._lines = until
        self._note()

    def _append(self, text: str) -> bool:
        """Complete lines that only scroll, onto a clean sheet; False when these are none."""
        lines = _scrolled(text) if self._sheet.clean and text[-1] == "\n" else None
        if lines is not None:
            self._sheet.append(lines)
        return lines is not None

    def _note(self) -> None:
        if self._sheet.clean and len(self.overwritten) < _NOTES:
            more = self._lines - self._sheet.lines
            if more != (self.overwritten[-1][1] if self.overwritten else 0):
                self.overwritten.append((self._sheet.lines, more))


def _is_open(text: str, escape: int, end: int) -> bool:
    """Whether the last escape before `end` begins a string that has not ended there."""
    return (
        escape >= 0
        and text[escape : escape + 2] in _STRINGS
        and not _STRING_END.search(text, escape + 1, end)
    )


def _scrolled(text: str) -> str | None:
    """Complete lines without their escapes and controls; None when the cursor goes back somewhere in them."""
    if "\b" in text or (text.count("\r") != text.count("\r\n") and _INNER_RETURN.search(text)):
        return None
    if "\x1b" in text:
        text, marked = _COLOURS.sub("", text), text
        if "\x1b" in text:
            text = _STILL.sub("", marked)
            if "\x1b" in text:
                return None
    data = text.encode().translate(None, _CONTROLS)
    return (_C1.sub(b"", data) if b"\xc2" in data else data).decode()
