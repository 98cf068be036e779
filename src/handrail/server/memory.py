"""Return freed memory to the system, after a client that held much of it has left."""

import ctypes
import gc
import logging
import sys

log = logging.getLogger(__name__)


def release_memory() -> None:
    """Collect garbage and return free heap pages to the system. Takes some milliseconds.

    glibc keeps freed pages for later; after a flood that would look like a leak for as long as the daemon runs.
    """
    gc.collect()
    if sys.platform != "linux":
        return
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):  # another C library, which has no such function
        log.debug("malloc_trim is not available")
