"""Debounce timer, and callbacks into the event loop from a thread or after a delay, without a waiting task.

Works on asyncio and on trio.
"""

import time
from collections.abc import Callable
from typing import Any, cast

from anyio.lowlevel import current_token

TICK_SECONDS = 0.001
"""The precision of the loop's timers. A shorter delay would run on the loop's next turns until it is over."""


class Debounce:
    """Runs a function once, `seconds` after the first request. Use it only in the loop that created it.

    With `postpones`, it runs `seconds` after the last request.
    """

    def __init__(self, seconds: float, function: Callable[[], object], *, postpones: bool = False) -> None:
        self._seconds = seconds
        self._function = function
        self._postpones = postpones
        self._later = later_here()
        self._due: float | None = None
        self._armed = False

    def request(self) -> None:
        """Request a run."""
        if self._due is None or self._postpones:
            self._due = time.monotonic() + self._seconds
            self._arm(self._seconds)

    def cancel(self) -> None:
        """Cancel the pending request: the work was done another way."""
        self._due = None

    def _arm(self, seconds: float) -> None:
        if not self._armed:
            self._armed = True
            self._later(seconds, self._ring)

    def _ring(self) -> None:
        self._armed = False
        if self._due is None:
            return
        left = self._due - time.monotonic()
        if left > 0:  # the request this timer was set for was met, and a new one came
            self._arm(max(left, TICK_SECONDS))
        else:
            self._due = None
            self._function()


Later = Callable[[float, Callable[[], object]], object]
"""`later(seconds, function)`: run it in the loop after a delay. Call it in the loop. Dropped when the loop ends."""
Soon = Callable[..., object]
"""`soon(function, *arguments)`: run it in the loop, in call order. Call it from any thread."""


def soon_here() -> Soon:
    """Return the thread-safe scheduler of the running loop."""
    native = cast("Any", current_token().native_token)
    is_trio = hasattr(native, "run_sync_soon")
    return native.run_sync_soon if is_trio else native.call_soon_threadsafe


def later_here() -> Later:
    """Return the timer function of the running loop."""
    native = cast("Any", current_token().native_token)
    return _later_in_trio if hasattr(native, "run_sync_soon") else native.call_later


def _later_in_trio(seconds: float, function: Callable[[], object]) -> None:
    import trio  # noqa: PLC0415 - installed only where the loop is trio

    async def wait() -> None:
        await trio.sleep(seconds)
        function()

    trio.lowlevel.spawn_system_task(wait)
