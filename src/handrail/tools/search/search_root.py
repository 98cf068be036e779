"""The folder to list or search, held open so that it cannot be swapped after approval.

Also decides which files below it may be shown.
"""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

from handrail.gate.tool import Plan
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Caller, PathPreview
from handrail.tools.files.encoding import shown
from handrail.tools.protected_paths import GitNames, git_names, is_protected, is_repository_part
from handrail.tools.results import Input
from handrail.tools.search.gitignore import Glob
from handrail.tools.workspace import Place, Workspace

InputT = TypeVar("InputT", bound=Input)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePlan(Plan, Generic[InputT]):
    """A resolved folder or file, and the tool's input."""

    place: Place
    workspace: Workspace
    input: InputT


def plan_tree(path: str, input: InputT, caller: Caller, own: Sequence[Path]) -> TreePlan[InputT]:
    workspace = Workspace.of(caller, own)
    place = workspace.place(path)
    return TreePlan(
        claims=(place.claim("read"),),
        preview=PathPreview(path=place.path),
        bound=place.bound,
        place=place,
        workspace=workspace,
        input=input,
    )


@dataclass(frozen=True, slots=True)
class Tree:
    """An open folder and the filter for files below it."""

    folder: int
    place: Place
    workspace: Workspace
    glob: Glob | None
    git_names: GitNames = field(default_factory=lambda: cache(git_names))

    def path(self, raw: bytes) -> str | None:
        """The path of a found file below the folder; None when it must not be shown.

        Protected files are shown only if the call named the protected place: a person has then approved it.
        """
        path = os.fsdecode(raw.removeprefix(b"./"))
        if self.glob is not None and not self.glob.matches(path):
            return None
        if not self.place.protected and self._protects(f"{self.place.path}/{path}"):
            return None
        return path

    def _protects(self, path: str) -> bool:
        """Whether a file is protected. Looks at each folder once, because a search finds many files."""
        return is_protected(path, self.workspace.own) or is_repository_part(path, self.git_names)

    def shown(self, path: str) -> str:
        """The path shown to a model."""
        below = shown(os.fsencode(path))
        return below if self.place.shown == "." else f"{self.place.shown.rstrip('/')}/{below}"


@contextmanager
def open_tree(plan: TreePlan[InputT], pattern: str | None) -> Generator[Tree]:
    """Open the planned folder. Raises Refusal when it was replaced."""
    folder = plan.place.open_folder()
    try:
        yield Tree(folder, plan.place, plan.workspace, Glob(pattern) if pattern is not None else None)
    finally:
        os.close(folder)
