"""Keys by name, as the bytes a terminal sends for them.

Owns the names and their spellings. It does not know who presses them, nor what the terminal is set to.

What a person's keys are, as they arrive: text, and keys that have a name.
"""

from __future__ import annotations

import codecs
import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


_CURSOR = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
_TILDE = {
    "insert": 2,
    "delete": 3,
    "page-up": 5,
    "page-down": 6,
    "f5": 15,
    "f6": 17,
    "f7": 18,
    "f8": 19,
    "f9": 20,
    "f10": 21,
    "f11": 23,
    "f12": 24,
}
_PF = {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_PLAIN = {"enter": "\r", "tab": "\t", "escape": "\x1b", "backspace": "\x7f", "space": " "}
_SAME = {
    "return": "enter",
    "cr": "enter",
    "newline": "enter",
    "esc": "escape",
    "bs": "backspace",
    "bspace": "backspace",
    "del": "delete",
    "dc": "delete",
    "ins": "insert",
    "ic": "insert",
    "spc": "space",
    "pgup": "page-up",
    "pageup": "page-up",
    "ppage": "page-up",
    "prior": "page-up",
    "pgdn": "page-down",
    "pgdown": "page-down",
    "pagedown": "page-down",
    "npage": "page-down",
    "next": "page-down",
    "arrowup": "up",
    "arrowdown": "down",
    "arrowleft": "left",
    "arrowright": "right",
    "uparrow": "up",
    "downarrow": "down",
    "leftarrow": "left",
    "rightarrow": "right",
    "cursorup": "up",
    "cursordown": "down",
    "cursorleft": "left",
    "cursorright": "right",
    "plus": "+",
    "minus": "-",
    "hyphen": "-",
    "backslash": "\\",
    "backtab": "shift-tab",
    "btab": "shift-tab",
    "break": "ctrl-c",
    "eof": "ctrl-d",
}
_MODIFIERS = {
    "ctrl": 4,
    "control": 4,
    "c": 4,
    "alt": 2,
    "meta": 2,
    "option": 2,
    "opt": 2,
    "m": 2,
    "a": 2,
    "shift": 1,
    "s": 1,
}
_CONTROLS = {"space": 0, "@": 0, "2": 0, "[": 27, "\\": 28, "]": 29, "^": 30, "_": 31, "/": 31, "?": 127}
_NAMED = (*_PLAIN, *_CURSOR, *_PF, *_TILDE)
NAMES: tuple[str, ...] = (
    *_NAMED,
    "shift-tab",
    *(f"ctrl-{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"),
    "ctrl-space",
    *(f"ctrl-{sign}" for sign in "[\\]^_"),
    *(f"{modifier}-{key}" for modifier in ("shift", "alt", "ctrl") for key in _CURSOR),
)
"""The names to offer; more spellings are understood (`C-c`, `^C`, `Ctrl+C`, `ArrowUp`), and more combinations."""


class UnknownKey(Exception):
    """A name that is no key, and the nearest that are."""


def encode(names: Sequence[str], application: bool = False) -> bytes:
    """The bytes that these keys send, in order. `application`: the program has asked for application cursor keys."""
    return b"".join(_encode(name, application) for name in names)


def _encode(name: str, application: bool) -> bytes:
    modifiers, key = _parse(name)
    sent = _send(key, modifiers, application)
    if not sent or any("\ud800" <= char <= "\udfff" for char in sent):
        raise UnknownKey(_sentence(name))
    return sent.encode()


def _parse(name: str) -> tuple[int, str]:
    """Which modifiers, as a sum of bits, and which key."""
    rest, modifiers = name.strip() if name.strip() else name, 0
    while True:
        if len(rest) == 2 and rest[0] == "^":
            rest, modifiers = rest[1], modifiers | 4
        elif (found := re.fullmatch(r"([A-Za-z]+)[-+](.+)", rest, re.DOTALL)) and (
            bit := _MODIFIERS.get(found[1].lower())
        ):
            rest, modifiers = found[2], modifiers | bit
        else:
            break
    if len(rest) == 1 and rest != " ":
        return modifiers, rest
    lower = rest.lower() if rest != " " else "space"
    squeezed = re.sub(r"[-_ ]", "", lower)
    key = _SAME.get(squeezed, squeezed if squeezed in _NAMED else lower)
    if key != lower and "-" in key and key not in _NAMED:
        inner, key = _parse(key)
        modifiers |= inner
    return modifiers, key


def _send(key: str, modifiers: int, application: bool) -> str | None:
    if key in _CURSOR:
        if modifiers:
            return f"\x1b[1;{modifiers + 1}{_CURSOR[key]}"
        return f"\x1b{'O' if application else '['}{_CURSOR[key]}"
    if key in _PF:
        return f"\x1b[1;{modifiers + 1}{_PF[key]}" if modifiers else f"\x1bO{_PF[key]}"
    if key in _TILDE:
        return f"\x1b[{_TILDE[key]};{modifiers + 1}~" if modifiers else f"\x1b[{_TILDE[key]}~"
    return _send_character(key, modifiers)


def _send_character(key: str, modifiers: int) -> str | None:
    if key == "tab" and modifiers & 1:
        sent: str | None = "\x1b[Z"
    elif modifiers & 4:
        sent = _control(key)
    else:
        sent = _PLAIN.get(key, key if len(key) == 1 else None)
        if sent is not None and modifiers & 1 and len(key) == 1:
            sent = sent.upper()
    return sent if sent is None or not modifiers & 2 else "\x1b" + sent


def _control(key: str) -> str | None:
    if len(key) == 1 and key.isascii() and key.isalpha():
        return chr(ord(key.lower()) - 96)
    code = _CONTROLS.get(key)
    if code is not None:
        return chr(code)
    return {"enter": "\r", "tab": "\t", "escape": "\x1b", "backspace": "\b"}.get(key)


def _sentence(name: str) -> str:
    near = difflib.get_close_matches(name.strip().lower(), NAMES, n=3, cutoff=0.4)
    offer = f"Did you mean {' or '.join(near)}?" if near else "Keys are called enter, up, f5, ctrl-c, alt-x …"
    return f"There is no key called {name[:40]!r}. {offer}"


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
    encode([name], application).decode(): f"<{name}>"
    for application in (False, True)
    for name in NAMES
    if not name.startswith("ctrl-") or len(encode([name])) > 1
}
