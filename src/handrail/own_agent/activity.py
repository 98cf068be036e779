"""Activities: what an operation is busy with, each with a scope of its own, in one tree.

Owns when an activity begins and ends, how it ended, and cancelling any one of them by its id. The tree is the scopes'
own: an activity lives exactly as long as its `with`, and whoever cancels one cancels what is below it. It does not know
what is done in any of them, nor who is told.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from secrets import token_hex
from typing import Literal

import anyio

Sort = Literal["operation", "step", "model", "thinking", "call", "agent", "compaction"]
Ending = Literal["done", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """That an activity began, or, with `how`, that it ended."""

    id: str
    parent: str | None
    sort: Sort
    title: str
    tool_call: str = ""
    """The call it is, as the conversation names it."""
    how: Ending | None = None
    detail: str = ""
    """What is worth knowing of its end, or why it failed."""


Tell = Callable[[Told], None]


class Activity:
    """One node, open or over. `scope` is entered by this module alone."""

    def __init__(
        self, sort: Sort, title: str, tell: Tell, above: "Activity | None", tool_call: str = ""
    ) -> None:
        self.id = token_hex(8)
        self.sort: Sort = sort
        self.title = title
        self.scope = anyio.CancelScope()
        self.ending: Ending = "done"
        """How it ends where nothing is raised, for whoever works here to say."""
        self.detail = ""
        """What whoever works here has to say of its end."""
        self._tell, self._above, self._tool_call = tell, above, tool_call
        self._below: list[Activity] = []

    @contextmanager
    def begin(self, sort: Sort, title: str, tool_call: str = "") -> "Generator[Activity]":
        """Something new below this one, for the length of the `with`. Its own cancel ends there, and is seen by
        `scope.cancelled_caught`; what raises inside is told as a failure and goes on."""
        below = Activity(sort, title, self._tell, self, tool_call)
        with self._holding(below), _told(below), below.scope, _noted(below):
            yield below

    @contextmanager
    def part(self, sort: Sort, title: str) -> "Generator[Activity]":
        """A stretch of this one that cannot be cancelled by itself: to cancel it is to cancel this.

        It enters no scope, so it may begin and end wherever this one's own work is just then.
        """
        below = Activity(sort, title, self._tell, self)
        below.scope = self.scope
        with self._holding(below), _told(below), _noted(below):
            yield below

    @property
    def open(self) -> "Iterator[Activity]":
        """This one and all below it that are under way."""
        yield self
        for below in self._below:
            yield from below.open

    def cancel(self, id: str) -> bool:
        """Cancel the one of this id, here or below; False where there is none any more."""
        found = next((each for each in self.open if each.id == id), None)
        if found is not None:
            found.scope.cancel()
        return found is not None

    def tell(self, how: Ending | None = None) -> None:
        self._tell(
            Told(
                id=self.id,
                parent=None if self._above is None else self._above.id,
                sort=self.sort,
                title=self.title,
                tool_call=self._tool_call,
                how=how,
                detail="" if how is None else self.detail,
            )
        )

    @contextmanager
    def _holding(self, below: "Activity") -> Generator[None]:
        self._below.append(below)
        try:
            yield
        finally:
            self._below.remove(below)


@contextmanager
def operation(title: str, tell: Tell) -> Generator[Activity]:
    """The root of a new tree."""
    root = Activity("operation", title, tell, None)
    with _told(root), root.scope, _noted(root):
        yield root


@contextmanager
def _told(activity: Activity) -> Generator[None]:
    """Its beginning and its end, whatever happens between them; outside of its scope, which has swallowed its cancel."""
    activity.tell()
    try:
        yield
    finally:
        activity.tell(activity.ending)


@contextmanager
def _noted(activity: Activity) -> Generator[None]:
    """How it ended, where something is raised."""
    try:
        yield
    except anyio.get_cancelled_exc_class():
        activity.ending = "cancelled"
        raise
    except BaseException:
        activity.ending = "failed"
        raise
