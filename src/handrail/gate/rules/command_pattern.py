"""The words a command begins with, as a rule names them: `git status`, `npm run test:*`, `make $`.

Owns reading such a pattern and writing one. It does not read shell lines (shell.py): it is given a command's words.
"""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass

from handrail.gate.rules.pattern import STAR, BadPattern, Glob, checked

_OPERATORS = frozenset(";|&<>()`")
_LIVE = frozenset("*?[")
_UNPAGED = (Glob(("git",)), Glob(("--no-pager",)))
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,")


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """The words a command begins with; each word of the pattern is about one word of the command."""

    words: tuple[Glob, ...]
    ends: bool
    """Nothing may follow."""

    @classmethod
    def of(cls, text: str) -> "CommandPattern":
        """Read a pattern: words as a shell would split them, `*` within a word, `$` at the end. Raises BadPattern."""
        words = list(_split(checked(text, "command")))
        ends = bool(words) and words[-1] is None
        found = words[:-1] if ends else words
        if not found or None in found:
            raise BadPattern(
                f"`{text}` is no command: write a program and words it begins with; `$` only at the end."
            )
        named = tuple(word for word in found if word is not None)
        # That option changes nothing of what git does, and is not among the words of a command either (wrappers.py).
        return cls(named[:1] + named[2:] if named[:2] == _UNPAGED and len(named) > 2 else named, ends)

    @property
    def program(self) -> str | None:
        """The program it names; None when that is a glob."""
        return self.words[0].literal

    def fits(self, words: Sequence[str]) -> bool:
        wanted = self.words
        if len(words) < len(wanted) or (self.ends and len(words) > len(wanted)):
            return False
        return all(glob.fits(word) for glob, word in zip(wanted, words, strict=False))

    def may_fit(self, words: Sequence[str]) -> bool:
        """Whether a command may come to this; whoever forbids it wants to know.

        Some file systems find a program in any letter case, and the shell may put several words in a pattern's place.
        """
        wanted = self.words
        if not wanted[0].folded().fits(words[0].casefold()):
            return False
        if not all(_may_be(word, glob) for glob, word in zip(wanted[1:], words[1:], strict=False)):
            return False
        if len(words) < len(wanted):
            return len(words) > 1 and not _LIVE.isdisjoint(words[-1])
        return not self.ends or len(words) == len(wanted)


def spell(words: Sequence[str], *, ends: bool = False) -> str:
    """The pattern of exactly these words, so that `CommandPattern.of` reads them again."""
    return " ".join([*(_quoted(word) for word in words), *(["$"] if ends else [])])


def _quoted(word: str) -> str:
    if word and _PLAIN.issuperset(word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def _may_be(word: str, glob: Glob) -> bool:
    """Whether it is what is wanted, or is a pattern that may stand for it."""
    if glob.fits(word):
        return True
    if _LIVE.isdisjoint(word):
        return False
    wide = word.partition("[")[0] + STAR if "[" in word else word
    return glob.literal is None or fnmatch.fnmatchcase(glob.literal, wide)


class _Word:
    """A word of a command pattern while it is read."""

    def __init__(self) -> None:
        self.pieces: list[str] = [""]
        self.begun = False
        self.quoted = False

    def add(self, text: str) -> None:
        self.pieces[-1] += text
        self.begun = True

    def star(self) -> None:
        self.pieces.append("")
        self.begun = True

    def take(self) -> Glob | None:
        """The word; None for a bare `$`."""
        bare = self.pieces == ["$"] and not self.quoted
        return None if bare else Glob(tuple(self.pieces))


def _split(text: str) -> "list[Glob | None]":
    words: list[Glob | None] = []
    word, at = _Word(), 0
    while at < len(text):
        letter = text[at]
        if letter in "'\"":
            at = _quote(text, at, word)
            continue
        at += 1
        if letter.isspace():
            if word.begun:
                words.append(word.take())
            word = _Word()
        elif letter == "\\":
            word.add(text[at : at + 1] or _unfinished(text, "backslash"))
            word.quoted = True
            at += 1
        elif letter == STAR:
            word.star()
        elif letter in _OPERATORS:
            raise BadPattern(
                f"`{text}` holds `{letter}`, which joins commands: a rule is about one command at a time. Quote it if it is meant."
            )
        else:
            word.add(letter)
    if word.begun:
        words.append(word.take())
    return words


def _quote(text: str, at: int, word: _Word) -> int:
    """Take what stands in quotes; where to go on."""
    mark = text[at]
    word.add("")
    word.quoted = True
    at += 1
    while at < len(text) and text[at] != mark:
        if mark == '"' and text[at] == "\\" and text[at + 1 : at + 2] in ("\\", '"', "$", "`"):
            at += 1
        word.add(text[at])
        at += 1
    if at == len(text):
        _unfinished(text, "quote")
    return at + 1


def _unfinished(text: str, what: str) -> str:
    raise BadPattern(f"`{text}` ends within a {what}. Close it, or remove it.")
