"""Keeping our memory to ourselves.

Owns one call to the system. A process of the same user that opened our memory before would keep it open, so this comes
before everything else: before the imports, and long before a bearer or a daemon is in this process.
"""

import sys

PR_SET_DUMPABLE = 4


def hide_memory() -> None:
    """Let no other process of the same user read our memory and environment, or trace us."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415

        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
