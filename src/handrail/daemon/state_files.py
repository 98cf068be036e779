"""The doorplate: what a daemon leaves on disk so that it is found, and found again after a restart.

The daemon's own. Owns two small files of its home, and what it can tell from those of the daemon before.

One daemon per home: a lock that its holder's death releases.

The daemon's log: rotated, and free of inputs, outputs and secrets, because nobody hands it any.

What a person who starts Handrail in the foreground is told: where the page is, and a fresh link on Enter.
"""

import fcntl
import json
import logging
import os
import shlex
import sys
import traceback
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

import anyio

from handrail import __version__
from handrail.paths import Places
from handrail.server.access import Access


class DaemonFile:
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


class AlreadyRunning(Exception):
    """Another daemon holds this home."""


@contextmanager
def hold_lock(path: Path) -> Generator[None]:
    """Hold the lock, or raise Held at once. A stale file is no lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(
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


class RedactingFormatter(logging.Formatter):
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
    handler.setFormatter(RedactingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.CRITICAL)


class ForegroundOutput:
    """Speaks on the terminal that started the daemon."""

    def __init__(self, access: Access, url: str, command_line: str, wished: int | None = None) -> None:
        """`wished` is the port that was asked for, when it could not be had."""
        self._wished = wished
        self._access = access
        self._url = url
        self._command_line = command_line

    async def run(self) -> None:
        """Say it once, and the link again whenever Enter is pressed: a code lasts a minute."""
        _say("", f"Handrail is ready at {self._url}", "")
        if self._wished is not None:
            _say(f"Port {self._wished} is taken, so it has another.", "")
        self._link()
        _say("", "Give this to an agent that speaks MCP:", f"  {self._command_line}", "")
        if not _has_keyboard():
            return
        _say("Press Enter for a fresh link, Ctrl-C to stop everything.")
        while await _line():
            self._link()

    def _link(self) -> None:
        if self._access.sealed is not None:
            _say(self._access.sealed)
        else:
            _say(f"Sign in:  {self._url}/#code={self._access.issue_code()}")


def build_connect_command(environment: Mapping[str, str]) -> str:
    """What connects a client to this very daemon; a home of its own must be named, or the door would find another."""
    home = environment.get("HANDRAIL_HOME")
    words = ["env", f"HANDRAIL_HOME={home}"] if home else []
    words += [str(Path(sys.executable).parent / "handrail"), "mcp"]
    return f"claude mcp add handrail -- {shlex.join(words)}"


def print_replaced() -> None:
    """Why this terminal is free again although Handrail runs on."""
    _say("Told to restart: a new daemon takes over in the background. `handrail down` ends it.")


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _has_keyboard() -> bool:
    try:
        return os.isatty(0)
    except OSError:
        return False


async def _line() -> bool:
    await anyio.wait_readable(0)
    return bool(os.read(0, 4096))
