"""Folders: which a person trusts, and what each folder's own file says.

Owns trust in memory, and when a file is read again. It journals nothing and knows no rule but those of the files
(rules.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from handrail.errors import Conflict
from handrail.gate.rules.force import CHANGED, Here
from handrail.gate.rules.project import FOLDER, NAME, Project, read
from handrail.store.value import Rule

_MOST = 128
"""Folders whose files are remembered; a forgotten one is read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trusted:
    """A folder that a person trusts."""

    folder: str
    config: str | None
    """SHA-256 of its file as the person saw it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder as it stands now."""

    folder: str
    trusted: bool
    config: str | None
    """SHA-256 of its file as it is now."""
    problem: str
    """What is wrong with its file, or that it changed since it was trusted."""


class Folders:
    """All that are known, by their real paths."""

    def __init__(self, trusted: Iterable[Trusted], home: str) -> None:
        self.trusted = {each.folder: each.config for each in trusted}
        self._home = home
        self._projects: dict[str, Project] = {}

    def known(self) -> list[str]:
        """Those that are trusted, and those that callers were in of late."""
        return sorted({*self.trusted, *self._projects})

    def project(self, root: str | None) -> Project:
        """What the folder's file says now."""
        if root is None:
            return Project()
        project = self._projects.get(root)
        if project is None or not project.holds(root):
            if len(self._projects) >= _MOST:
                self._projects.clear()
            project = self._projects[root] = read(root, self._home)
        return project

    def here(self, root: str | None, now: int) -> Here:
        project = self.project(root)
        trusted = root is not None and root in self.trusted and not project.problem
        same = trusted and project.sha is not None and self.trusted[root or ""] == project.sha
        return Here(root=root, trusted=trusted, file_trusted=same, now=now)

    def folder(self, root: str) -> Folder:
        project, here = self.project(root), self.here(root, 0)
        changed = CHANGED if here.trusted and not here.file_trusted and project.sha is not None else ""
        return Folder(
            folder=root, trusted=here.trusted, config=project.sha, problem=project.problem or changed
        )

    def rules(self, root: str | None = None) -> list[Rule]:
        """Of one folder's file, or of all that are known."""
        roots = list(self._projects) if root is None else [root]
        return [rule for each in roots for rule in self.project(each).rules]

    def check(self, root: str, config: str | None) -> None:
        """Whether this folder can be trusted with this file. Raises Conflict."""
        if not Path(root).is_dir() or Path(self._home).is_relative_to(root):
            raise Conflict(
                f"{root} cannot be trusted: name a project's folder, not your home or what it lies in."
            )
        project = self.project(root)
        if project.problem:
            raise Conflict(f"{root} cannot be trusted while its file is wrong: {project.problem}")
        if config is not None and config != project.sha:
            raise Conflict(f"{root}/{FOLDER}/{NAME} is not as you saw it. Look at it again, then decide.")
