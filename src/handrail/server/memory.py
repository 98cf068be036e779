"""The garbage collector's settings, and freed memory that is returned to the system."""

import ctypes
import gc
import logging
import sys

log = logging.getLogger(__name__)

GC_THRESHOLD = 50_000
"""Threshold of the youngest gc generation. Above the objects of the largest response, so that none is delayed by a
collection."""

RELEASE_SECONDS = 2.0
"""Delay after the last client left before memory is returned: during a flood, each return would delay other clients."""


def tune_gc() -> None:
    """Make garbage collections rare and cheap. Call it again after importing much.

    Modules and routes live as long as the process, and a response's objects are freed by reference count. A full
    collection frees nothing and delayed one response in twenty.
    """
    gc.enable()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, *gc.get_threshold()[1:])


def release_memory() -> None:
    """Collect garbage and return free heap pages to the system. Takes up to 100 ms.

    glibc keeps freed pages for later; after a flood that would look like a leak for as long as the daemon runs.
    """
    gc.collect()
    if sys.platform != "linux":
        return
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):  # another C library, which has no such function
        log.debug("malloc_trim is not available")
