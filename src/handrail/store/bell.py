"""A bell: wakes every task that waits for the next ring.

A ring without a waiter costs nothing: the event is created by the first waiter. An `anyio.Event` that is replaced after
each use would be created and set once per call, mostly for no waiter.
"""

import anyio


class Bell:
    """Wakes its waiters each time it rings. Use it only in the event loop."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event: anyio.Event | None = None

    def next(self) -> anyio.Event:
        """The event that the next ring sets. Take it before reading the state, to miss no ring in between."""
        if self._event is None:
            self._event = anyio.Event()
        return self._event

    async def wait(self) -> None:
        """Wait for the next ring."""
        await self.next().wait()

    def ring(self) -> None:
        """Wake all waiters."""
        event, self._event = self._event, None
        if event is not None:
            event.set()
