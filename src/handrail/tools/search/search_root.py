"""A folder that is looked through: held open, so that it stays the one that was planned.

Owns the plan that listing and searching share, and which files below a folder may be seen. It does not walk
(seek.py) and does not say anything (listing.py, search.py).
"""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from handrail.gate.tool import Plan
from handrail.store.values import Caller, PathPreview
from handrail.tools.files.encoding import shown
from handrail.tools.results import Input
from handrail.tools.search.gitignore import Glob
from handrail.tools.workspace import Place, Workspace

InputT = TypeVar("InputT", bound=Input)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePlan(Plan, Generic[InputT]):
    """A folder or file, resolved, and what is asked about it."""

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
    """An open folder and what may be seen below it."""

    folder: int
    place: Place
    workspace: Workspace
    glob: Glob | None

    def path(self, raw: bytes) -> str | None:
        """The path of a found file below the folder; None when it is not to be seen.

        A protected place is seen only by those who named it, for then a person was asked.
        """
        path = os.fsdecode(raw.removeprefix(b"./"))
        if self.glob is not None and not self.glob.matches(path):
            return None
        if not self.place.protected and self.workspace.protects(f"{self.place.path}/{path}"):
            return None
        return path

    def shown(self, path: str) -> str:
        """As a model names it."""
        below = shown(os.fsencode(path))
        return below if self.place.shown == "." else f"{self.place.shown.rstrip('/')}/{below}"


@contextmanager
def open_tree(plan: TreePlan[InputT], pattern: str | None) -> Generator[Tree]:
    """The very folder that was planned. Raises Refusal."""
    folder = plan.place.open_folder()
    try:
        yield Tree(folder, plan.place, plan.workspace, Glob(pattern) if pattern is not None else None)
    finally:
        os.close(folder)
