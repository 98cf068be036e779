"""Hide this process's memory from other processes of the same user, and keep plugins of other packages out of it.

Another process that opened the memory earlier keeps it open, so programs call this before their other imports and before
they hold a token or a key. Standard library only.
"""

import os
import sys

_PR_SET_DUMPABLE = 4


def hide_memory() -> None:
    """Forbid other processes of the same user to trace this one or read its memory and environment (Linux only)."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415

        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))


def ignore_plugins() -> None:
    """Load no plugins for pydantic. They would see what this process parses, and the search for them delays its start."""
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
