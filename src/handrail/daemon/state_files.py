"""The doorplate: what a daemon leaves on disk so that it is found, and found again after a restart.

The daemon's own. Owns two small files of its home, and what it can tell from those of the daemon before.

One daemon per home: a lock that its holder's death releases.

The daemon's log: rotated, and free of inputs, outputs and secrets, because nobody hands it any.
"""

import fcntl
import json
import logging
import os
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

from handrail import __version__
from handrail.paths import Places


class Doorplate:
    """Where this daemon is."""

    def __init__(self, places: Places, wished: int) -> None:
        """`wished` is the port that it would like."""
        self._places = places
        self._wished = wished

    @property
    def ports(self) -> tuple[int, ...]:
        """Those to try. The one it had last comes first, when it wished for the same one then: an open page finds it again."""
        try:
            wished, got = (int(word) for word in self._places.port.read_text().split())
        except (OSError, ValueError):
            return (self._wished,)
        return (got, self._wished) if wished == self._wished else (self._wished,)

    @property
    def hangs(self) -> bool:
        """The daemon before did not take it down: it crashed."""
        return self._places.daemon_json.exists()

    def note_port(self, got: int) -> None:
        self._places.port.write_text(f"{self._wished} {got}\n")

    def put_up(self, url: str) -> None:
        """Whole, or not at all."""
        socket = str(self._places.daemon_socket)
        about = {"pid": os.getpid(), "url": url, "version": __version__, "socket": socket}
        path = self._places.daemon_json
        fresh = path.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps(about))
        fresh.replace(path)

    def take_down(self) -> None:
        self._places.daemon_json.unlink(missing_ok=True)


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


ExceptionFacts = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

LOG_BYTES = 2 * 1024 * 1024
LOGS_KEPT = 3
"""Together with the size: a log never fills a disk."""
_QUIET = ("mcp", "uvicorn", "websockets", "sse_starlette", "asyncio")
"""They log what clients sent, which may hold inputs."""


class Discreet(logging.Formatter):
    """Tells of an exception where it happened and of what kind, but not what it said: that may hold inputs."""

    def formatException(self, ei: ExceptionFacts) -> str:  # noqa: N802  (logging's own name)
        kind, _, trace = ei
        frames = "".join(traceback.format_tb(trace)) if trace is not None else ""
        return f"{frames}{kind.__name__ if kind is not None else 'no exception'}"


def start_logging(folder: Path) -> None:
    path = folder / "daemon.log"
    path.touch(mode=0o600)
    os.chmod(path, 0o600)  # noqa: PTH101  (an older file may be open to others)
    handler = RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=LOGS_KEPT, encoding="utf-8")
    handler.setFormatter(Discreet("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.CRITICAL)
