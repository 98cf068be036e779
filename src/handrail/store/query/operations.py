"""Questions about operations."""

from handrail.store.query.asking import Asking
from handrail.store.thread.record import OperationRecord
from handrail.store.thread.rows import operation_of


class Operations(Asking):
    """What is known of operations."""

    async def open_operations(self) -> list[OperationRecord]:
        """Those that did not end, oldest first: what a restart finds."""
        sql = "SELECT * FROM operations WHERE ended_at IS NULL ORDER BY opened_seq"
        return await self._all(operation_of, sql)

    async def operations_of(self, thread: str) -> list[OperationRecord]:
        """All the work done for a conversation, oldest first."""
        sql = "SELECT * FROM operations WHERE thread = ? ORDER BY opened_seq"
        return await self._all(operation_of, sql, (thread,))

    async def operation(self, id: str) -> OperationRecord | None:
        found = await self._all(operation_of, "SELECT * FROM operations WHERE id = ?", (id,))
        return found[0] if found else None
