"""A while that may pass before something is done, so that what comes meanwhile is done with it.

Owns one timer. It does not know what for.

Ways to have a plain function run in the event loop, from a thread or after a while, without a task that
waits.
"""

import time
from collections.abc import Callable
from typing import Any, cast

from anyio.lowlevel import current_token


class Linger:
    """Runs a function `seconds` after it was first asked to, unless it was done meanwhile. Belongs to its loop."""

    def __init__(self, seconds: float, function: Callable[[], object]) -> None:
        self._seconds = seconds
        self._function = function
        self._later = later_here()
        self._due: float | None = None
        self._armed = False

    def ask(self) -> None:
        """Have it done in a while; who asks again meanwhile does not put it off."""
        if self._due is None:
            self._due = time.monotonic() + self._seconds
            self._arm(self._seconds)

    def met(self) -> None:
        """It has been done: nothing is asked for any more."""
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
        if left > 0:  # what this was set for was done, and it was asked for again
            self._arm(left)
        else:
            self._due = None
            self._function()


Later = Callable[[float, Callable[[], object]], object]
"""`later(seconds, function)`: run it in the loop after a while; from the loop alone. Dropped when the loop ends."""
Soon = Callable[..., object]
"""`soon(function, *arguments)`: run it in the loop, in the order asked for; from any thread."""


def soon_here() -> Soon:
    """The way into the loop that is running now."""
    native = cast("Any", current_token().native_token)
    is_trio = hasattr(native, "run_sync_soon")
    return native.run_sync_soon if is_trio else native.call_soon_threadsafe


def later_here() -> Later:
    """The timer of the loop that is running now."""
    native = cast("Any", current_token().native_token)
    return _later_in_trio if hasattr(native, "run_sync_soon") else native.call_later


def _later_in_trio(seconds: float, function: Callable[[], object]) -> None:
    import trio  # noqa: PLC0415 - there only when somebody runs on it

    async def wait() -> None:
        await trio.sleep(seconds)
        function()

    trio.lowlevel.spawn_system_task(wait)
