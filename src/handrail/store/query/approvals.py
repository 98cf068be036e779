"""Questions about approvals."""

from handrail.store.query.asking import Asking
from handrail.store.records import ApprovalRecord, PromptRecord
from handrail.store.rows import approval_of, prompt_of

_APPROVALS_MAX = 1000
"""Bounds what the list of all approvals, previews included, may hold in memory."""

IS_OPEN = "approvals.answered_at IS NULL AND approvals.withdrawn_at IS NULL AND approvals.expired_at IS NULL"
_COLUMNS = """approvals.*, calls.tool, calls.title, calls.door, calls.client, calls.caller_key, calls.workspace,
       calls.thread, calls.operation"""
_WITH_CALLS = "FROM approvals JOIN calls ON calls.id = approvals.call"
APPROVALS = f"""
SELECT {_COLUMNS}, events.payload
{_WITH_CALLS} JOIN events ON events.seq = approvals.opened_seq"""
_BARE = f"SELECT {_COLUMNS}, NULL AS payload {_WITH_CALLS}"


class Approvals(Asking):
    """What is known of approvals."""

    async def approvals(self, open_only: bool) -> list[ApprovalRecord]:
        """Oldest first while they are open: who has waited longest stands on top."""
        if open_only:
            return await self._all(approval_of, f"{APPROVALS} WHERE {IS_OPEN} ORDER BY approvals.opened_seq")
        return await self._all(approval_of, _NEWEST, (_APPROVALS_MAX,))

    async def open_approvals(self) -> list[ApprovalRecord]:
        """The open ones, oldest first, without what they show: whoever put the question knows that better."""
        return await self._all(approval_of, f"{_BARE} WHERE {IS_OPEN} ORDER BY approvals.opened_seq")

    async def approval(self, id: str) -> ApprovalRecord | None:
        found = await self._all(approval_of, f"{APPROVALS} WHERE approvals.id = ?", (id,))
        return found[0] if found else None

    async def prompts(self, limit: int = 500) -> list[PromptRecord]:
        """The questions of late, answered or not, as a rule would have met them."""
        return await self._all(prompt_of, _NEWEST, (limit,))


_NEWEST = f"{APPROVALS} ORDER BY approvals.opened_seq DESC LIMIT ?"
