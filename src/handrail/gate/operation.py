"""An operation: cancellable work for one prompt, and the calls made for it.

Owns a cancel scope and tracks which of its calls still have work running. That work runs in the gate's task group,
because a call that was handed back can outlive the prompt. It does not settle calls (gate.py).
"""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio

from handrail.gate.call import Call
from handrail.store.actor import Actor
from handrail.store.values import Caller, Stop

log = logging.getLogger(__name__)

UNWIND_SECONDS = 30.0
"""Bounds how long work that does not stop can delay the end; then it goes on in the background."""


class Operation:
    """The work for one prompt; cancelled as a whole."""

    def __init__(self, id: str, caller: Caller, ending: Callable[["Operation"], None]) -> None:
        self.id = id
        self.caller = caller
        """The caller of its calls; `caller.operation` is this id."""
        self.opened_seq = 0
        self.scope = anyio.CancelScope()
        self.cancelled_by: Actor | None = None
        self.stop: Stop | None = None
        """Why it ended; set by the code that runs the prompt."""
        self.error = ""
        self.busy_with: Callable[[], tuple[str, ...]] = tuple
        """Describes activities in progress, for the record of a cancel; set by the code that runs the prompt."""
        self._ending = ending
        self._ended = False
        self._working: set[Call] = set()
        self._bell = anyio.Event()

    @property
    def ended(self) -> bool:
        """No new calls are accepted; work may still be stopping."""
        return self._ended

    def cancel(self, by: Actor) -> bool:
        """Cancel all of its work; False if it had already ended."""
        if self._ended:
            return False
        self.cancelled_by = by
        self.stop = "cancelled"
        self.end()
        return True

    def end(self) -> None:
        """End it and its open calls: all of them on cancel, else those not handed back. Idempotent."""
        if not self._ended:
            self._ended = True
            self._ending(self)
            self.scope.cancel()

    def ends_call(self, call: Call) -> bool:
        """Whether the call ends together with this operation."""
        left = call.handed_back or call.client_gone
        return call.caller.operation == self.id and (self.cancelled_by is not None or not left)

    @contextmanager
    def working(self, call: Call) -> Generator[None]:
        """Mark a call's work as running for the duration of the block."""
        self._working.add(call)
        try:
            yield
        finally:
            self._working.remove(call)
            self._bell.set()
            self._bell = anyio.Event()

    async def unwound(self) -> None:
        """Wait until the work of its settled calls has stopped, at most `UNWIND_SECONDS`.

        A completed call is not waited for: the person let its work run on.
        """
        with anyio.move_on_after(UNWIND_SECONDS) as bound:
            while any(_is_stopping(call) for call in self._working):
                await self._bell.wait()
        if bound.cancelled_caught:
            log.warning("work of operation %s does not stop", self.id)


def _is_stopping(call: Call) -> bool:
    return call.outcome is not None and call.outcome.ending != "completed"
