"""Activities: the steps of an operation as a tree, each with its own cancel scope.

Reports when an activity begins and ends and how it ended, and can cancel any of them by id. An activity lives
exactly as long as its `with` block; cancelling it cancels everything below it.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from secrets import token_hex
from typing import Literal

import anyio

from handrail.lazy_dataclass import dataclass

Sort = Literal["operation", "step", "model", "thinking", "call", "agent", "compaction"]
Ending = Literal["done", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityUpdate:
    """An activity has begun or, if `how` is set, ended."""

    id: str
    parent: str | None
    sort: Sort
    title: str
    tool_call: str = ""
    """The id of the tool call that this activity runs."""
    how: Ending | None = None
    detail: str = ""
    """A note on the result, or the reason of a failure."""


OnUpdate = Callable[[ActivityUpdate], None]


class Activity:
    """One node of the tree. Only this module enters `scope`."""

    def __init__(
        self, sort: Sort, title: str, tell: OnUpdate, above: "Activity | None", tool_call: str = ""
    ) -> None:
        self.id = token_hex(8)
        self.sort: Sort = sort
        self.title = title
        self.scope = anyio.CancelScope()
        self.ending: Ending = "done"
        """The ending to report if nothing is raised; set by the code inside the activity."""
        self.detail = ""
        """The detail to report at the end; set by the code inside the activity."""
        self._tell, self._above, self._tool_call = tell, above, tool_call
        self._below: list[Activity] = []

    @contextmanager
    def begin(self, sort: Sort, title: str, tool_call: str = "") -> "Generator[Activity]":
        """Run a child activity for the length of the `with`.

        A cancellation of the child stops at the end of the `with`; check `scope.cancelled_caught`. An
        exception is reported as a failure and propagates.
        """
        below = Activity(sort, title, self._tell, self, tool_call)
        with self._holding(below), _reported(below), below.scope, _recorded(below):
            yield below

    @contextmanager
    def part(self, sort: Sort, title: str) -> "Generator[Activity]":
        """Run a child activity without its own scope: cancelling the child cancels this activity.

        It enters no scope, so it need not nest with the scopes that this activity's code enters.
        """
        below = Activity(sort, title, self._tell, self)
        below.scope = self.scope
        with self._holding(below), _reported(below), _recorded(below):
            yield below

    @property
    def open(self) -> "Iterator[Activity]":
        """This activity and all open ones below it."""
        yield self
        for below in self._below:
            yield from below.open

    def cancel(self, id: str) -> bool:
        """Cancel the activity with this id, here or below. False if it is not open."""
        activity = next((each for each in self.open if each.id == id), None)
        if activity is not None:
            activity.scope.cancel()
        return activity is not None

    def tell(self, how: Ending | None = None) -> None:
        self._tell(
            ActivityUpdate(
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
def operation(title: str, tell: OnUpdate) -> Generator[Activity]:
    """Run the root activity of a new tree."""
    root = Activity("operation", title, tell, None)
    with _reported(root), root.scope, _recorded(root):
        yield root


@contextmanager
def _reported(activity: Activity) -> Generator[None]:
    """Report the beginning and the end. Wraps the scope from outside, after the scope has caught its
    cancellation."""
    activity.tell()
    try:
        yield
    finally:
        activity.tell(activity.ending)


@contextmanager
def _recorded(activity: Activity) -> Generator[None]:
    """Record the ending when an exception passes."""
    try:
        yield
    except anyio.get_cancelled_exc_class():
        activity.ending = "cancelled"
        raise
    except BaseException:
        activity.ending = "failed"
        raise
