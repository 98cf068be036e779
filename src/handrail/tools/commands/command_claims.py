"""Claims of a shell line: its commands, files, hosts, and the parts that cannot be analysed.

For lines run in a new terminal and for lines typed into an open one. The shell syntax is parsed in
gate/shell/. This module follows `cd`, expands globs, resolves paths and programs, and extracts hosts. When
unsure it claims more: outside the workspace, or opaque.
"""

import fnmatch
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from pydantic import JsonValue

from handrail.gate.risk import READERS
from handrail.gate.shell.shell_parser import PARTS_MAX, Line, Opaque, Part, parse
from handrail.gate.tool import Refusal
from handrail.store.values import Claim, Json
from handrail.tools.workspace import Place, Workspace

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

    def judge(self, part: Part) -> TouchedPlaces:
        folders = self._where(part)
        found = [path for folder in folders for path in self._paths(part, folder)]
        inside = not self._lost and len(folders) <= MOST_FOLDERS and None not in found
        real = [os.path.realpath(folder) for folder in folders] + [path for path in found if path is not None]
        if part.words[0] == "cd":
            self._follow(part, folders)
        return TouchedPlaces(
            inside and all(self._is_inside(path) for path in real),
            any(self._workspace.protects(path) for path in real),
            any(expand_glob(folder, part.words[at]).poses for folder in folders for at in part.live if at),
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

    def _paths(self, part: Part, folder: str) -> Iterator[str | None]:
        """The real path of each word that may be a path; None when it cannot be determined."""
        program = part.words[0]
        if "/" in program and os.path.dirname(program) not in self._bins:  # noqa: PTH120
            yield _real(folder, program)
        if program == "cd" and (len(part.words) == 1 or part.words[1].startswith("-")):
            yield None
        for at, word in enumerate(part.words[1:], 1):
            if len(word) > _LONGEST or "\0" in word or _CLUSTER.match(word):
                yield None
            elif at in part.live:
                yield from expand_glob(folder, word).paths
            elif program not in _TEXT_ONLY:
                found = _pieces(word) if "://" not in word else _url_paths(folder, word)
                yield from (_real(folder, piece) for piece in found if piece not in _HARMLESS)


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
_PATTERN = frozenset("*?[")


class GlobMatches(NamedTuple):
    """The expansion of a glob."""

    paths: tuple[str | None, ...]
    """Real path of the folder and of each match; None when they cannot be determined."""
    poses: bool
    """A match starts with `-`, or may."""


_UNKNOWN = GlobMatches((None,), True)


def expand_glob(folder: str, word: str) -> GlobMatches:
    """Expand a word with a glob, relative to `folder`."""
    names = word.split("/")
    first = next((at for at, name in enumerate(names) if not _PATTERN.isdisjoint(name)), len(names))
    if first == len(names) or ".." in names[first:] or word.startswith("-"):
        return _UNKNOWN
    base = os.path.join(folder, "/".join(names[:first]) or ("/" if word.startswith("/") else "."))  # noqa: PTH118
    budget = [MOST_NAMES]
    found = list(_expand(base, [name for name in names[first:] if name], budget))
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
    else:
        for name in _matching_entries(base, names[0], budget):
            yield from _expand(os.path.join(base, name), names[1:], budget)  # noqa: PTH118


def _matching_entries(folder: str, pattern: str, budget: list[int]) -> Iterator[str]:
    """Entries that match. A `[` matches anything after it: shells have classes that fnmatch lacks.

    In many shells `.*` also matches `..`.
    """
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


POSES = "holds a pattern that stands for a name which begins like an option"
ELSEWHERE = "names a program by a relative path, in another folder than the workspace itself"
SHADOWS = "starts a program of the workspace under the name of a common one"
UNFINISHED = "types a part of a line, or keys that change it"
TOO_MUCH = "holds more commands than anybody could judge"


def read_line(command: str) -> Line:
    """Parse a line. Raises Refusal when it holds too many commands to judge."""
    line = parse(command)
    if line.cut:
        raise Refusal(
            f"The line holds more than {PARTS_MAX} commands, or too many within each other, which nobody could judge. "
            "Nothing was run: put them into a script, or send fewer at a time."
        )
    return line


def command_claims(
    line: Line, place: Place, workspace: Workspace, path: str, variables: Iterable[str] = ()
) -> tuple[Claim, ...]:
    """Claims of a line run in `place`; `path` is its PATH, `variables` the names the call sets."""
    tracker = PathTracker(place.path, workspace, path)
    claims = (
        *(
            claim
            for part in line.parts
            for claim in _part_claims(part, tracker.judge(part), place, workspace, path)
        ),
        *(_opaque(item) for item in line.opaque),
        *_context_claims(place, variables),
        *_host_claims(line),
    )
    return tuple(dict.fromkeys(claims))


def opening_claims(line: str, is_shell: bool, place: Place, variables: Iterable[str]) -> tuple[Claim, ...]:
    """Claims of a program that stays open. Command rules can deny it, never allow it. Raises Refusal."""
    runs = Claim(action="run", resource=line, inside=place.inside, protected=place.protected)
    if is_shell:
        return (runs, *_context_claims(place, variables))
    read = read_line(line)
    found = (*(part.words for part in read.parts), *(item.words for item in read.opaque))
    why = "opens a terminal with something else than a plain shell"
    opaque = (replace(runs, words=words, opaque=why) for words in found or ((),))
    return tuple(dict.fromkeys((*opaque, *_context_claims(place, variables), *_host_claims(read))))


def typed_line_claims(typing: Claim, text: str) -> tuple[Claim, ...]:
    """Claims of a line typed into a shell: the typing, its opaque parts and its commands. Raises Refusal.

    All have the action `type`, which no command rule can allow: aliases and other shell state may change the
    meaning. A rule that denies a command still applies.
    """
    line = read_line(text)
    opaque = (replace(typing, resource=item.text, words=item.words, opaque=item.why) for item in line.opaque)
    return tuple(dict.fromkeys((*_typing_claims(typing, line), *opaque)))


def text_typed(typing: Claim, text: str, *, shell: bool = False, whole: bool = True) -> tuple[Claim, ...]:
    """Claims of text typed into any program; for a shell, also the commands it would run.

    `whole`: the text is followed by Enter and nothing else.
    """
    line = parse(text)
    wrapped = (replace(typing, words=item.words) for item in line.opaque if item.words)
    whys = [TOO_MUCH] if line.cut else []
    if shell and text.strip():
        whys += [item.why for item in line.opaque] + ([] if whole else [UNFINISHED])
    opaque = (replace(typing, opaque=why) for why in whys)
    return tuple(dict.fromkeys((*_typing_claims(typing, line), *wrapped, *opaque)))


def _typing_claims(typing: Claim, line: Line) -> Iterator[Claim]:
    """The claim of typing, with the words of its command; with several commands, also a claim for each."""
    if len(line.parts) == 1:
        yield replace(typing, words=line.parts[0].words)
        return
    yield typing
    yield from (replace(typing, resource=part.text, words=part.words) for part in line.parts)


def _part_claims(
    part: Part, where: TouchedPlaces, place: Place, workspace: Workspace, path: str
) -> Iterator[Claim]:
    """Claims of one command, with opaque claims for doubts that the text alone cannot settle."""
    program = part.words[0]
    yield Claim(
        action="run",
        resource=part.text,
        inside=where.inside,
        protected=where.protected,
        words=part.words,
    )
    doubts = {
        POSES: where.poses,
        ELSEWHERE: place.path != workspace.root and _is_relative(program),
        SHADOWS: program in READERS and _is_workspace_program(program, place, workspace, path),
    }
    yield from (
        Claim(action="run", resource=part.text, inside=True, opaque=why)
        for why, found in doubts.items()
        if found
    )


def _is_workspace_program(program: str, place: Place, workspace: Workspace, path: str) -> bool:
    """Whether a name on the PATH resolves to a workspace file, which an agent may have written."""
    match facts(program, place.path, path):
        case [str(found), *_]:
            return workspace.place(found).inside
        case _:
            return False


def _is_relative(program: str) -> bool:
    return "/" in program and not program.startswith("/")


def _opaque(item: Opaque) -> Claim:
    return Claim(action="run", resource=item.text, inside=True, words=item.words, opaque=item.why)


def _context_claims(place: Place, variables: Iterable[str]) -> Iterator[Claim]:
    """Claims of the variables and the folder of a line."""
    names = ", ".join(sorted(variables))
    if names:
        yield Claim(action="run", resource=names, inside=True, opaque=f"sets variables for it: {names}")
    if place.protected or not place.inside:
        yield Claim(
            action="run",
            resource=place.path,
            inside=place.inside,
            protected=place.protected,
            opaque="runs in a protected place" if place.inside else "runs outside the workspace",
        )


def _host_claims(line: Line) -> Iterator[Claim]:
    for words in (*(part.words for part in line.parts), *(item.words for item in line.opaque if item.words)):
        yield from (Claim(action="connect", resource=host, inside=True) for host in hosts(words))


_URL = re.compile(r"(?<![a-z0-9+.-])[0-9+.-]*[a-z][a-z0-9+.-]*://([^/?#\s]*)", re.IGNORECASE)
"""Begins only where no character of a scheme stands before it, so that each run of such characters is read once."""
_REMOTE = re.compile(r"(?:[\w.-]+@)?([\w.-]+):(?!//)")
_BARE = re.compile(r"(?:[^@/\s]*@)?([\w-]+(?:\.[\w-]+)+|localhost|[\w-]+(?=:\d))\.?(?::\d*)?(?:[/?#].*)?$")
_LOGIN = re.compile(r"(?:[\w.-]+@)?([\w-]+(?:\.[\w-]+)*)$")
_REMOTES = frozenset(("scp", "sftp", "rsync", "git"))
_FETCH = frozenset(("curl", "wget", "http", "https", "xh"))
"""Programs that accept a bare host name as a URL."""
_SSH_VALUED = frozenset("BbcDEeFIiJLlmOopQRSWw")
"""Options of ssh that take a value."""
_SAY_ONLY = frozenset(("echo", "printf", "grep", "egrep", "fgrep", "rg"))
"""Programs whose arguments are text."""


def hosts(words: Sequence[str]) -> Iterator[str]:
    """Hosts named in a command, normalised."""
    name = words[0].rpartition("/")[2]
    if name in _SAY_ONLY:
        return
    for word in words[1:]:
        yield from _url_hosts(word)
        spaced = any(map(str.isspace, word))
        found = None if spaced or "://" in word else _match_remote(name, word)
        if found:
            yield _normalize_host(found.group(1))
    if name == "ssh" and (login := _ssh_host(words[1:])):
        yield login


def _url_hosts(word: str) -> Iterator[str]:
    """Hosts of URLs in a word; in a word with blanks, probably prose, only of a URL at its start."""
    if "://" not in word:
        return
    is_prose = any(map(str.isspace, word.strip()))
    for found in _URL.finditer(word):
        if is_prose and word[: found.start()].strip():
            return
        for authority in dict.fromkeys((found.group(1), found.group(1).partition("\\")[0])):
            host = authority.rpartition("@")[2]
            host = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
            if host:
                yield _normalize_host(host)


def _match_remote(program: str, word: str) -> re.Match[str] | None:
    """Match `host:path` of copy programs; for git only with a user, since `branch:branch` looks alike."""
    if program in _FETCH and not word.startswith("-"):
        return _BARE.match(word)
    is_remote = program in _REMOTES and (program != "git" or "@" in word.partition(":")[0])
    return _REMOTE.match(word) if is_remote else None


def _ssh_host(words: Sequence[str]) -> str:
    """The host argument of ssh: the first word that is neither an option nor its value."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if len(words[at]) == 2 and words[at][1] in _SSH_VALUED else 1
    match = _LOGIN.match(words[at]) if at < len(words) else None
    return _normalize_host(match.group(1)) if match else ""


def _normalize_host(host: str) -> str:
    """Normalise a host name: percent-encoding, Unicode form, case, trailing dot."""
    return unicodedata.normalize("NFKC", unquote(host)).lower().rstrip(".")


def programs(parts: Iterable[Part], cwd: str, path: str) -> Json:
    """Facts of each program by name: path, device, inode, size, ctime; None when not found."""
    names = dict.fromkeys(part.words[0] for part in parts)
    return {name: facts(name, cwd, path) for name in names}


def facts(name: str, cwd: str, path: str) -> JsonValue:
    """Resolve one program on the PATH, as the shell would, and stat it."""
    folders = [""] if "/" in name else path.split(":")
    for folder in folders:
        candidate = Path(cwd, folder, name)
        try:
            found = candidate.stat()
        except (OSError, ValueError):
            continue
        if os.access(candidate, os.X_OK) and not stat.S_ISDIR(found.st_mode):
            return [os.path.realpath(candidate), found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns]
    return None
