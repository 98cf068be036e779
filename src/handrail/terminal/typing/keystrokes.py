"""What a person's keys are, as they arrive: text, and keys that have a name.

Owns the cutting of a byte stream from a keyboard. It does not know who pressed them, nor what the terminal made of
them. What a terminal program sends by itself (reports of the mouse, the focus, the cursor, its colours) is no key.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handrail.terminal.typing import keys

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECES_MAX = 256
"""Keys and stretches of text cut from one piece of input: bounds the work for a flood."""
REST_MAX = 256
"""Characters of an escape sequence that never ends before it is taken for what it looks like."""
ENTER = "<enter>"
BACKSPACE = "<backspace>"
LOOKED_AT = 4096
"""Bytes in which somebody's key is looked for: no program says so much by itself at once."""
_ESCAPE = re.compile(
    r"\x1b(?:"
    r"\[(?P<csi>[0-?]*[ -/]*[@-~])"
    r"|O(?P<ss3>[@-~])"
    r"|[\]PX^_](?P<report>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    r"|(?P<alt>[^\[O\]PX^_\x1b])"
    r")"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O|[\]PX^_][^\x07\x1b]*\x1b?)")
_REPORT = re.compile(r"[<?>=].*|[0-9;]*[cRntyIO]|[0-9;]*[Mm]")
_TEXT = re.compile(r"[^\x00-\x1f\x7f-\x9f]+")
_PASTE, _PASTED = "200~", "201~"


@dataclass(frozen=True, slots=True)
class Text:
    """Characters, as they would be read."""

    text: str


@dataclass(frozen=True, slots=True)
class Key:
    """A key by its name: `^C`, `<up>`."""

    name: str


@dataclass(frozen=True, slots=True)
class Passed:
    """What came after so many keys in one go that nobody pressed them one by one: counted, not cut."""

    lines: int
    size: int


class Keystrokes:
    """One keyboard's stream, cut into text and keys; what is unfinished waits for the rest."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._rest = ""
        self._pasting = False

    def feed(self, data: bytes, most: int = PIECES_MAX) -> Iterator[Text | Key | Passed]:
        """Cut what came. At most so many pieces are looked at one by one: whatever is fed takes a millisecond."""
        waiting, self._rest = self._rest + self._decode(data), ""
        at = 0
        while at < len(waiting):
            if waiting[at] == "\x1b" and self._is_unfinished(waiting, at):
                self._rest = waiting[at:]
                return
            if most <= 0:
                yield self._pass(waiting, at)
                return
            found, at = self._next(waiting, at)
            most -= 1
            if found is not None:
                yield found

    def _pass(self, waiting: str, at: int) -> Passed:
        """The rest in one go; whether it is inside a paste, and an escape cut off at its end, still count."""
        begun, ended = waiting.rfind(f"\x1b[{_PASTE}", at), waiting.rfind(f"\x1b[{_PASTED}", at)
        if begun != ended:
            self._pasting = begun > ended
        last = waiting.rfind("\x1b", at)
        if last >= 0 and self._is_unfinished(waiting, last):
            self._rest = waiting[last:]
        ends = [waiting.count(end, at) for end in ("\r", "\n", "\r\n")]
        return Passed(lines=ends[0] + ends[1] - ends[2], size=len(waiting) - at)

    def _is_unfinished(self, waiting: str, at: int) -> bool:
        # An escape alone is the key; what was begun comes whole, or in the next piece.
        return len(waiting) - at < REST_MAX and _UNFINISHED.fullmatch(waiting, at) is not None

    def _next(self, waiting: str, at: int) -> tuple[Text | Key | None, int]:
        if text := _TEXT.match(waiting, at):
            return Text(text[0]), text.end()
        if escape := _ESCAPE.match(waiting, at):
            return self._escape(escape), escape.end()
        if self._pasting and waiting[at] in "\r\n\t":
            return Text("\n" if waiting[at] in "\r\n" else "\t"), at + 1
        return Key(_name(waiting[at])), at + 1

    def _escape(self, found: re.Match[str]) -> Key | None:
        csi = found["csi"]
        if csi in {_PASTE, _PASTED}:
            self._pasting = csi == _PASTE
            return None
        if found["report"] is not None or (csi is not None and _REPORT.fullmatch(csi)):
            return None
        return Key(_KNOWN.get(found[0]) or _unnamed(found))


def is_typing(data: bytes) -> bool:
    """Whether any of it was pressed by somebody."""
    return len(data) > LOOKED_AT or any(True for _ in Keystrokes().feed(data))


def readable(data: bytes) -> tuple[str, int]:
    """An input as one text: keys by name, line ends as such, the last one left out; and how many lines follow."""
    parts: list[str] = []
    for found in Keystrokes().feed(data):
        if isinstance(found, Passed):
            return "".join(parts).removesuffix("\n"), max(1, found.lines)
        parts.append(found.text if isinstance(found, Text) else "\n" if found.name == ENTER else found.name)
    text = "".join(parts)
    return (ENTER if text == "\n" else text.removesuffix("\n")), 0


def _unnamed(found: re.Match[str]) -> str:
    return f"<alt-{found['alt']}>" if found["alt"] and found["alt"].isprintable() else "<key>"


def _name(char: str) -> str:
    if char in "\r\n":
        return ENTER
    if char in "\x7f\b":
        return BACKSPACE
    if known := _KNOWN.get(char):
        return known
    return f"^{chr(ord(char) ^ 64)}" if ord(char) < 32 else "<key>"


_KNOWN: dict[str, str] = {
    keys.encode([name], application).decode(): f"<{name}>"
    for application in (False, True)
    for name in keys.NAMES
    if not name.startswith("ctrl-") or len(keys.encode([name])) > 1
}
