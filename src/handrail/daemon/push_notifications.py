"""Push notifications on paired devices, for approvals that nobody looks at.

A message says that a call needs a person, and how high its risk is. It holds no title, argument or name of an agent.
"""

import http.client
import json
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from handrail.gate.call import Call
from handrail.gate.gate import Gate
from handrail.server.sign_ins import SignIn, SignIns
from handrail.store.events import ApprovalOpened, Entry, Event
from handrail.store.values import PushSubscription

if TYPE_CHECKING:
    from handrail.server.web_push import PushSender  # at run time only when needed: cryptography takes 6 MB

log = logging.getLogger(__name__)

GRACE_SECONDS = 1.0
"""Seconds in which a page may show the approval, or a person may answer it."""
BURST_SECONDS = 5.0
"""Least seconds between two messages; a burst of approvals gives one."""
GONE = (404, 410)
"""A push service's answers for a subscription that the browser gave up."""
_RISKS = ("low", "medium", "high")


class PushNotifier:
    """Sends a message to each subscribed device."""

    def __init__(
        self,
        gate: Gate,
        sign_ins: SignIns,
        looking: Callable[[], int],
        build_sender: "Callable[[], PushSender]",
        *,
        grace: float = GRACE_SECONDS,
        burst: float = BURST_SECONDS,
    ) -> None:
        """`looking` returns the number of pages that a person looks at."""
        self._gate = gate
        self._sign_ins = sign_ins
        self._looking = looking
        self._build_sender = build_sender
        self._grace = grace
        self._burst = burst
        self._opened: list[ApprovalOpened] = []
        self._has_new = anyio.Event()

    async def run(self) -> None:
        """Send messages about approvals opened from now on, until cancelled."""
        async with anyio.create_task_group() as group:
            journal = self._gate.journal
            group.start_soon(journal.follow, journal.head, self._collect, _is_approval)
            while True:
                await self._has_new.wait()
                self._has_new = anyio.Event()
                await anyio.sleep(self._grace)
                if await self._notify():
                    await anyio.sleep(self._burst)

    async def _collect(self, entries: Sequence[Entry]) -> None:
        self._opened += [entry.event for entry in entries if isinstance(entry.event, ApprovalOpened)]
        if self._opened:
            self._has_new.set()

    async def _notify(self) -> bool:
        opened, self._opened = self._opened, []
        waiting = [call for each in opened if (call := self._find_open_call(each)) is not None]
        subscribed = [signed for signed in self._sign_ins.current if signed.push is not None]
        if not waiting or not subscribed or self._looking():
            return False
        text = json.dumps(build_message(waiting))
        async with anyio.create_task_group() as group:
            for signed in subscribed:
                group.start_soon(self._send, signed, text)
        return True

    def _find_open_call(self, opened: ApprovalOpened) -> Call | None:
        call = self._gate.open.get(opened.call)
        return call if call is not None and call.approval is not None and call.approval.open else None

    async def _send(self, signed: SignIn, text: str) -> None:
        assert signed.push is not None
        try:
            status = await to_thread.run_sync(self._send_now, signed.push, text, abandon_on_cancel=True)
        except (OSError, http.client.HTTPException, ValueError) as problem:
            log.warning("no message could be sent to %s: %s", signed.id, problem)
            return
        if status in GONE:
            self._sign_ins.set_push(signed.id, None)
        elif status >= 300:
            log.warning("the push service refused a message to %s with status %s", signed.id, status)

    def _send_now(self, subscription: PushSubscription, text: str) -> int:
        return self._build_sender().send(subscription, text)


def build_message(waiting: Sequence[Call]) -> dict[str, str]:
    """What the notification says, and the path that it opens."""
    risks = [call.approval.asked.risk if call.approval else "high" for call in waiting]
    highest = max(risks, key=_RISKS.index)
    if len(waiting) > 1:
        return {"title": f"{len(waiting)} calls need you, up to {highest} risk", "path": "/"}
    (call,) = waiting
    return {"title": f"A call needs you, {highest} risk", "path": f"/c/{call.id}"}


def _is_approval(event: Event) -> bool:
    return isinstance(event, ApprovalOpened)
