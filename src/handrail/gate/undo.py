"""Taking back what calls did to files: what a person is shown, and then done exactly so.

Owns the seam between whoever asks for an undo and the hands that carry it out (tools/). It is a person's own verb, so
no rule is asked. It does not know files, nor how an undo is worked out.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from handrail.store.actor import Actor

Does = Literal["restore", "remove", "recreate", "nothing", "refuse"]
Of = Literal["call", "operation", "thread", "undo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoFile:
    """One file of an undo."""

    path: str
    does: Does
    says: str
    diff: str = ""
    """What undoing does to it; of a refused one, what is in the way."""
    added: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoPlan:
    """What an undo would do, or did."""

    what: str
    """The id that is undone."""
    of: Of
    title: str
    digest: str
    """Of what would be done; an undo that would do something else is refused."""
    files: tuple[UndoFile, ...]
    not_covered: tuple[str, ...]
    """What cannot be undone, in words."""
    undo: str | None = None
    """The id of the undo once it is done; it can be undone itself."""


class UnknownUndo(Exception):
    """There is nothing of this name to undo."""

    def __init__(self, id: str) -> None:
        self.id = id
        super().__init__(
            f"There is no call, operation, thread or undo {id}. `handrail calls` lists the calls there are."
        )


class Undoes(Protocol):
    """Whoever can take back what calls did to files."""

    async def preview(self, id: str) -> UndoPlan:
        """What undoing this call, operation, thread or earlier undo would do. Raises `UnknownUndo`."""
        ...

    async def undo(self, id: str, digest: str, by: Actor) -> UndoPlan:
        """Do what was shown. Raises `UnknownUndo`, `Conflict` when it would do something else, `Unwritable`."""
        ...
