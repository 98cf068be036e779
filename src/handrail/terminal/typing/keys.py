"""Keys by name, as the bytes a terminal sends for them.

Owns the names and their spellings. It does not know who presses them, nor what the terminal is set to.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

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
