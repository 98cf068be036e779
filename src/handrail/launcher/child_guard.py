"""Refuse to start a process from anywhere but the launcher's own code, libraries included.

Libraries start programs that they find by PATH, as `ctypes.util.find_library` starts gcc. Such a child would carry no mark, and
any command can put a program into a folder of the user's PATH.
"""

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

_EVENTS = frozenset(
    ("subprocess.Popen", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "os.exec", "os.system")
)
"""Audit events of the interpreter for a new process."""
_launcher = threading.local()


def refuse_other_children() -> None:
    """Refuse them in this process, for good. The error is an OSError, which libraries take for a missing program."""
    sys.addaudithook(_check)


@contextmanager
def starting() -> Generator[None]:
    """Let this thread start a process."""
    _launcher.starts = True
    try:
        yield
    finally:
        _launcher.starts = False


def _check(event: str, _arguments: object) -> None:
    if event in _EVENTS and not getattr(_launcher, "starts", False):
        raise PermissionError(f"Only the launcher starts processes in the daemon, so {event} is refused.")
