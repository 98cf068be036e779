"""The way from a plain thread into the event loop, without blocking the thread.

anyio itself only offers a way that waits for the loop; both of its loops have one that does not.
"""

from collections.abc import Callable
from typing import Any, cast

from anyio.lowlevel import current_token

Soon = Callable[..., object]
"""`soon(function, *arguments)`: run it in the loop, in the order asked for; from any thread."""


def soon_here() -> Soon:
    """The way into the loop that is running now."""
    native = cast("Any", current_token().native_token)
    is_trio = hasattr(native, "run_sync_soon")
    return native.run_sync_soon if is_trio else native.call_soon_threadsafe
