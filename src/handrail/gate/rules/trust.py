"""Trusted folders, and the project file `.handrail/config.toml` of each folder.

Caches the files, and reads a file again when it changes. It journals nothing; rules.py does.
"""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path

from handrail.config import BadConfig, ProjectConfig, config_error, load_project
from handrail.errors import Conflict
from handrail.gate.rules.matching import CHANGED, FolderState
from handrail.gate.rules.rule_builder import BadRule, RuleBase, rule_from_section
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Rule

FOLDER, NAME = ".handrail", "config.toml"
LARGEST = 256 * 1024
"""Bytes of a project file: a hostile repository must not fill the memory or slow down every call."""
_FRESH_NS = 200_000_000
"""A file this recent could change again with the same timestamps, so it is not cached."""

_NOTHING = ProjectConfig()
Seen = tuple[int, int, int, int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The parsed project file of a folder."""

    sha: str | None = None
    """SHA-256 of its bytes; None if the file is missing or unreadable."""
    rules: tuple[Rule, ...] = ()
    config: ProjectConfig = _NOTHING
    problem: str = ""
    """Error sentence if the file is invalid; then none of its rules or settings apply."""
    seen: Seen = None
    fresh: bool = False

    def holds(self, folder: str) -> bool:
        """Whether the file is unchanged since it was read."""
        return not self.fresh and self.seen == stat_project(folder)


def stat_project(folder: str) -> Seen:
    """Identity, size and times of the project file, to detect a change without reading it."""
    try:
        status = os.lstat(f"{folder}/{FOLDER}/{NAME}")
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def read_project(folder: str, home: str) -> Project:
    """Read the project file of a folder (a real path); an empty `Project` if there is no file.

    Errors are returned in `problem`.
    """
    seen = stat_project(folder)
    path = Path(folder, FOLDER, NAME)
    try:
        raw = _bytes(folder)
    except OSError as error:
        return Project(problem="" if error.errno == errno.ENOENT else _unreadable(path, error), seen=seen)
    fresh = seen is None or time.time_ns() - max(seen[3:]) < _FRESH_NS
    sha = hashlib.sha256(raw).hexdigest()
    try:
        config = load_project(path, _text(path, raw))
        rules = tuple(_rules(config, path, RuleBase(root=folder, home=home)))
    except BadConfig as problem:
        return Project(sha=sha, problem=str(problem), seen=seen, fresh=fresh)
    return Project(sha=sha, rules=rules, config=config, seen=seen, fresh=fresh)


def _rules(config: ProjectConfig, path: Path, ground: RuleBase) -> list[Rule]:
    rules: list[Rule] = []
    for section in config.rules:
        try:
            rules.append(rule_from_section(section, f"{FOLDER}/{NAME}:{section.line}", ground, "project"))
        except BadRule as problem:
            raise config_error(path, section.line, str(problem)) from None
    return rules


def _bytes(folder: str) -> bytes:
    """Read the whole file, without following a symlink at the file or at `.handrail`."""
    above = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        within = os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    finally:
        os.close(above)
    try:
        file = os.open(NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=within)
    finally:
        os.close(within)
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        raw = opened.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise OSError(errno.EFBIG, f"it is larger than {LARGEST:,} bytes")
    return raw


def _text(path: Path, raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise BadConfig(f"{path} is not text: {error}. Make it a text file, or remove it.") from None


def _unreadable(path: Path, error: OSError) -> str:
    linked = error.errno in (errno.ELOOP, errno.ENOTDIR)
    why = "it, or its folder, is a link or no folder" if linked else error.strerror
    return f"{path} cannot be read: {why}. Make it a plain file, or remove it."


_MOST = 128
"""Size of the project file cache, to bound memory; an evicted file is read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedFolder:
    """A trusted folder."""

    folder: str
    config: str | None
    """SHA-256 of its file as the person saw it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderTrust:
    """Current trust and config file of a folder."""

    folder: str
    trusted: bool
    config: str | None
    """SHA-256 of its file now."""
    problem: str
    """Error sentence if its file is invalid or changed since it was trusted."""


class Folders:
    """Known folders, by real path."""

    def __init__(self, trusted: Iterable[TrustedFolder], home: str) -> None:
        self.trusted = {each.folder: each.config for each in trusted}
        self._home = home
        self._projects: dict[str, Project] = {}

    def known(self) -> list[str]:
        """Trusted folders, and folders of recent callers."""
        return sorted({*self.trusted, *self._projects})

    def project(self, root: str | None) -> Project:
        """The folder's project file, read again if it changed."""
        if root is None:
            return Project()
        project = self._projects.get(root)
        if project is None or not project.holds(root):
            if len(self._projects) >= _MOST:
                self._projects.clear()
            project = self._projects[root] = read_project(root, self._home)
        return project

    def here(self, root: str | None, now: int) -> FolderState:
        project = self.project(root)
        trusted = root is not None and root in self.trusted and not project.problem
        same = trusted and project.sha is not None and self.trusted[root or ""] == project.sha
        return FolderState(root=root, trusted=trusted, file_trusted=same, now=now)

    def folder(self, root: str) -> FolderTrust:
        project, here = self.project(root), self.here(root, 0)
        changed = CHANGED if here.trusted and not here.file_trusted and project.sha is not None else ""
        return FolderTrust(
            folder=root, trusted=here.trusted, config=project.sha, problem=project.problem or changed
        )

    def rules(self, root: str | None = None) -> list[Rule]:
        """Rules from the file of one folder, or of all known folders."""
        roots = list(self._projects) if root is None else [root]
        return [rule for each in roots for rule in self.project(each).rules]

    def check(self, root: str, config: str | None) -> None:
        """Raise Conflict if this folder cannot be trusted, or its file no longer has the hash `config`."""
        if not Path(root).is_dir() or Path(self._home).is_relative_to(root):
            raise Conflict(
                f"{root} cannot be trusted: name a project's folder, not your home or what it lies in."
            )
        project = self.project(root)
        if project.problem:
            raise Conflict(f"{root} cannot be trusted while its file is wrong: {project.problem}")
        if config is not None and config != project.sha:
            raise Conflict(f"{root}/{FOLDER}/{NAME} is not as you saw it. Look at it again, then decide.")
