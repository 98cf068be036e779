"""Where the words of a command lead.

Owns which words are taken for paths, from which folders they count after `cd`, and whether all of that lies inside the
workspace and touches nothing protected. A word is rather taken for a path than not. It opens nothing.
"""

import fnmatch
import os
import re
from collections.abc import Iterator

from handrail.gate.shell import Part
from handrail.tools.workspace import Workspace

MOST_FOLDERS = 8
"""Folders a command may be in after several `cd`; with more it counts as outside."""
MOST_NAMES = 2000
"""Names a pattern is compared with; a pattern for more counts as outside."""
_LONGEST = 4096
_TEXT_ONLY = frozenset(("echo", "printf", "true", "false", "exit", "seq", "sleep", "type", "which"))
"""Their words are no paths, whatever they look like."""
_HARMLESS = frozenset(("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"))
_PIECES = re.compile(r"[=:,]")
_PATTERN = frozenset("*?[")


class Mentions:
    """Follows a line from command to command."""

    def __init__(self, cwd: str, workspace: Workspace, path: str) -> None:
        """`path` is the PATH: programs named by a folder of it are nobody's files."""
        self._workspace = workspace
        self._bins = frozenset(path.split(":"))
        self._folders = (cwd,)
        """Wherever the shell may be."""
        self._surely = (cwd,)
        """Where it is while every command before has succeeded."""

    def judge(self, part: Part) -> tuple[bool, bool]:
        """Whether it stays inside, and whether it touches something protected."""
        folders = self._surely if part.joined == "&&" else self._folders
        if part.joined != "&&":
            self._surely = folders
        found = [path for folder in folders for path in self._paths(part, folder)]
        inside = len(folders) <= MOST_FOLDERS and None not in found
        real = [path for path in (*folders, *found) if path is not None]
        if part.words[0] == "cd":
            self._follow(part, folders)
        return (
            inside and all(self._is_inside(path) for path in real),
            any(self._workspace.protects(path) for path in real),
        )

    def _is_inside(self, path: str) -> bool:
        root = self._workspace.root
        return root is not None and (path == root or path.startswith(root.rstrip("/") + "/"))

    def _follow(self, part: Part, folders: tuple[str, ...]) -> None:
        target = next((word for word in part.words[1:] if not word.startswith("-")), "/")
        self._surely = tuple(os.path.realpath(os.path.join(folder, target)) for folder in folders)  # noqa: PTH118
        self._folders = tuple(dict.fromkeys((*self._folders, *self._surely)))[: MOST_FOLDERS + 1]

    def _paths(self, part: Part, folder: str) -> Iterator[str | None]:
        """The real path of each word that may be one; None where it cannot be told."""
        program = part.words[0]
        if "/" in program and os.path.dirname(program) not in self._bins:  # noqa: PTH120
            yield _real(folder, program)
        if program == "cd" and (len(part.words) == 1 or part.words[1].startswith("-")):
            yield None
        if program in _TEXT_ONLY:
            return
        for at, word in enumerate(part.words[1:], 1):
            if len(word) > _LONGEST or "\0" in word:
                yield None
            elif at in part.live:
                yield from _matches(folder, word)
            elif "://" not in word:
                yield from (_real(folder, piece) for piece in _pieces(word) if piece not in _HARMLESS)


def _pieces(word: str) -> Iterator[str]:
    """A word, and what may be a path within it: `--file=x`, `-I/usr`, `a:b`."""
    if not word.startswith("-"):
        yield word
    elif "/" in word[2:]:
        yield word[2:]
    pieces = _PIECES.split(word)
    if len(pieces) > 1:
        yield from (piece for piece in pieces[1:] if piece)
        if "/" in pieces[0] and not word.startswith("-"):
            yield pieces[0]


def _real(folder: str, word: str) -> str:
    path = os.path.join(folder, os.path.expanduser(word))  # noqa: PTH111,PTH118
    return os.path.realpath(path) if "/" in word or os.path.lexists(path) else path


def _matches(folder: str, word: str) -> Iterator[str | None]:
    """What a pattern names now, and the folder it is looked for in; None when that cannot be told."""
    names = word.split("/")
    first = next((at for at, name in enumerate(names) if not _PATTERN.isdisjoint(name)), len(names))
    if first == len(names) or ".." in names[first:] or word.startswith("-"):
        yield None
        return
    base = os.path.join(folder, "/".join(names[:first]) or ("/" if word.startswith("/") else "."))  # noqa: PTH118
    budget = [MOST_NAMES]
    yield os.path.realpath(base)
    yield from (os.path.realpath(path) for path in _walk(base, names[first:], budget))
    if budget[0] <= 0:
        yield None


def _walk(base: str, names: list[str], budget: list[int]) -> Iterator[str]:
    """Paths below `base` that fit, name by name, as long as the budget lasts."""
    if not names or not names[0]:
        yield base
        return
    pattern = names[0].replace("[^", "[!")
    if _PATTERN.isdisjoint(pattern):
        yield from _walk(os.path.join(base, pattern), names[1:], budget)  # noqa: PTH118
        return
    for name in _names(base, budget):
        if fnmatch.fnmatchcase(name, pattern) and (pattern.startswith(".") or not name.startswith(".")):
            yield from _walk(os.path.join(base, name), names[1:], budget)  # noqa: PTH118


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
