"""An operation: cancellable work for one prompt, and the calls made for it.

Owns one branch of the scope tree, and knows which of its calls' work is still under way: that runs in the gate's own
group, because a call that was handed back outlives the prompt it was made for. It does not settle calls (gate.py).
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
"""How long work that does not stop may hold up whoever waits for the operation's end; it goes on alone then."""


class Operation:
    """One branch of the tree; cancelled as a whole."""

    def __init__(self, id: str, caller: Caller, ending: Callable[["Operation"], None]) -> None:
        self.id = id
        self.caller = caller
        """Of the calls made for it: it names the operation."""
        self.scope = anyio.CancelScope()
        self.cancelled_by: Actor | None = None
        self.stop: Stop | None = None
        """Why it ended; for whoever does its work to say."""
        self.error = ""
        self.busy_with: Callable[[], tuple[str, ...]] = tuple
        """In words; for whoever does its work to say."""
        self._ending = ending
        self._ended = False
        self._working: set[Call] = set()
        self._bell = anyio.Event()

    @property
    def ended(self) -> bool:
        """Nothing more is begun for it; its work may still unwind."""
        return self._ended

    def cancel(self, by: Actor) -> bool:
        """Cancel everything in it; False when it had ended before."""
        if self._ended:
            return False
        self.cancelled_by = by
        self.stop = "cancelled"
        self.end()
        return True

    def end(self) -> None:
        """Take along what is open in it: all calls when it is cancelled, else those that somebody waits for."""
        if not self._ended:
            self._ended = True
            self._ending(self)
            self.scope.cancel()

    def takes(self, call: Call) -> bool:
        """Whether its end is the call's end as well."""
        left = call.handed_back or call.client_gone
        return call.caller.operation == self.id and (self.cancelled_by is not None or not left)

    @contextmanager
    def working(self, call: Call) -> Generator[None]:
        """While the work of one of its calls is under way."""
        self._working.add(call)
        try:
            yield
        finally:
            self._working.remove(call)
            self._bell.set()
            self._bell = anyio.Event()

    async def unwound(self) -> None:
        """Return when the work of all its settled calls has stopped."""
        with anyio.move_on_after(UNWIND_SECONDS) as bound:
            while any(call.outcome is not None for call in self._working):
                await self._bell.wait()
        if bound.cancelled_caught:
            log.warning("work of operation %s does not stop", self.id)
