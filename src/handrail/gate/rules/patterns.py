"""What rules are written in: globs over paths and hosts; commands are command_pattern.py's.

Owns how these are read, and what they fit. Pure: it looks at no file, and does not know what a rule does with a fit
(matching.py). No pattern makes a test slow: there is no backtracking.

The words a command begins with, as a rule names them: `git status`, `npm run test:*`, `make $`.
"""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass

STAR = "*"
_LONGEST = 4000
"""Characters of a pattern: more is no pattern, and nobody could read it."""


class BadPattern(Exception):
    """A pattern that cannot be meant; the sentence says why and what to write instead."""


@dataclass(frozen=True, slots=True)
class Glob:
    """Text in which `*` is anything; the pieces are what stands between the stars."""

    pieces: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "Glob":
        return cls(tuple(text.split(STAR)))

    @property
    def literal(self) -> str | None:
        """The one text it fits; None when it has a star."""
        return self.pieces[0] if len(self.pieces) == 1 else None

    def fits(self, text: str) -> bool:
        if len(self.pieces) == 1:
            return text == self.pieces[0]
        first, *middle, last = self.pieces
        at, end = len(first), len(text) - len(last)
        if at > end or not text.startswith(first) or not text.endswith(last):
            return False
        for piece in middle:  # leftmost is as good as any
            found = text.find(piece, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True

    def folded(self) -> "Glob":
        return Glob(tuple(piece.casefold() for piece in self.pieces))


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A glob over whole paths: `*` stays within a name, `**` crosses folders."""

    groups: tuple[tuple[Glob, ...], ...]
    """The names between one `**` and the next."""
    folds: bool
    """Letter case is not told apart."""

    @classmethod
    def of(cls, text: str, root: str | None, home: str, *, folds: bool = False) -> "PathPattern | None":
        """Read a pattern that is relative to `root`; None when it is relative and there is no root. Raises BadPattern."""
        base, names = _anchored(checked(text, "path"), root, home)
        if base is None:
            return None
        groups: list[list[Glob]] = [[Glob((name,)) for name in base.split("/") if name]]
        for name in names:
            if name == "**":
                groups.append([])
            else:
                groups[-1].append(Glob.of(name))
        folded = [[glob.folded() if folds else glob for glob in group] for group in groups]
        return cls(tuple(tuple(group) for group in folded), folds)

    def fits(self, path: str) -> bool:
        """Whether a real, absolute path fits; `a/**` fits `a` too."""
        names = [name for name in (path.casefold() if self.folds else path).split("/") if name]
        first, *rest = self.groups
        if not rest:
            return len(names) == len(first) and _fits_at(first, names, 0)
        *middle, last = rest
        at, end = len(first), len(names) - len(last)
        if at > end or not _fits_at(first, names, 0) or not _fits_at(last, names, end):
            return False
        for group in middle:
            found = next((i for i in range(at, end - len(group) + 1) if _fits_at(group, names, i)), None)
            if found is None:
                return False
            at = found + len(group)
        return True


def host_glob(text: str) -> Glob:
    """Read a host: itself, or `*.` and what its names end with. Raises BadPattern."""
    host = checked(text, "host").casefold().rstrip(".")
    rest = host.removeprefix("*.")
    if not rest or STAR in rest or any(letter in rest for letter in "/ @"):
        raise BadPattern(f"`{text}` is no host: write `example.org`, or `*.example.org` for all below it.")
    return Glob.of(host)


def spell_path(path: str) -> str:
    """A path as a pattern; raises BadPattern where it holds what a pattern would take for a glob."""
    if STAR in path:
        raise BadPattern(f"`{path}` holds a star, so that no pattern fits it alone.")
    return path


def checked(text: str, kind: str) -> str:
    """What any pattern must be. Raises BadPattern."""
    if not text.strip():
        raise BadPattern(f"The {kind} is empty. Write what the rule is about.")
    if len(text) > _LONGEST:
        raise BadPattern(f"The {kind} is longer than {_LONGEST} characters. Write a shorter pattern.")
    if any(not letter.isprintable() for letter in text):
        raise BadPattern(f"The {kind} holds a character that cannot be seen. Remove it.")
    return text.strip()


def _anchored(text: str, root: str | None, home: str) -> tuple[str | None, list[str]]:
    """The literal folder a path pattern starts from, and the names below it."""
    if text == "~" or text.startswith("~/"):
        base, below = home, text[2:]
    elif text.startswith("/"):
        base, below = "/", text[1:]
    else:
        base, below = root, text.removeprefix("./")
    names = [name for name in below.rstrip("/").split("/") if name]
    if any(name in (".", "..") for name in names):
        raise BadPattern(f"`{text}` goes up or stays: name the folder itself, without `.` and `..`.")
    if any("**" in name and name != "**" for name in names):
        raise BadPattern(
            f"`{text}` has a `**` that is not a name of its own: write `src/**` or `src/**/*.py`."
        )
    return base, names


def _fits_at(group: Sequence[Glob], names: Sequence[str], at: int) -> bool:
    return at + len(group) <= len(names) and all(
        glob.fits(name) for glob, name in zip(group, names[at : at + len(group)], strict=True)
    )


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
