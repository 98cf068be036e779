"""Commands that read whole folders, such as `grep -r`, and the search for secrets that they would read.

Which files a program reads without an option (hidden ones, links) is known for those in `WALKERS`. When unsure it reports more.
"""

import fnmatch
import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from handrail.tools.protected_paths import has_own_below, is_protected, may_hold_secrets
from handrail.tools.workspace import Workspace

_LETTERS = 16
"""Short options in one word that are examined; a word with more is refused elsewhere."""


class Walker(NamedTuple):
    """A program that can read whole folders, and the options on which that depends. None stands for always."""

    recursive: re.Pattern[str] | None
    follows: re.Pattern[str] | None
    """Follow symbolic links below the folder."""
    hidden: re.Pattern[str] | None = None
    """Read hidden files too."""
    here: bool = False
    """Without a path it reads the working folder."""
    valued: str = ""
    """Short options that take a value, which may be the next word."""
    chooses: bool = False
    """Hidden files that a glob or type among its options names, or an ignore file excepts (`!.env`), are read too."""


_NEVER = re.compile(r"(?!)")
_GREP = Walker(
    re.compile(r"-[a-zA-Z]*[rRd]|--(rec|der|dir)"),
    re.compile(r"-[a-zA-Z]*R|--der"),
    None,
    here=True,
    valued="ABCDdefm",
)
_RIPGREP = Walker(
    None,
    re.compile(r"-[a-zA-Z]*[Lf]|--fol"),
    re.compile(r"-[a-zA-Z]*(\.|u[a-zA-Z]*u)|-[a-zA-Z]*[ua]$|--(hid|unr)"),
    here=True,
    valued="ABCEGMTdefgjmrt",
    chooses=True,
)
WALKERS: dict[str, Walker] = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "ugrep", "zgrep", "bzgrep", "xzgrep", "zstdgrep"), _GREP),
    "rgrep": _GREP._replace(recursive=None),
    **dict.fromkeys(("rg", "ag"), _RIPGREP),
    "ack": _RIPGREP._replace(hidden=None),
    "cp": Walker(re.compile(r"-[a-zA-Z]*[rRa]|--(rec|arc)"), re.compile(r"-[a-zA-Z]*L|--der")),
    "scp": Walker(re.compile(r"-[a-zA-Z0-9]*r"), None),
    "rsync": Walker(None, re.compile(r"-[a-zA-Z]*[Lk]|--copy")),
    "tar": Walker(re.compile(r"-?[a-zA-Z]*[cru]|--(cre|app|upd)"), re.compile(r"-?[a-zA-Z]*h|--der")),
    "zip": Walker(re.compile(r"-[a-zA-Z]*[rR]|--rec"), None),
    "diff": Walker(None, None),  # of two folders, even without -r, it reads all files at the top
}
"""Programs that print only names (`find`, `ls`, `tree`, `du`) are not here."""
MOST_WALKED = 100_000
"""Entries examined below the folders that a line reads whole: about 0.2 seconds. Past that, the line asks."""


def find_walker(words: Sequence[str]) -> Walker | None:
    """How a command reads whole folders; None if it does not."""
    walker = WALKERS.get(words[0].rpartition("/")[2])
    return walker if walker is not None and _has_option(words, walker.recursive) else None


def _has_option(words: Sequence[str], pattern: re.Pattern[str] | None) -> bool:
    return pattern is None or any(pattern.match(word) for word in words[1:])


_SWITCHES = frozenset(
    [
        "recursive",
        "line-number",
        "no-line-number",
        "ignore-case",
        "case-sensitive",
        "smart-case",
        "word-regexp",
        "line-regexp",
        "fixed-strings",
        "extended-regexp",
        "basic-regexp",
        "perl-regexp",
        "pcre2",
        "invert-match",
        "count",
        "count-matches",
        "files",
        "files-with-matches",
        "files-without-match",
        "only-matching",
        "heading",
        "no-heading",
        "with-filename",
        "no-filename",
        "no-messages",
        "quiet",
        "silent",
        "column",
        "hidden",
        "trim",
        "no-ignore",
        "no-ignore-vcs",
        "multiline",
        "json",
        "stats",
        "vimgrep",
        "null",
        "text",
        "no-config",
    ]
)
"""Long options of search programs that take no value. Any other may have its value in the next word."""


def _count_operands(words: Sequence[str], valued: str) -> int:
    """How many words of a search command are surely neither options nor their values: the pattern, and paths."""
    count, at = 0, 1
    while at < len(words):
        word = words[at]
        if word == "--":
            return count + len(words) - at - 1
        count += not word.startswith("-") or word == "-"
        at += 2 if _takes_next(word, valued) else 1
    return count


def _takes_next(word: str, valued: str) -> bool:
    if word.startswith("--"):
        return "=" not in word and word[2:] not in _SWITCHES
    first = next((at for at, letter in enumerate(word) if letter in valued), None)
    return word.startswith("-") and first == len(word) - 1


class SecretSearch:
    """Searches the folders that a line reads whole for places that hold secrets."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._left = MOST_WALKED

    def are_read(self, words: Sequence[str], folders: Sequence[str], named: Sequence[str]) -> bool:
        """Whether a command reads a secret, or may; `named` are the paths among its words."""
        walker = find_walker(words)
        if walker is None:
            return False
        starts = [*named, *(folders if walker.here and _count_operands(words, walker.valued) < 2 else ())]
        hidden, follows = _has_option(words, walker.hidden), _has_option(words, walker.follows)
        chosen = ChosenNames(words) if walker.chooses and not hidden else None
        return any(self._holds(start, hidden, follows, chosen) for start in dict.fromkeys(starts))

    def are_chosen(self, folder: str, globs: Sequence[str]) -> bool:
        """Whether one of these globs chooses a secret below this folder, or may."""
        chosen = ChosenNames.of_globs(globs)
        folders = deque([folder])
        while folders:
            for entry in self._entries(folders.popleft(), True, None):
                if self._left <= 0 or (chosen.has(entry.name) and self._is_secret(entry, True)):
                    return True
                if entry.is_dir(follow_symlinks=False) and entry.name != ".git":
                    folders.append(entry.path)
        return False

    def _holds(self, start: str, hidden: bool, follows: bool, chosen: "ChosenNames | None") -> bool:
        if not os.path.isdir(start):  # noqa: PTH112
            return False
        if chosen is not None:
            chosen.read_ignore_files_above(start)
        if has_own_below(start, self._workspace.own, hidden=hidden or (chosen is not None and chosen.all)):
            return True
        folders = deque([start])
        while folders:
            for entry in self._entries(folders.popleft(), hidden, chosen):
                if self._left <= 0 or self._is_secret(entry, follows):
                    return True
                if entry.is_dir(follow_symlinks=False) and entry.name != ".git":
                    folders.append(entry.path)
        return False

    def _entries(self, folder: str, hidden: bool, chosen: "ChosenNames | None") -> Iterator[os.DirEntry[str]]:
        if chosen is not None:
            chosen.read_ignore_files(folder)
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._left -= 1
                    if (
                        hidden
                        or not entry.name.startswith(".")
                        or (chosen is not None and chosen.has(entry.name))
                    ):
                        yield entry
        except OSError:
            return

    def _is_secret(self, entry: os.DirEntry[str], follows: bool) -> bool:
        if may_hold_secrets(entry.name) and is_protected(entry.path, self._workspace.own):
            return True
        return follows and entry.is_symlink() and self._leads_out(entry.path)

    def _leads_out(self, link: str) -> bool:
        real, root = os.path.realpath(link), self._workspace.root
        inside = root is not None and (real == root or real.startswith(root.rstrip("/") + "/"))
        return not inside or is_protected(real, self._workspace.own)


_TYPED = re.compile(r"-[a-zA-Z]*t|--type(=|$)")
_CLUSTERED_GLOB = re.compile(r"-[a-zA-Z0-9.]*g")
_UNCLEAR = re.compile(r"[{}\\[].*")
_BRACES = re.compile(r"([^{}]*)\{([^{}]*)\}([^{}]*)")
_LARGEST_IGNORE_FILE = 64 * 1024
_IGNORE_FILES = (".gitignore", ".ignore", ".rgignore", ".git/info/exclude")


class ChosenNames:
    """Hidden names that ripgrep reads without `--hidden`.

    Its own rule: a file that a glob, a type or an exception of an ignore file names is read, hidden or not.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._typed = any(_TYPED.match(word) for word in words)
        self._patterns: set[str] = set()
        self._seen: set[str] = set()
        for word, after in zip(words[1:], (*words[2:], ""), strict=True):
            if word.startswith(("--g", "--ig")):
                self._add(word.partition("=")[2] or after)
            elif _CLUSTERED_GLOB.match(word):
                for at in (at for at, letter in enumerate(word[:_LETTERS]) if letter == "g"):
                    self._add(word[at + 1 :] or after)

    @classmethod
    def of_globs(cls, globs: Sequence[str]) -> "ChosenNames":
        """Some clients take several, with commas or blanks between them."""
        single = [part for glob in globs for part in ([glob] if "{" in glob else re.split(r"[\s,]+", glob))]
        return cls(("", *(f"--glob={glob}" for glob in single)))

    @property
    def all(self) -> bool:
        return self.has(".any.name")

    def has(self, name: str) -> bool:
        """Whether a hidden name may be read."""
        if self._typed and "." in name[1:]:
            return True
        name = name.casefold()
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self._patterns)

    def read_ignore_files_above(self, folder: str) -> None:
        while folder not in ("/", ""):
            folder = os.path.dirname(folder)  # noqa: PTH120
            self.read_ignore_files(folder)

    def read_ignore_files(self, folder: str) -> None:
        if folder in self._seen:
            return
        self._seen.add(folder)
        for name in _IGNORE_FILES:
            for line in _read_lines(f"{folder}/{name}"):
                if line.startswith("!"):
                    self._add(line[1:].strip())

    def _add(self, glob: str) -> None:
        """Add the patterns of each component of a glob, over-approximated."""
        if glob.startswith("!"):
            return
        found = _BRACES.fullmatch(glob)
        names = [f"{found[1]}{each}{found[3]}" for each in found[2].split(",")] if found else [glob]
        for name in names:
            self._patterns |= {
                _UNCLEAR.sub("*", part).casefold() for part in name.split("/") if part and part != "**"
            }
            if name.endswith("**"):
                self._patterns.add("*")


def _read_lines(path: str) -> list[str]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        content = os.read(descriptor, _LARGEST_IGNORE_FILE)
        more = ["!*"] if len(content) == _LARGEST_IGNORE_FILE else []  # the rest is not known
        return content.decode(errors="replace").splitlines() + more
    except OSError:
        return []
    finally:
        os.close(descriptor)
