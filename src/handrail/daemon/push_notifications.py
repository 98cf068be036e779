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

from handrail.daemon.approval_watch import ApprovalWatch
from handrail.gate.call import Call
from handrail.gate.gate import Gate
from handrail.server.sign_ins import SignIn, SignIns
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
        self._watch = ApprovalWatch(gate, grace=grace, burst=burst)
        self._sign_ins = sign_ins
        self._looking = looking
        self._build_sender = build_sender

    async def run(self) -> None:
        """Send messages about approvals opened from now on, until cancelled."""
        await self._watch.run(self._notify)

    async def _notify(self) -> bool:
        waiting = self._watch.take_waiting()
        subscribed = [signed for signed in self._sign_ins.current if signed.push is not None]
        if not waiting or not subscribed or self._looking():
            return False
        text = json.dumps(build_message(waiting))
        async with anyio.create_task_group() as group:
            for signed in subscribed:
                group.start_soon(self._send, signed, text)
        return True

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
