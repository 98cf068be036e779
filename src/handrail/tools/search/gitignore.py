""".gitignore rules, read as ripgrep reads them, and globs as regular expressions.

Globs: `*`, `?`, `[a-z]`, `{a,b}`, and `**` for any number of folders.
"""

import os
import re
import stat
from functools import lru_cache
from pathlib import Path

NAME = ".gitignore"
_SIZE_MAX = 1 << 20
"""Bytes read of one .gitignore, against huge files of that name."""


class Rules:
    """The patterns of one .gitignore; the last match wins."""

    def __init__(self, text: str) -> None:
        lines = (_clean(line.removesuffix("\r")) for line in text.split("\n"))
        self._rules = [_rule(line) for line in lines if line and not line.startswith("#")]

    def verdict(self, path: str, *, folder: bool) -> bool | None:
        """True: ignored; False: re-included by `!`; None: no pattern matches."""
        for regex, hidden, folders_only in reversed(self._rules):
            if (folder or not folders_only) and regex.fullmatch(path):
                return hidden
        return None


class Ignore:
    """The rules for one folder: its own .gitignore and those of its parents."""

    def __init__(self, levels: tuple[tuple[Rules, str], ...] = ()) -> None:
        self._levels = levels
        """Nearest first, each with the relative path from its folder to this one."""

    @classmethod
    def at(cls, folder: str) -> "Ignore":
        """Rules for the folder where a walk starts; parents count up to the root of its git work tree."""
        above = cls()
        if is_in_git(folder):
            for path in reversed([Path(folder), *Path(folder).parents][: _depth_in_git(folder) + 1]):
                above = above.below(path.name, read_rules(str(path / NAME)), fresh=(path / ".git").exists())
            return above
        return above.below("", read_rules(str(Path(folder) / NAME)))

    def below(self, name: str, rules: Rules | None, *, fresh: bool = False) -> "Ignore":
        """Rules for a subfolder. `fresh`: it is the root of a git work tree, so parents do not count."""
        above = () if fresh else tuple((level, f"{way}{name}/") for level, way in self._levels)
        return Ignore(above if rules is None else ((rules, ""), *above))

    def hides(self, name: str, *, folder: bool) -> bool:
        if name == ".git":
            return True
        for rules, way in self._levels:
            verdict = rules.verdict(way + name, folder=folder)
            if verdict is not None:
                return verdict
        return False


def is_in_git(folder: str) -> bool:
    return _depth_in_git(folder) >= 0


def _depth_in_git(folder: str) -> int:
    """Levels up to the root of the git work tree; -1 when the folder is in none."""
    for depth, path in enumerate([Path(folder), *Path(folder).parents]):
        if os.path.lexists(path / ".git"):
            return depth
    return -1


def read_rules(path: str) -> Rules | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None  # reading a named pipe would block
        return Rules(file.read(_SIZE_MAX).decode(errors="replace"))


def _clean(line: str) -> str:
    """Strip trailing blanks, unless the last one is escaped."""
    return re.sub(r"(?<!\\)[ \t]+$", "", line)


def _rule(line: str) -> tuple[re.Pattern[str], bool, bool]:
    hidden = not line.startswith("!")
    line = line if hidden else line[1:]
    folders_only = line.endswith("/")
    line = line.rstrip("/") if folders_only else line
    pattern = line.lstrip("/") if "/" in line else f"**/{line}"
    return compile_glob(pattern), hidden, folders_only


class Glob:
    """A glob for paths: with a slash it matches the whole path, without one only the name."""

    def __init__(self, pattern: str) -> None:
        self._whole = "/" in pattern.removeprefix("./")
        self._regex = compile_glob(pattern.removeprefix("./").lstrip("/"))

    def matches(self, path: str) -> bool:
        return self._regex.fullmatch(path if self._whole else path.rpartition("/")[2]) is not None


@lru_cache(256)
def compile_glob(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(translate(pattern), re.DOTALL)
    except re.error:
        return re.compile(re.escape(pattern))


def translate(pattern: str) -> str:
    """Translate a glob to a regular expression for a whole path."""
    braces = pattern.count("{") == pattern.count("}")
    parts: list[str] = []
    depth = 0
    for token in _TOKENS.finditer(pattern):
        kind, text = token.lastgroup or "", token.group()
        if kind == "brace":
            inside = braces and (depth > 0 or text == "{")
            depth += braces * ((text == "{") - (text == "}"))
            parts.append(_BRACES[text] if inside else re.escape(text))
        else:
            parts.append(_piece(kind, text))
    return "".join(parts)


_TOKENS = re.compile(
    r"""
    (?P<folders> (?:^|(?<=/)) \*\*/ )
    | (?P<all> (?:^|(?<=/)) \*\*$ )
    | (?P<some> \*+ )
    | (?P<one> \? )
    | (?P<set> \[ [!^]? \]? [^]]* \] )
    | (?P<brace> [{},] )
    | (?P<escaped> \\. )
    | (?P<plain> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_BRACES = {"{": "(?:", ",": "|", "}": ")"}
_FIXED = {"folders": "(?:.*/)?", "all": ".+", "some": "[^/]*", "one": "[^/]"}


def _piece(kind: str, text: str) -> str:
    match kind:
        case "set":
            return _set(text[1:-1])
        case "escaped":
            return re.escape(text[1])
        case "plain":
            return re.escape(text)
        case _:
            return _FIXED[kind]


def _set(inner: str) -> str:
    negated = inner[:1] in ("!", "^")
    chosen = re.sub(r"([\\\[\]^&~|])", r"\\\1", inner[1:] if negated else inner)
    return f"(?!/)[{'^' if negated else ''}{chosen}]"
