"""Key names and their byte sequences, in both directions.

`encode` turns key names into the bytes that a terminal sends. `Keystrokes` splits input bytes into text and named
keys.
"""

from __future__ import annotations

import codecs
import difflib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from handrail.lazy_dataclass import dataclass

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
_ALIASES = {
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
"""The documented names. `encode` accepts other spellings (`C-c`, `^C`, `Ctrl+C`, `ArrowUp`) and combinations too."""


class UnknownKey(Exception):
    """An unknown key name; the message suggests similar names."""


def encode(names: Sequence[str], application: bool = False) -> bytes:
    """The bytes for these keys, in order. Raises UnknownKey.

    `application`: the program has turned on application cursor keys.
    """
    return b"".join(_encode(name, application) for name in names)


def _encode(name: str, application: bool) -> bytes:
    modifiers, key = _parse(name)
    sent = _build_sequence(key, modifiers, application)
    if not sent or any("\ud800" <= char <= "\udfff" for char in sent):
        raise UnknownKey(_unknown_key_message(name))
    return sent.encode()


def _parse(name: str) -> tuple[int, str]:
    """The modifiers, as a bit mask, and the key."""
    rest, modifiers = name.strip() if name.strip() else name, 0
    while True:
        if len(rest) == 2 and rest[0] == "^":
            rest, modifiers = rest[1], modifiers | 4
        elif (match := re.fullmatch(r"([A-Za-z]+)[-+](.+)", rest, re.DOTALL)) and (
            bit := _MODIFIERS.get(match[1].lower())
        ):
            rest, modifiers = match[2], modifiers | bit
        else:
            break
    if len(rest) == 1 and rest != " ":
        return modifiers, rest
    lower = rest.lower() if rest != " " else "space"
    squeezed = re.sub(r"[-_ ]", "", lower)
    key = _ALIASES.get(squeezed, squeezed if squeezed in _NAMED else lower)
    if key != lower and "-" in key and key not in _NAMED:
        inner, key = _parse(key)
        modifiers |= inner
    return modifiers, key


def _build_sequence(key: str, modifiers: int, application: bool) -> str | None:
    if key in _CURSOR:
        if modifiers:
            return f"\x1b[1;{modifiers + 1}{_CURSOR[key]}"
        return f"\x1b{'O' if application else '['}{_CURSOR[key]}"
    if key in _PF:
        return f"\x1b[1;{modifiers + 1}{_PF[key]}" if modifiers else f"\x1bO{_PF[key]}"
    if key in _TILDE:
        return f"\x1b[{_TILDE[key]};{modifiers + 1}~" if modifiers else f"\x1b[{_TILDE[key]}~"
    return _build_character(key, modifiers)


def _build_character(key: str, modifiers: int) -> str | None:
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


def _unknown_key_message(name: str) -> str:
    near = difflib.get_close_matches(name.strip().lower(), NAMES, n=3, cutoff=0.4)
    offer = f"Did you mean {' or '.join(near)}?" if near else "Keys are called enter, up, f5, ctrl-c, alt-x …"
    return f"There is no key called {name[:40]!r}. {offer}"


PIECES_MAX = 256
"""Pieces parsed from one chunk of input, a bound on the work for a flood."""
REST_MAX = 256
"""Characters buffered for an unfinished escape sequence; a longer one is parsed as it stands."""
ENTER = "<enter>"
BACKSPACE = "<backspace>"
REPLY_MAX = 4096
"""A larger input counts as typing without parsing: automatic terminal replies are never this long."""
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
    """Printable characters."""

    text: str


@dataclass(frozen=True, slots=True)
class Key:
    """A key by its name: `^C`, `<up>`."""

    name: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """The rest of an input beyond the limit of pieces: counted, not parsed."""

    lines: int
    size: int


class Keystrokes:
    """Splits an input stream into text and keys. An unfinished sequence is buffered until the next chunk."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._rest = ""
        self._pasting = False

    def feed(self, data: bytes, most: int = PIECES_MAX) -> Iterator[Text | Key | Skipped]:
        """Parse a chunk. At most `most` pieces are parsed, so that any chunk takes about a millisecond."""
        buffer, self._rest = self._rest + self._decode(data), ""
        at = 0
        while at < len(buffer):
            if buffer[at] == "\x1b" and self._is_unfinished(buffer, at):
                self._rest = buffer[at:]
                return
            if most <= 0:
                yield self._count_rest(buffer, at)
                return
            piece, at = self._next(buffer, at)
            most -= 1
            if piece is not None:
                yield piece

    def _count_rest(self, buffer: str, at: int) -> Skipped:
        """Count the rest; still tracks bracketed paste and buffers an unfinished sequence at the end."""
        begun, ended = buffer.rfind(f"\x1b[{_PASTE}", at), buffer.rfind(f"\x1b[{_PASTED}", at)
        if begun != ended:
            self._pasting = begun > ended
        last = buffer.rfind("\x1b", at)
        if last >= 0 and self._is_unfinished(buffer, last):
            self._rest = buffer[last:]
        ends = [buffer.count(end, at) for end in ("\r", "\n", "\r\n")]
        return Skipped(lines=ends[0] + ends[1] - ends[2], size=len(buffer) - at)

    def _is_unfinished(self, buffer: str, at: int) -> bool:
        # A lone escape is the Escape key; a started sequence arrives whole, or continues in the next chunk.
        return len(buffer) - at < REST_MAX and _UNFINISHED.fullmatch(buffer, at) is not None

    def _next(self, buffer: str, at: int) -> tuple[Text | Key | None, int]:
        if text := _TEXT.match(buffer, at):
            return Text(text[0]), text.end()
        if escape := _ESCAPE.match(buffer, at):
            return self._escape(escape), escape.end()
        if self._pasting and buffer[at] in "\r\n\t":
            return Text("\n" if buffer[at] in "\r\n" else "\t"), at + 1
        return Key(_key_name(buffer[at])), at + 1

    def _escape(self, match: re.Match[str]) -> Key | None:
        csi = match["csi"]
        if csi in {_PASTE, _PASTED}:
            self._pasting = csi == _PASTE
            return None
        if match["report"] is not None or (csi is not None and _REPORT.fullmatch(csi)):
            return None
        return Key(_NAMES_BY_SEQUENCE.get(match[0]) or _alt_key_name(match))


def is_typing(data: bytes) -> bool:
    """Whether the input holds text or keys, and not only automatic terminal replies."""
    return len(data) > REPLY_MAX or any(True for _ in Keystrokes().feed(data))


def readable(data: bytes) -> tuple[str, int]:
    """An input as text, with keys by name and without the last line end; and the number of omitted lines."""
    parts: list[str] = []
    for piece in Keystrokes().feed(data):
        if isinstance(piece, Skipped):
            return "".join(parts).removesuffix("\n"), max(1, piece.lines)
        parts.append(piece.text if isinstance(piece, Text) else "\n" if piece.name == ENTER else piece.name)
    text = "".join(parts)
    return (ENTER if text == "\n" else text.removesuffix("\n")), 0


def _alt_key_name(match: re.Match[str]) -> str:
    return f"<alt-{match['alt']}>" if match["alt"] and match["alt"].isprintable() else "<key>"


def _key_name(char: str) -> str:
    if char in "\r\n":
        return ENTER
    if char in "\x7f\b":
        return BACKSPACE
    if known := _NAMES_BY_SEQUENCE.get(char):
        return known
    return f"^{chr(ord(char) ^ 64)}" if ord(char) < 32 else "<key>"


_NAMES_BY_SEQUENCE: dict[str, str] = {
    encode([name], application).decode(): f"<{name}>"
    for application in (False, True)
    for name in NAMES
    if not name.startswith("ctrl-") or len(encode([name])) > 1
}
