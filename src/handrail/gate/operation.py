"""An operation: cancellable work for one prompt, and the scope of every call made for it.

Owns one branch of the scope tree. It keeps no list of its calls: they live in its task group, and cancelling
the operation is cancelling that group.
"""

from collections.abc import Callable

from anyio.abc import TaskGroup

from handrail.store.value import Caller


class Operation:
    """One branch of the tree; cancelled as a whole."""

    def __init__(
        self, id: str, caller: Caller, group: TaskGroup, ending: Callable[["Operation"], None]
    ) -> None:
        self.id = id
        self.caller = caller
        self.group = group
        self.cancelled_by: str | None = None
        self._ending = ending
        self._ended = False

    def cancel(self, by: str) -> bool:
        """Cancel everything in it; False when it had ended before."""
        if self._ended:
            return False
        self.cancelled_by = by
        self.end()
        return True

    def end(self) -> None:
        """Take along whatever is still open in it."""
        if not self._ended:
            self._ended = True
            self._ending(self)
            self.group.cancel_scope.cancel()
