"""Patterns of rules: globs for paths and hosts, word prefixes for commands.

A command pattern is written `git status`, `npm run test:*` or `make $`. Parsing and matching are pure: no file access. Matching does not backtrack, so no pattern is slow.
"""

import fnmatch
from collections.abc import Sequence

from handrail.lazy_dataclass import dataclass

STAR = "*"
_LONGEST = 4000
"""Characters of a pattern: a longer one could not be reviewed by a person."""


class BadPattern(Exception):
    """An invalid pattern; the message explains why and how to fix it."""


@dataclass(frozen=True, slots=True)
class Glob:
    """Text in which `*` matches anything; the pieces are the literals between the stars."""

    pieces: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "Glob":
        return cls(tuple(text.split(STAR)))

    @property
    def literal(self) -> str | None:
        """The only text it matches; None if it has a star."""
        return self.pieces[0] if len(self.pieces) == 1 else None

    def fits(self, text: str) -> bool:
        if len(self.pieces) == 1:
            return text == self.pieces[0]
        first, *middle, last = self.pieces
        at, end = len(first), len(text) - len(last)
        if at > end or not text.startswith(first) or not text.endswith(last):
            return False
        for piece in middle:  # the leftmost match is sufficient: no backtracking
            begin = text.find(piece, at, end)
            if begin < 0:
                return False
            at = begin + len(piece)
        return True

    def folded(self) -> "Glob":
        return Glob(tuple(piece.casefold() for piece in self.pieces))


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A glob over whole paths: `*` matches within a name, `**` across folders."""

    groups: tuple[tuple[Glob, ...], ...]
    """Globs for consecutive names; between two groups there is a `**`."""
    folds: bool
    """Ignore letter case."""

    @classmethod
    def of(cls, text: str, root: str | None, home: str, *, folds: bool = False) -> "PathPattern | None":
        """Parse a pattern; None if it is relative and there is no `root`. Raises BadPattern."""
        base, names = _anchored(check_text(text, "path"), root, home)
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
        """Whether a real, absolute path matches; `a/**` also matches `a`."""
        names = [name for name in (path.casefold() if self.folds else path).split("/") if name]
        first, *rest = self.groups
        if not rest:
            return len(names) == len(first) and _fits_at(first, names, 0)
        *middle, last = rest
        at, end = len(first), len(names) - len(last)
        if at > end or not _fits_at(first, names, 0) or not _fits_at(last, names, end):
            return False
        for group in middle:
            begin = next((i for i in range(at, end - len(group) + 1) if _fits_at(group, names, i)), None)
            if begin is None:
                return False
            at = begin + len(group)
        return True


def host_glob(text: str) -> Glob:
    """Parse a host pattern: a host name, or `*.` and a domain. Raises BadPattern."""
    host = check_text(text, "host").casefold().rstrip(".")
    rest = host.removeprefix("*.")
    if not rest or STAR in rest or any(letter in rest for letter in "/ @"):
        raise BadPattern(f"`{text}` is no host: write `example.org`, or `*.example.org` for all below it.")
    return Glob.of(host)


def spell_path(path: str) -> str:
    """A pattern that matches exactly this path. Raises BadPattern if the path has a star."""
    if STAR in path:
        raise BadPattern(f"`{path}` holds a star, so that no pattern fits it alone.")
    return path


def check_text(text: str, kind: str) -> str:
    """Validate and strip any pattern text: not empty, not too long, printable. Raises BadPattern."""
    if not text.strip():
        raise BadPattern(f"The {kind} is empty. Write what the rule is about.")
    if len(text) > _LONGEST:
        raise BadPattern(f"The {kind} is longer than {_LONGEST} characters. Write a shorter pattern.")
    if any(not letter.isprintable() for letter in text):
        raise BadPattern(f"The {kind} holds a character that cannot be seen. Remove it.")
    return text.strip()


def _anchored(text: str, root: str | None, home: str) -> tuple[str | None, list[str]]:
    """Split a path pattern into its literal base folder and the names below it."""
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
    """A prefix of a command; each glob matches one word of the command."""

    words: tuple[Glob, ...]
    ends: bool
    """The command must have no further words."""

    @classmethod
    def of(cls, text: str) -> "CommandPattern":
        """Parse a pattern: words with shell quoting, `*` within a word, `$` at the end. Raises BadPattern."""
        words = list(_split(check_text(text, "command")))
        ends = bool(words) and words[-1] is None
        globs = words[:-1] if ends else words
        if not globs or None in globs:
            raise BadPattern(
                f"`{text}` is no command: write a program and words it begins with; `$` only at the end."
            )
        prefix = tuple(glob for glob in globs if glob is not None)
        # `--no-pager` does not change what git does; wrappers.py also removes it from the words of a command.
        return cls(prefix[:1] + prefix[2:] if prefix[:2] == _UNPAGED and len(prefix) > 2 else prefix, ends)

    @property
    def program(self) -> str | None:
        """The program name; None if it is a glob."""
        return self.words[0].literal

    def fits(self, words: Sequence[str]) -> bool:
        globs = self.words
        if len(words) < len(globs) or (self.ends and len(words) > len(globs)):
            return False
        return all(glob.fits(word) for glob, word in zip(globs, words, strict=False))

    def may_fit(self, words: Sequence[str]) -> bool:
        """Whether a command could match once the shell has expanded it; for rules that ask or deny.

        Some file systems ignore letter case, and the shell can replace a glob in the command with several words.
        """
        globs = self.words
        if not globs[0].folded().fits(words[0].casefold()):
            return False
        if not all(_may_be(word, glob) for glob, word in zip(globs[1:], words[1:], strict=False)):
            return False
        if len(words) < len(globs):
            return len(words) > 1 and not _LIVE.isdisjoint(words[-1])
        return not self.ends or len(words) == len(globs)


def spell(words: Sequence[str], *, ends: bool = False) -> str:
    """Format words as pattern text that `CommandPattern.of` parses back to the same words."""
    return " ".join([*(_quoted(word) for word in words), *(["$"] if ends else [])])


def _quoted(word: str) -> str:
    if word and _PLAIN.issuperset(word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def _may_be(word: str, glob: Glob) -> bool:
    """Whether a word matches, or is a shell glob that could expand to a match."""
    if glob.fits(word):
        return True
    if _LIVE.isdisjoint(word):
        return False
    wide = word.partition("[")[0] + STAR if "[" in word else word
    return glob.literal is None or fnmatch.fnmatchcase(glob.literal, wide)


class _Word:
    """Builder for one word of a command pattern."""

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
        """The finished word; None for a bare `$`."""
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
    """Add a quoted string to the word; returns the position after it."""
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
