"""Ways to have a plain function run in the event loop, from a thread or after a while, without a task that waits.

anyio itself only offers ways that wait; both of its loops have some that do not.
"""

from collections.abc import Callable
from typing import Any, cast

from anyio.lowlevel import current_token

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
