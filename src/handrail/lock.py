"""One daemon per home: a lock that its holder's death releases."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


class Held(Exception):
    """Another daemon holds this home."""


@contextmanager
def hold(path: Path) -> Generator[None]:
    """Hold the lock, or raise Held at once. A stale file is no lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Held(
                f"Another Handrail daemon holds {path.parent}. "
                "`handrail open` shows its page, `handrail down` ends it."
            ) from None
        yield
    finally:
        os.close(descriptor)
