"""The daemon's files and its terminal output: daemon.json, the last port, the lock, the log, the start-up
message, and the sentence that explains an exception which ended it.
"""

import errno
import fcntl
import json
import logging
import os
import shlex
import sqlite3
import sys
import traceback
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import cast

import anyio

from handrail import __version__
from handrail.config import BadConfig
from handrail.errors import BadRecord, LostJournal, NewerSchema, Unwritable
from handrail.paths import Places
from handrail.regular_file import read_regular_file
from handrail.server.access import Access
from handrail.terminal.keeper_client import KeeperError


class DaemonFile:
    """daemon.json, by which clients find the daemon, and the file with its last port."""

    def __init__(self, places: Places, requested: int) -> None:
        """`requested` is the port from the configuration or the command line."""
        self._places = places
        self._requested_port = requested

    @property
    def ports(self) -> tuple[int, ...]:
        """Ports to try. The last port comes first if the same port was requested then: an open page
        reconnects to it."""
        try:
            requested, last = (int(word) for word in read_regular_file(self._places.port).split())
        except (OSError, ValueError):
            return (self._requested_port,)
        return (last, self._requested_port) if requested == self._requested_port else (self._requested_port,)

    @property
    def hangs(self) -> bool:
        """Whether the previous daemon left its file behind: it crashed."""
        return self._places.daemon_json.exists()

    def note_port(self, port: int) -> None:
        self._places.port.touch(mode=0o600)
        self._places.port.write_text(f"{self._requested_port} {port}\n")

    def put_up(self, url: str) -> None:
        """Write daemon.json atomically."""
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
    """Another daemon has locked this home."""


@contextmanager
def hold_lock(path: Path, *folders: Path) -> Generator[None]:
    """Hold the lock file and its folders, or raise AlreadyRunning without waiting.

    A lock file can be removed while it is held, and a second daemon would lock the next one. A folder that holds the
    daemon's other files cannot. The kernel releases all of them when the process dies.
    """
    with ExitStack() as held:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        held.callback(os.close, lock)
        _lock(lock, path.parent)
        for folder in dict.fromkeys((path.parent, *folders)):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            held.callback(os.close, descriptor)
            _lock_folder(descriptor, folder)
        yield


def _lock(descriptor: int, home: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise AlreadyRunning(
            f"Another Handrail daemon holds {home}. `handrail open` shows its page, `handrail down` ends it."
        ) from None


def _lock_folder(descriptor: int, folder: Path) -> None:
    """Lock a folder where the file system can: NFS cannot, and there the lock file alone counts."""
    try:
        _lock(descriptor, folder)
    except OSError as problem:
        if problem.errno not in (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP):
            raise


ExceptionFacts = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

LOG_BYTES = 2 * 1024 * 1024
LOGS_KEPT = 3
"""With LOG_BYTES, bounds the disk space of the log."""
_QUIET = ("mcp", "uvicorn", "websockets", "sse_starlette", "asyncio")
"""Loggers that log client messages, which may contain inputs."""


class RedactingFormatter(logging.Formatter):
    """Formats exceptions without their messages, which may contain inputs."""

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
    """Prints the page's address and sign-in links on the terminal that started the daemon."""

    def __init__(
        self,
        access: Access,
        url: str,
        command_line: str,
        taken_port: int | None = None,
        *,
        has_person: bool = True,
    ) -> None:
        """`taken_port` is the requested port, if it was taken. Without `has_person` no link is printed."""
        self._taken_port = taken_port
        self._has_person = has_person
        self._access = access
        self._url = url
        self._command_line = command_line

    async def run(self) -> None:
        """Print it once, and a new link each time Enter is pressed: a code lasts a minute."""
        _print_lines("", f"Handrail is ready at {self._url}", "")
        if self._taken_port is not None:
            _print_lines(f"Port {self._taken_port} is taken, so it has another.", "")
        self._print_link()
        _print_lines("", "Give this to an agent that speaks MCP:", f"  {self._command_line}", "")
        if not _has_keyboard():
            return
        _print_lines("Press Enter for a fresh link, Ctrl-C to stop everything.")
        while await _wait_for_enter():
            self._print_link()

    def _print_link(self) -> None:
        if self._access.sealed is not None:
            _print_lines(self._access.sealed)
        elif not self._has_person:
            _print_lines("To sign in, run `handrail open` in a terminal of your own.")
        else:
            _print_lines(f"Sign in:  {self._url}/#code={self._access.sign_ins.issue_code()}")


def build_connect_command(environment: Mapping[str, str]) -> str:
    """The command that connects a client to this daemon; it names HANDRAIL_HOME if that is set."""
    home = environment.get("HANDRAIL_HOME")
    words = ["env", f"HANDRAIL_HOME={home}"] if home else []
    words += [str(Path(sys.executable).parent / "handrail"), "mcp"]
    return f"claude mcp add handrail -- {shlex.join(words)}"


def print_replaced() -> None:
    """Explain why this process ends while Handrail goes on."""
    _print_lines("Told to restart: a new daemon takes over in the background. `handrail down` ends it.")


def _print_lines(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def prints_on_terminal() -> bool:
    """Whether standard output is a terminal, and so a person may read it."""
    try:
        return os.isatty(1)
    except OSError:
        return False


def _has_keyboard() -> bool:
    try:
        return os.isatty(0)
    except OSError:
        return False


async def _wait_for_enter() -> bool:
    await anyio.wait_readable(0)
    return bool(os.read(0, 4096))


EXPLAINED = (AlreadyRunning, BadConfig, BadRecord, KeeperError, LostJournal, NewerSchema, Unwritable)
"""Exceptions whose message is a sentence for people."""


def explain_failure(problem: BaseException, logs: Path) -> str:
    """The sentence for an exception that ended the daemon. Other messages may hold inputs, so they are not shown."""
    causes = list(_flatten(problem))
    explained = [str(cause) for cause in causes if isinstance(cause, EXPLAINED)]
    if explained:
        return explained[0]
    shown = [f"{cause}" for cause in causes if isinstance(cause, OSError | sqlite3.Error)]
    why = shown[0] if shown else type(causes[0]).__name__
    return (
        f"The daemon ended because of an error: {why}. `handrail doctor` checks the installation; the details are in "
        f"{logs / 'daemon.log'}."
    )


def _flatten(problem: BaseException) -> Iterator[BaseException]:
    """The exceptions in a group of groups; an exception itself if it is no group."""
    if isinstance(problem, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", problem)
        for each in group.exceptions:
            yield from _flatten(each)
    else:
        yield problem
