"""Where the words of a command lead.

Owns which words are taken for paths, from which folders they count after `cd`, and whether all of that lies inside the
workspace and touches nothing protected. A word is rather taken for a path than not. It opens nothing.

What a pattern in a command stands for right now.
"""

import fnmatch
import os
import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from handrail.gate.shell.shell_parser import Part
from handrail.tools.workspace import Workspace

MOST_FOLDERS = 8
"""Folders a command may be in after several `cd`; with more it counts as outside."""
_LONGEST = 4096
_LETTERS = 16
"""Of options written as one word: behind any of them a value may begin."""
_CLUSTER = re.compile(rf"-[a-zA-Z]{{{_LETTERS}}}")
"""More of them than anybody looks behind."""
_TEXT_ONLY = frozenset(("echo", "printf", "true", "false", "exit", "seq", "sleep", "type", "which"))
"""Their words are no paths, whatever they look like; unless the shell makes names of them."""
_HARMLESS = frozenset(("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"))
_PIECES = re.compile(r"[=:,@]")
_FILE_URL = re.compile(r"file://[^/]*(/.*)", re.IGNORECASE)


class Judged(NamedTuple):
    """Where a command leads."""

    inside: bool
    protected: bool
    poses: bool
    """A pattern may stand for a name that begins like an option, so that nobody knows what it is told to do."""


class Mentions:
    """Follows a line from command to command."""

    def __init__(self, cwd: str, workspace: Workspace, path: str) -> None:
        """`path` is the PATH: programs named by a folder of it are nobody's files."""
        self._workspace = workspace
        self._bins = frozenset(path.split(":"))
        self._folders = (cwd,)
        """Wherever the shell may be."""
        self._surely: tuple[str, ...] | None = None
        """Where it is while every command since the last `;` has succeeded; None where that does not follow."""
        self._lost = False
        """It may be anywhere."""

    def judge(self, part: Part) -> Judged:
        folders = self._where(part)
        found = [path for folder in folders for path in self._paths(part, folder)]
        inside = not self._lost and len(folders) <= MOST_FOLDERS and None not in found
        real = [os.path.realpath(folder) for folder in folders] + [path for path in found if path is not None]
        if part.words[0] == "cd":
            self._follow(part, folders)
        return Judged(
            inside and all(self._is_inside(path) for path in real),
            any(self._workspace.protects(path) for path in real),
            any(matches(folder, part.words[at]).poses for folder in folders for at in part.live if at),
        )

    def _where(self, part: Part) -> tuple[str, ...]:
        """Only `&&` says that what stood before was done, and was done by this very shell."""
        if part.joined == "&&" and self._surely is not None and not part.nested:
            return self._surely
        begins = part.joined not in ("&&", "||", "|") and not part.nested
        self._surely = self._folders if begins else None
        return self._folders

    def _is_inside(self, path: str) -> bool:
        root = self._workspace.root
        return root is not None and (path == root or path.startswith(root.rstrip("/") + "/"))

    def _follow(self, part: Part, folders: tuple[str, ...]) -> None:
        """The shell goes by the names it came by, what it starts by where they really lead: both are kept."""
        target = next((word for word in part.words[1:] if not word.startswith("-")), "/")
        self._lost = self._lost or bool(part.live)
        reached = [os.path.join(folder, target) for folder in folders]  # noqa: PTH118
        both = [path for each in reached for path in (os.path.normpath(each), os.path.realpath(each))]
        if self._surely is not None:
            self._surely = tuple(dict.fromkeys(both))[: MOST_FOLDERS + 1]
        self._folders = tuple(dict.fromkeys((*self._folders, *both)))[: MOST_FOLDERS + 1]

    def _paths(self, part: Part, folder: str) -> Iterator[str | None]:
        """The real path of each word that may be one; None where it cannot be told."""
        program = part.words[0]
        if "/" in program and os.path.dirname(program) not in self._bins:  # noqa: PTH120
            yield _real(folder, program)
        if program == "cd" and (len(part.words) == 1 or part.words[1].startswith("-")):
            yield None
        for at, word in enumerate(part.words[1:], 1):
            if len(word) > _LONGEST or "\0" in word or _CLUSTER.match(word):
                yield None
            elif at in part.live:
                yield from matches(folder, word).paths
            elif program not in _TEXT_ONLY:
                found = _pieces(word) if "://" not in word else _in_url(folder, word)
                yield from (_real(folder, piece) for piece in found if piece not in _HARMLESS)


def _in_url(folder: str, word: str) -> Iterator[str]:
    """Nothing, unless it names a file; or there is a folder of such a name, with its colon."""
    if os.path.lexists(os.path.join(folder, word.partition("/")[0])):  # noqa: PTH118
        yield word
    if local := _FILE_URL.search(word):
        yield unquote(local.group(1))


def _pieces(word: str) -> Iterator[str]:
    """A word, and what may be a path within it: `--file=x`, `-I/usr`, `-fx`, `a:b`."""
    yield word  # after `--` it is a name, whatever it begins with
    if word.startswith("-") and not word.startswith("--"):
        yield from (word[at:] for at in range(2, min(len(word), _LETTERS)))
    elif word.startswith("--") and "/" in word:
        yield word[2:]
    pieces = _PIECES.split(word)
    if len(pieces) > 1:
        yield from (piece for piece in pieces[1:] if piece)
        if "/" in pieces[0] and not word.startswith("-"):
            yield pieces[0]


def _real(folder: str, word: str) -> str:
    path = os.path.join(folder, os.path.expanduser(word))  # noqa: PTH111,PTH118
    return os.path.realpath(path) if "/" in word or os.path.lexists(path) else path


MOST_NAMES = 2000
"""Names a pattern is compared with; where there are more, nobody can tell."""
_PATTERN = frozenset("*?[")


class Matches(NamedTuple):
    """What was found."""

    paths: tuple[str | None, ...]
    """Where each name really leads, and the folder it is looked for in; None where that cannot be told."""
    poses: bool
    """Some name begins like an option, or may."""


_UNKNOWN = Matches((None,), True)


def matches(folder: str, word: str) -> Matches:
    """Of a word that holds a pattern, in this folder."""
    names = word.split("/")
    first = next((at for at, name in enumerate(names) if not _PATTERN.isdisjoint(name)), len(names))
    if first == len(names) or ".." in names[first:] or word.startswith("-"):
        return _UNKNOWN
    base = os.path.join(folder, "/".join(names[:first]) or ("/" if word.startswith("/") else "."))  # noqa: PTH118
    budget = [MOST_NAMES]
    found = list(_walk(base, [name for name in names[first:] if name], budget))
    if budget[0] <= 0:
        return Matches((None,), first == 0)
    poses = first == 0 and any(os.path.relpath(path, base).startswith("-") for path in found)
    return Matches((os.path.realpath(base), *map(os.path.realpath, found)), poses)


def _walk(base: str, names: list[str], budget: list[int]) -> Iterator[str]:
    """Paths below `base` that fit, name by name, as long as the budget lasts."""
    if not names:
        yield base
    elif _PATTERN.isdisjoint(names[0]):
        yield from _walk(os.path.join(base, names[0]), names[1:], budget)  # noqa: PTH118
    else:
        for name in _fitting(base, names[0], budget):
            yield from _walk(os.path.join(base, name), names[1:], budget)  # noqa: PTH118


def _fitting(folder: str, pattern: str, budget: list[int]) -> Iterator[str]:
    """Shells know classes in brackets that Python does not; many of them let `.*` stand for the folder above, too."""
    wide = pattern.partition("[")[0] + "*" if "[" in pattern else pattern
    hidden = pattern.startswith(".")
    for name in (*((".", "..") if hidden else ()), *_names(folder, budget)):
        if fnmatch.fnmatchcase(name, wide) and (hidden or not name.startswith(".")):
            yield name


def _names(folder: str, budget: list[int]) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                budget[0] -= 1
                if budget[0] <= 0:
                    return
                yield entry.name
    except OSError:
        return
