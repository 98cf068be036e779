"""New approvals for notifiers, grouped: who notifies decides where, this decides when and about which calls."""

from collections.abc import Awaitable, Callable, Sequence

import anyio

from handrail.gate.call import Call
from handrail.gate.gate import Gate
from handrail.store.events import ApprovalOpened, Entry, Event


class ApprovalWatch:
    """Follows the journal for opened approvals, and calls a notifier at most once in some seconds."""

    def __init__(self, gate: Gate, *, grace: float, burst: float) -> None:
        """`grace` are seconds in which a page may show an approval or a person may answer it, `burst` seconds between two
        notifications."""
        self._gate = gate
        self.grace = grace
        self._burst = burst
        self._opened: list[ApprovalOpened] = []
        self._has_new = anyio.Event()

    async def run(self, notify: Callable[[], Awaitable[bool]]) -> None:
        """Call `notify` after approvals that open from now on, until cancelled. It returns whether it notified anyone."""
        async with anyio.create_task_group() as group:
            journal = self._gate.journal
            group.start_soon(journal.follow, journal.head, self._collect, _is_approval)
            while True:
                await self._has_new.wait()
                self._has_new = anyio.Event()
                await anyio.sleep(self.grace)
                if await notify():
                    await anyio.sleep(self._burst)

    def wake(self) -> None:
        """Have the notifier called for something else than an approval."""
        self._has_new.set()

    def take_waiting(self) -> list[Call]:
        """The calls whose approvals were opened since the last time, and are still open."""
        opened, self._opened = self._opened, []
        calls = [self._gate.open.get(each.call) for each in opened]
        return [
            call for call in calls if call is not None and call.approval is not None and call.approval.open
        ]

    async def _collect(self, entries: Sequence[Entry]) -> None:
        self._opened += [entry.event for entry in entries if isinstance(entry.event, ApprovalOpened)]
        if self._opened:
            self.wake()


def _is_approval(event: Event) -> bool:
    return isinstance(event, ApprovalOpened)
