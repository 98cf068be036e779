"""How a git repository is configured: whether reading it can start a program or leave the workspace.

Git starts programs that its settings name: an fsmonitor, filters, diff drivers, a pager, hooks, gpg. Only settings from
the lists below are known to be harmless; anything else makes the answer "unknown". Nothing is started to find out.
"""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_LARGEST = 64 * 1024
"""Bytes of a settings file: more is not what git writes."""
_LARGEST_INDEX = 64 * 1024 * 1024
"""Bytes of an index: about half a million files, searched in a tenth of a second."""

Keys = Mapping[str, frozenset[str] | None]
"""Section → harmless keys; None for all. A section with a subsection ends with a dot."""
Settings = frozenset[str]


def _keys(text: str) -> frozenset[str]:
    return frozenset(text.split())


_REPOSITORY: Keys = {
    "core": _keys(
        "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol "
        "safecrlf quotepath whitespace abbrev longpaths trustctime checkstat preloadindex protecthfs protectntfs "
        "commentchar compression bigfilethreshold"
    ),
    "user": _keys("name email signingkey useconfigonly"),
    "author": _keys("name email"),
    "committer": _keys("name email"),
    "remote.": _keys("url fetch pushurl push tagopt prune gh-resolved"),
    "branch.": None,
    "branch": _keys("sort autosetupmerge autosetuprebase"),
    "tag": _keys("sort gpgsign"),
    "color": None,
    "color.": None,
    "column": None,
    "advice": None,
    "gui": None,
    "gc": None,
    "pack": None,
    "push": None,
    "pull": None,
    "fetch": _keys("prune prunetags parallel writecommitgraph"),
    "init": None,
    "rebase": None,
    "rerere": None,
    "commit": None,
    "merge": None,
    "stash": None,
    "log": _keys("date decorate abbrevcommit follow"),
    "status": _keys("short branch showuntrackedfiles relativepaths showstash aheadbehind renames"),
    "diff": _keys(
        "renames renamelimit algorithm colormoved colormovedws mnemonicprefix noprefix context interhunkcontext "
        "indentheuristic wserrorhighlight tool guitool"
    ),
    "extensions": _keys("objectformat refstorage"),
    "lfs": None,
    "lfs.": None,
}
"""Of a repository, which others may have written. Left out, among others: `core.fsmonitor`, `core.hooksPath`, `core.pager`,
`core.worktree`, `include`, `remote.*.promisor` (fetches missing objects), `submodule`, `trace2`, `log.showSignature`."""
_OWN: Keys = {
    **_REPOSITORY,
    "core": _keys("editor pager excludesfile attributesfile sshcommand askpass")
    | (_REPOSITORY["core"] or _keys("")),
    "alias": None,
    "pager": None,
    "credential": None,
    "credential.": None,
    "url.": None,
    "http": None,
    "http.": None,
    "gpg": None,
    "gpg.": None,
    "interactive": None,
    "delta": None,
    "delta.": None,
    "merge.": None,
    "mergetool": None,
    "mergetool.": None,
    "difftool": None,
    "difftool.": None,
    "safe": None,
    "maintenance": None,
    "github": None,
    "filter.": None,
    "diff": _keys("external") | (_REPOSITORY["diff"] or _keys("")),
    "diff.": None,
}
"""Of the person, in their own files. What git starts by them while it reads is in `_FILTERS` and `_DRIVERS`."""
_FILTERS = re.compile(r"filter\..*")
_DRIVERS = re.compile(r"diff\.(external|\..*)")
_GITLINK = b"\0\0\xe0\0"
"""The mode of a submodule in an index."""
_SECRET = re.compile(
    rb"(\.env(\.(?!example|sample|template|dist|defaults)[^\0/]*)?|id_(rsa|dsa|ecdsa|ed25519)|\.npmrc|\.netrc|\.pypirc"
    rb"|\.pgpass|\.git-credentials|\.vault-token|\.?credentials\.(toml|json))\0|\.(aws|azure|gnupg|kube|oci|ssh)/",
    re.IGNORECASE,
)
"""Tracked files whose content is a secret; in an index, a name ends with NUL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """What reading a repository may start or show."""

    filters: bool
    """Settings name programs that convert files of the working tree."""
    drivers: bool
    """Settings name programs that compare files."""
    submodules: bool
    """Git starts itself in submodules, with their settings."""
    secrets: bool
    """A tracked file holds secrets."""

    def may_read(self, uses: frozenset[str]) -> bool:
        """Whether a command that uses these parts (`GitReader.uses`) only reads."""
        return not (
            ("tree" in uses and (self.filters or self.submodules))
            or ("drivers" in uses and self.drivers)
            or ("content" in uses and self.secrets)
        )


def read_repository(folder: str, root: str, home: str) -> Repository | None:
    """The repository that git finds from `folder`; None without one below `root`, or it is not fully understood."""
    git = _find(folder, root)
    if git is None or any(os.path.lexists(f"{git}/{name}") for name in _REDIRECTS):
        return None
    settings = [_settings(f"{git}/config", repository=True), *map(_settings, _own_files(home))]
    index = _index(f"{git}/index")
    if index is None or any(each is None for each in settings) or _has_shared_index(git):
        return None
    keys = frozenset(key for each in settings for key in each or ())
    return Repository(
        filters=any(map(_FILTERS.fullmatch, keys)),
        drivers=any(map(_DRIVERS.fullmatch, keys)),
        submodules=index[0],
        secrets=index[1],
    )


_REDIRECTS = ("commondir", "objects/info/alternates", "hooks/post-index-change")
"""Files by which git reads elsewhere, or starts a program when it refreshes its index."""


def _find(folder: str, root: str) -> str | None:
    """The folder `.git`, searched upwards within `root`. A link, or a file that names another folder, is not followed."""
    while folder == root or folder.startswith(root.rstrip("/") + "/"):
        git = f"{folder.rstrip('/')}/.git"
        try:
            return git if stat.S_ISDIR(os.lstat(git).st_mode) else None
        except FileNotFoundError:
            folder = os.path.dirname(folder)  # noqa: PTH120 - runs for every command
        except OSError:
            return None
    return None


def _own_files(home: str) -> Iterable[str]:
    config = os.environ.get("XDG_CONFIG_HOME", f"{home}/.config")
    settings = f"{home}/.config/git/config", f"{config}/git/config"
    return dict.fromkeys((f"{home}/.gitconfig", *settings, "/etc/gitconfig", "/usr/local/etc/gitconfig"))


def _has_shared_index(git: str) -> bool:
    """Whether an index may be split into two files."""
    try:
        with os.scandir(git) as entries:
            return any(entry.name.startswith("sharedindex.") for entry in entries)
    except OSError:
        return True


def _identify(path: str) -> tuple[int, ...] | None:
    """Identity of a plain file, empty if it is missing; None if it cannot be trusted to be one."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _settings(path: str, *, repository: bool = False) -> Settings | None:
    """The keys of a settings file; None if one of them is not known to be harmless."""
    own = path if repository else os.path.realpath(path)  # people keep their own file behind a link
    identity = _identify(own)
    if not identity:
        return None if identity is None or repository else Settings()
    return _read_settings(own, identity, repository)


@lru_cache(64)
def _read_settings(path: str, identity: tuple[int, ...], repository: bool) -> Settings | None:
    if identity[2] > _LARGEST:
        return None
    try:
        text = Path(path).read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None
    return parse_settings(text, _REPOSITORY if repository else _OWN)


_SECTION = re.compile(r'\[([A-Za-z0-9-]+)(?:[ \t]+"((?:[^"\\\n]|\\.)*)")?\][ \t]*(?:[#;].*)?')
_ENTRY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=(.*))?")


def parse_settings(text: str, known: Keys = _REPOSITORY) -> Settings | None:
    """The keys of a settings file, with a double dot for a subsection; None if it is not plain, or a key is not known."""
    keys: set[str] = set()
    section = ""
    for line in (line.strip(" \t\r") for line in text.split("\n")):
        if not line or line[0] in "#;":
            continue
        if header := _SECTION.fullmatch(line):
            section = header[1].lower() + ("." if header[2] is not None else "")
            continue
        entry = _ENTRY.fullmatch(line)
        if entry is None or line.endswith("\\") or section not in known:
            return None
        names = known[section]
        if names is not None and entry[1].lower() not in names:
            return None
        keys.add(f"{section}.{entry[1].lower()}")
    return Settings(keys)


def _index(path: str) -> tuple[bool, bool] | None:
    """Whether an index has submodules, and tracked secrets. None if it cannot be read; without one there are neither."""
    identity = _identify(path)
    if not identity:
        return (False, False) if identity == () else None
    return _read_index(path, identity)


@lru_cache(32)
def _read_index(path: str, identity: tuple[int, ...]) -> tuple[bool, bool] | None:
    if identity[2] > _LARGEST_INDEX:
        return None
    try:
        content = Path(path).read_bytes()
    except OSError:
        return None
    if int.from_bytes(content[4:8]) not in _VERSIONS:
        return None
    return _GITLINK in content, _SECRET.search(content) is not None


_VERSIONS = (2, 3)
"""Versions of an index in which names are written in full."""
