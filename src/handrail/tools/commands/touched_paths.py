"""The paths that the commands of a line may touch: follows `cd`, expands globs, and walks folders that are read whole.

When unsure it reports more: outside the workspace, or protected.
"""

import fnmatch
import os
import re
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from handrail.gate.risk import READERS
from handrail.gate.shell.shell_parser import PRINTERS, Part
from handrail.tools.commands.secret_search import SecretSearch
from handrail.tools.protected_paths import is_in_bare_repository, is_obeyed
from handrail.tools.workspace import Workspace

MOST_FOLDERS = 8
"""Possible folders tracked after several `cd`; with more, the command counts as outside."""
_LONGEST = 4096
_LETTERS = 16
"""Short options in one word: each letter may be followed by its value, such as a path."""
_CLUSTER = re.compile(rf"-[a-zA-Z]{{{_LETTERS}}}")
"""Words with more short options than are examined."""
_TEXT_ONLY = frozenset(("echo", "printf", "true", "false", "exit", "seq", "sleep", "type", "which"))
"""Programs whose arguments are not paths, unless the shell expands a glob in them."""
_HARMLESS = frozenset(("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"))
_PIECES = re.compile(r"[=:,@]")
_FILE_URL = re.compile(r"file://[^/]*(/.*)", re.IGNORECASE)


class TouchedPlaces(NamedTuple):
    """Which places a command may touch."""

    inside: bool
    protected: bool
    poses: bool
    """A glob may expand to a name that starts with `-`, which the program would read as an option."""
    folders: tuple[str, ...] = ()
    """The real paths of the folders it may start in."""
    special: bool = False
    """One of them is a device, a socket or a named pipe: reading it may take data from another program."""


class PathTracker:
    """Tracks the possible working folders through the commands of a line."""

    def __init__(self, cwd: str, workspace: Workspace, path: str) -> None:
        """`path` is the PATH: programs in its folders do not count as files that the command touches."""
        self._workspace = workspace
        self._bins = frozenset(path.split(":"))
        self._folders = (cwd,)
        """Every folder the shell may be in."""
        self._surely: tuple[str, ...] | None = None
        """Folders it is in if all commands since the last `;` succeeded; None when that is not implied."""
        self._lost = False
        """The folder is unknown."""
        self._names_left = [MOST_NAMES_OF_LINE]
        self._globs: dict[tuple[str, str], GlobMatches] = {}
        self._secrets = SecretSearch(workspace)

    def judge(self, part: Part) -> TouchedPlaces:
        folders = self._where(part)
        real = [os.path.realpath(folder) for folder in folders]
        programs = [path for folder in folders for path in self._program_paths(part, folder)]
        arguments = [path for folder in folders for path in self._argument_paths(part, folder)]
        named = [path for path in arguments if path is not None]
        globs = part.live - part.unknown - {0}
        inside = not self._lost and len(folders) <= MOST_FOLDERS and None not in arguments
        touched = [*real, *programs, *named]
        if part.words[0] == "cd":
            self._follow(part, folders)
        return TouchedPlaces(
            inside and all(self._is_inside(path) for path in touched),
            any(map(self._workspace.protects, dict.fromkeys(touched)))
            or any(map(is_in_bare_repository, dict.fromkeys(real)))
            or (may_change_files(part.words) and any(map(is_obeyed, named)))
            or self._secrets.are_read(part.words, real, named),
            any(self._glob(folder, part.words[at]).poses for folder in folders for at in globs),
            tuple(dict.fromkeys(real)),
            any(map(_is_special, dict.fromkeys(named))),
        )

    def _where(self, part: Part) -> tuple[str, ...]:
        """Folders a command may start in. Only `&&` guarantees that the `cd` before it succeeded."""
        if part.joined == "&&" and self._surely is not None and not part.nested:
            return self._surely
        begins = part.joined not in ("&&", "||", "|") and not part.nested
        self._surely = self._folders if begins else None
        return self._folders

    def _is_inside(self, path: str) -> bool:
        root = self._workspace.root
        return root is not None and (path == root or path.startswith(root.rstrip("/") + "/"))

    def _follow(self, part: Part, folders: tuple[str, ...]) -> None:
        """Follow a `cd`. The shell uses logical paths, its children physical ones: keep both."""
        target = next((word for word in part.words[1:] if not word.startswith("-")), "/")
        self._lost = self._lost or bool(part.live)
        reached = [os.path.join(folder, target) for folder in folders]  # noqa: PTH118
        both = [path for each in reached for path in (os.path.normpath(each), os.path.realpath(each))]
        if self._surely is not None:
            self._surely = tuple(dict.fromkeys(both))[: MOST_FOLDERS + 1]
        self._folders = tuple(dict.fromkeys((*self._folders, *both)))[: MOST_FOLDERS + 1]

    def _program_paths(self, part: Part, folder: str) -> Iterator[str]:
        program = part.words[0]
        if "/" in program and os.path.dirname(program) not in self._bins:  # noqa: PTH120
            yield _real(folder, program)

    def _argument_paths(self, part: Part, folder: str) -> Iterator[str | None]:
        """The real path of each word that may be a path; None when it cannot be determined."""
        program = part.words[0]
        if program == "cd" and (len(part.words) == 1 or part.words[1].startswith("-")):
            yield None
        for at, word in enumerate(part.words[1:], 1):
            if len(word) > _LONGEST or "\0" in word or _CLUSTER.match(word):
                yield None
            elif at in part.unknown and program in PRINTERS:
                continue  # a value that is printed or compared
            elif at in part.live:
                yield from self._glob(folder, word).paths
            elif program not in _TEXT_ONLY:
                found = _pieces(word) if "://" not in word else _url_paths(folder, word)
                yield from (_real(folder, piece) for piece in found if piece not in _HARMLESS)

    def _glob(self, folder: str, word: str) -> "GlobMatches":
        if len(word) > _LONGEST:
            return _UNKNOWN
        if (folder, word) not in self._globs:
            self._globs[folder, word] = expand_glob(folder, word, self._names_left)
        return self._globs[folder, word]


_READERS = READERS | frozenset(
    ("ack", "ag", "bat", "diff", "file", "jq", "less", "more", "rg", "tree", "xxd")
)
_GIT_READERS = frozenset(
    (
        *(
            "add",
            "annotate",
            "blame",
            "cat-file",
            "check-ignore",
            "commit",
            "describe",
            "diff",
            "grep",
            "log",
        ),
        *("ls-files", "ls-tree", "rev-list", "rev-parse", "shortlog", "show", "status"),
    )
)


def may_change_files(words: Sequence[str]) -> bool:
    """Whether a command may change the files it names. Options that write are found in gate/shell/wrappers.py."""
    folder, _, name = words[0].rpartition("/")
    if folder not in ("", "/bin", "/usr/bin"):
        return True
    if name == "git":
        return len(words) > 1 and words[1] not in _GIT_READERS
    return name not in _READERS


def _is_special(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


def _url_paths(folder: str, word: str) -> Iterator[str]:
    """Paths in a URL word: a `file:` URL, or a folder whose name happens to end with a colon."""
    if os.path.lexists(os.path.join(folder, word.partition("/")[0])):  # noqa: PTH118
        yield word
    if local := _FILE_URL.search(word):
        yield unquote(local.group(1))


def _pieces(word: str) -> Iterator[str]:
    """A word and the possible paths in it: `--file=x`, `-I/usr`, `-fx`, `a:b`."""
    yield word  # after `--` even a word with a dash is a file name
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
"""Directory entries compared with a glob; past that the result is unknown."""
MOST_NAMES_OF_LINE = 20_000
"""Directory entries compared with all globs of a line: bounds the time for a line of thousands of globs."""
_PATTERN = frozenset("*?[")


class GlobMatches(NamedTuple):
    """The expansion of a glob."""

    paths: tuple[str | None, ...]
    """Real path of the folder and of each match; None when they cannot be determined."""
    poses: bool
    """A match starts with `-`, or may."""


_UNKNOWN = GlobMatches((None,), True)


def expand_glob(folder: str, word: str, names_left: list[int]) -> GlobMatches:
    """Expand a word with a glob, relative to `folder`, and subtract the compared names from `names_left`."""
    names = word.split("/")
    first = next((at for at, name in enumerate(names) if not _PATTERN.isdisjoint(name)), len(names))
    if first == len(names) or ".." in names[first:] or word.startswith("-"):
        return _UNKNOWN
    base = os.path.join(folder, "/".join(names[:first]) or ("/" if word.startswith("/") else "."))  # noqa: PTH118
    budget = [min(MOST_NAMES, names_left[0])]
    names_left[0] -= budget[0]
    found = list(_expand(base, [name for name in names[first:] if name], budget))
    names_left[0] += max(0, budget[0])
    if budget[0] <= 0:
        return GlobMatches((None,), first == 0)
    poses = first == 0 and any(os.path.relpath(path, base).startswith("-") for path in found)
    return GlobMatches((os.path.realpath(base), *map(os.path.realpath, found)), poses)


def _expand(base: str, names: list[str], budget: list[int]) -> Iterator[str]:
    """Paths below `base` that match, component by component, until the budget is used up."""
    if not names:
        yield base
    elif _PATTERN.isdisjoint(names[0]):
        yield from _expand(os.path.join(base, names[0]), names[1:], budget)  # noqa: PTH118
    elif names[0] == "**":
        for folder in _folders_below(base, budget):
            yield from _expand(folder, names[1:] or ["*"], budget)
    elif "**" in names[0]:
        budget[0] = 0  # shells differ on what that matches
    else:
        for name in _matching_entries(base, names[0], budget):
            yield from _expand(os.path.join(base, name), names[1:], budget)  # noqa: PTH118


def _folders_below(base: str, budget: list[int]) -> Iterator[str]:
    """What `**` stands for in zsh and fish, and in bash with `globstar`: the folder itself, and all below."""
    folders = deque([base])
    while folders and budget[0] > 0:
        folder = folders.popleft()
        yield folder
        below = (os.path.join(folder, name) for name in _names(folder, budget) if not name.startswith("."))  # noqa: PTH118
        folders.extend(path for path in below if os.path.isdir(path))  # noqa: PTH112


def _matching_entries(folder: str, pattern: str, budget: list[int]) -> Iterator[str]:
    """Entries that match. A `[` matches anything after it: shells have classes that fnmatch lacks.

    In many shells `.*` also matches `..`. In some locales `?` matches one byte of a character, so that it takes several
    for a letter beyond ASCII.
    """
    wide = pattern.partition("[")[0] + "*" if "[" in pattern else pattern
    by_bytes = wide.replace("?", "*")
    hidden = pattern.startswith(".")
    for name in (*((".", "..") if hidden else ()), *_names(folder, budget)):
        fits = fnmatch.fnmatchcase(name, wide if name.isascii() else by_bytes)
        if fits and (hidden or not name.startswith(".")):
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
