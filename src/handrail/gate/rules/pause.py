"""The pause: while it lasts, what rules would allow asks a person. What rules deny stays denied.

It lasts over restarts, because it is read from the journal. Reading Handrail's own record is not held: agents wait for
their calls by it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from handrail.errors import Unwritable
from handrail.gate.rules.policy import Decision
from handrail.store.actor import Actor
from handrail.store.events import AgentsPaused, AgentsResumed, Entry
from handrail.store.journal import Journal
from handrail.store.pauses import PauseRecord
from handrail.store.values import Claim

PAUSED = "paused"
"""Recorded in place of a rule for a call that only the pause holds."""
WHY = "All agents are paused. The call waits until a person resumes them, or answers it."
JUST_PAUSED = "All agents were paused as this was about to begin."
_NEVER_HELD = ("recall", "plan")
"""Actions that touch nothing outside of the agent and of Handrail's record."""


class Pause:
    """Whether agents are paused. Use it only on the event loop."""

    def __init__(
        self, journal: Journal, on_change: Callable[[], None], current: PauseRecord | None = None
    ) -> None:
        """`on_change` is called in a task, so that open approvals can be decided again."""
        self.current = current
        """Since when, and by whom; None in normal operation."""
        self._journal = journal
        self._on_change = on_change
        for kind in ("AgentsPaused", "AgentsResumed"):
            journal.watch(kind, self._landed)

    async def begin(self, by: Actor) -> bool:
        """Hold the calls of agents; False if they are held already. Raises Unwritable."""
        if self.current is not None:
            return False
        # In force before it is on disk: a call must not pass in between.
        self.current = PauseRecord(at=time.time_ns() // 1_000_000, by=str(by))
        try:
            return await self._record(AgentsPaused(by=str(by)))
        except Unwritable:
            self.current = None
            raise

    async def end(self, by: Actor) -> bool:
        """Let rules decide again; False if they do already. Raises Unwritable; then the pause goes on."""
        if self.current is None:
            return False
        return await self._record(AgentsResumed(by=str(by)))

    async def _record(self, event: AgentsPaused | AgentsResumed) -> bool:
        await self._journal.committed(self._journal.append(event))
        self._on_change()
        return True

    def _landed(self, entry: Entry) -> None:
        match entry.event:
            case AgentsPaused(by=by):
                self.current = PauseRecord(at=entry.at, by=by)
            case AgentsResumed():
                self.current = None
            case _:
                pass

    def hold(self, decision: Decision, claims: Sequence[Claim]) -> Decision:
        """The decision under the pause. An answer stays valid when the pause begins or ends."""
        is_held = decision.effect == "allow" and self.current is not None
        if not is_held or (claims and all(claim.action in _NEVER_HELD for claim in claims)):
            return decision
        return replace(decision, effect="ask", rule=PAUSED, why=WHY)
