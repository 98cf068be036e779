"""An operation: cancellable work for one prompt, and the scope of every call made for it.

Owns one branch of the scope tree. It keeps no list of its calls: they live in its task group, and cancelling
the operation is cancelling that group.
"""

from anyio.abc import TaskGroup

from handrail.store.event import Caller


class Operation:
    """One branch of the tree; cancelled as a whole."""

    def __init__(self, id: str, caller: Caller, group: TaskGroup) -> None:
        self.id = id
        self.caller = caller
        self.group = group
        self.cancelled_by: str | None = None

    def cancel(self, by: str) -> bool:
        """Cancel everything in it; False when somebody was first."""
        if self.cancelled_by is not None:
            return False
        self.cancelled_by = by
        self.group.cancel_scope.cancel()
        return True
