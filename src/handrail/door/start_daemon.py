"""Start the daemon, detached from the caller's process tree: through the keeper, or by a double fork.

A lock file lets only one process start it at a time. The daemon gets a cleaned environment. This module never stops a
daemon.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import sys
import time
from typing import Any

from handrail.door.connect import DaemonNotRunning, dial_path
from handrail.paths import own_python

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from handrail.paths import Places


KEPT = {"HOME", "PATH", "USER", "LOGNAME", "LANG", "TMPDIR", "HANDRAIL_HOME", "SHELL"}
DESKTOP = {"DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"}
"""Variables needed for desktop notifications; the keeper's children do not get them."""
KEPT_PREFIXES = ("LC_", "XDG_")

INSIDE = "HANDRAIL_TERMINAL"
"""Set in every process of a terminal. A daemon started there would be stopped with the terminal."""

UNATTENDED = "HANDRAIL_UNATTENDED"
"""Tells the daemon that no person started it directly, so that a changed policy is not taken up."""

LOG_MAX = 1 << 20
"""Bytes of the log of early daemon output, which is not rotated; bounds its size."""

KEEPER_SECONDS = 2.0
"""Seconds for the keeper's answer; bounds the wait for a hung keeper."""

ASK_AGAIN = 0.2
"""Seconds between two requests to the keeper: the daemon it knows may have died."""

FULL_BYTES = 256 * 1024
"""A disk with less free space counts as full: a start writes about as much. The daemon could not even say so in its log."""

STARTS = 3
"""Daemons that the keeper may start for one attempt; bounds the restarts of a daemon that crashes while starting."""

GRACE = 2.0
"""Seconds for another daemon to listen after ours has exited: ours exits if it loses the race for the lock."""


class Starter:
    """One attempt to start the daemon: starts it once, unless another process is doing so."""

    def __init__(self, places: Places, argv: Sequence[str] | None, keep: Sequence[str] = ()) -> None:
        """`keep` names environment variables that the daemon gets besides the default ones."""
        places.make()
        self.log = str(places.logs / "daemon.out")
        self._places = places
        self._argv = argv
        self._keep = keep
        self._lock = os.open(places.daemon_lock.with_suffix(".start"), os.O_RDWR | os.O_CREAT, 0o600)
        self._started: _Started | None = None
        self._is_our_turn = False
        self._ask_at = 0.0
        self._started_by_keeper = 0
        self._keepers_log = str(places.logs / "daemon.log")
        self._keepers_log_began = _size(self._keepers_log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)
        if self._started:
            self._started.close()

    def step(self) -> None:
        """Take the lock, then start the daemon, then check that it lives. Raises DaemonNotRunning if it has exited.

        The caller tries the daemon's socket between two steps. Taking the lock is a separate step, because the previous
        holder may just have started a daemon, which that attempt then finds.
        """
        if self._started:
            self._check(self._started)
        elif not self._is_our_turn:
            self._is_our_turn = self._take_turn()
        elif time.monotonic() >= self._ask_at:
            self._started = self._start()

    @property
    def last_words(self) -> str:
        """The last line that daemons started by the keeper have written since this attempt began."""
        line = _last_line(self._keepers_log, self._keepers_log_began) if self._started_by_keeper else ""
        return f" It said: {line}" if line else ""

    @property
    def pid(self) -> int | None:
        """The process that this attempt started; None if the keeper or another process starts the daemon."""
        return self._started and self._started.pid

    def _take_turn(self) -> bool:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _start(self) -> _Started | None:
        before = _shorten(self.log)
        answer = _request_start(self._places) if self._can_use_keeper else ""
        if answer in ("started", "already"):  # a daemon will listen soon, or the keeper will notice its death
            self._ask_at = time.monotonic() + ASK_AGAIN
            self._count(answer == "started")
            return None
        argv = self._argv or (*own_python(), "-m", "handrail", "up", "--foreground", "--no-open")
        environment = {**clean(os.environ, self._keep), UNATTENDED: "1"}
        return _Started(detach(argv, environment, self.log), before)

    @property
    def _can_use_keeper(self) -> bool:
        """Whether the keeper can start it. It runs the default command and cannot pass on the variables in `keep`.

        Inside a terminal the keeper must start it in any case.
        """
        has_variables = any(os.environ.get(name) for name in self._keep)
        return self._argv is None and (not has_variables or INSIDE in os.environ)

    def _count(self, is_new: bool) -> None:
        self._started_by_keeper += is_new
        if self._started_by_keeper > STARTS:
            self._check_space()
            raise DaemonNotRunning(
                f"it ended while starting, again and again.{self.last_words}",
                "`handrail up --foreground` shows what is wrong.",
            )

    def _check(self, started: _Started) -> None:
        if started.ended_for() > GRACE:
            self._check_space()
            line = _last_line(self.log, started.log_began)
            raise DaemonNotRunning(
                f"it ended while starting{f', saying: {line}' if line else '.'}",
                f"Its log is {self.log}; `handrail up --foreground` shows what is wrong.",
            )

    def _check_space(self) -> None:
        """Raises DaemonNotRunning if the daemon probably ended because the disk is full."""
        with contextlib.suppress(OSError):
            found = os.statvfs(self._places.data)
            if found.f_bavail * found.f_frsize < FULL_BYTES:
                raise DaemonNotRunning(
                    f"it ended while starting, and the disk of {self._places.data} is full.",
                    "Free some space, then run `handrail up`.",
                )


class _Started:
    """A daemon that this process started and that may have exited."""

    def __init__(self, pid: int, log_began: int) -> None:
        self.log_began = log_began
        self.pid = pid
        self.pidfd = -1
        self._ended_at: float | None = None
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                self.pidfd = os.pidfd_open(pid)

    def ended_for(self) -> float:
        """Seconds since its exit was first noticed; 0 while it runs."""
        if self._ended_at is None and self._has_ended():
            self._ended_at = time.monotonic()
        return 0.0 if self._ended_at is None else time.monotonic() - self._ended_at

    def close(self) -> None:
        if self.pidfd >= 0:
            os.close(self.pidfd)

    def _has_ended(self) -> bool:
        if self.pidfd >= 0:
            return bool(select.select([self.pidfd], [], [], 0)[0])
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        return False


def clean(environ: Mapping[str, str], keep: Sequence[str] = ()) -> dict[str, str]:
    """Filter the environment for the daemon: system variables and those in `keep`, none of an agent's secrets."""
    return {
        name: value
        for name, value in environ.items()
        if name in KEPT | DESKTOP or name.startswith(KEPT_PREFIXES) or name in keep
    }


def detach(argv: Sequence[str], environment: Mapping[str, str], log: str) -> int:
    """Start a program in a new session by a double fork, so that it is not our child. Returns its pid."""
    read, write = os.pipe()
    middle = os.fork()
    if middle == 0:
        _run_middle(argv, environment, log, write)
    os.close(write)
    with open(read, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(middle, 0)
    if not answer.isdigit():
        raise DaemonNotRunning(f"it cannot be started: {answer or 'the system refused a new process'}.")
    return int(answer)


def _run_middle(argv: Sequence[str], environment: Mapping[str, str], log: str, write: int) -> None:
    """The intermediate process: start a session, start the program, write its pid to the pipe, exit."""
    try:
        os.setsid()
        os.chdir("/")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), 1)
        os.dup2(1, 2)
        write = os.dup2(write, 3, inheritable=False)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        usual = set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}
        pid = os.posix_spawn(argv[0], list(argv), environment, setsigmask=(), setsigdef=usual)
        os.write(write, str(pid).encode())
    except BaseException as error:  # a fork must never return into its parent's code
        os.write(write, str(error).encode())
    finally:
        os._exit(0)


def _request_start(places: Places) -> str:
    """Request a running keeper to start the daemon; return its answer, or an empty string without a keeper.

    A daemon started inside a terminal would be stopped with the terminal.
    """
    keeper = dial_path(str(places.keeper_socket))
    if keeper is None:
        return ""
    with keeper:
        keeper.settimeout(KEEPER_SECONDS)
        try:
            keeper.sendall(b'{"is": "hello", "protocol": 1, "want": "start_daemon"}\n')
            with keeper.makefile("rb") as lines:
                reply: Any = json.loads(lines.readline(4096))
                return str(reply["answer"])
        except (OSError, ValueError, TypeError, KeyError):
            return ""


def _shorten(log: str) -> int:
    """Truncate the log if it is too long; return its size."""
    try:
        if os.stat(log).st_size > LOG_MAX:
            os.truncate(log, 0)
    except FileNotFoundError:
        return 0
    return _size(log)


def _size(log: str) -> int:
    try:
        return os.stat(log).st_size
    except FileNotFoundError:
        return 0


def _last_line(log: str, began: int) -> str:
    """The last non-empty line of the log after offset `began`: in a traceback, the exception."""
    try:
        with open(log, "rb") as file:
            file.seek(max(began, os.stat(log).st_size - 4096))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    texts = [line.strip() for line in lines if line.strip()]
    return "".join(character for character in texts[-1][:300] if character.isprintable()) if texts else ""
