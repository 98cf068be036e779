"""Starting the daemon so that it belongs to nobody's process tree.

Owns the lock by which only one process starts it at a time, the clean environment and the double fork. Does
not know how the daemon is found afterwards, and never ends what it started.
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

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from handrail.paths import Places


KEPT = {"HOME", "PATH", "USER", "LOGNAME", "LANG", "TMPDIR", "HANDRAIL_HOME", "SHELL"}
DESKTOP = {"DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"}
"""What a notification needs to reach the person's screen; no child of the keeper gets them."""
KEPT_PREFIXES = ("LC_", "XDG_")

INSIDE = "HANDRAIL_TERMINAL"
"""Set in what a warden holds, and would end with its terminal."""

LOG_MAX = 1 << 20
"""Bytes of what daemons print before their own log is open; bounds a file nobody rotates."""

KEEPER_SECONDS = 5.0
"""Bounds the wait for a keeper's answer, which it gives at once or never."""

ASK_AGAIN = 0.2
"""Seconds until a keeper is asked again: the daemon it knows of may be one that has died."""

STARTS = 3
"""Daemons a keeper may start for us; bounds what one that always dies while starting makes it do."""

GRACE = 2.0
"""Seconds in which another daemon, to which ours gave way, may still come to the socket."""


class Starter:
    """One attempt to have a daemon: starts it once, when no other process is already doing so."""

    def __init__(self, places: Places, argv: Sequence[str] | None, keep: Sequence[str] = ()) -> None:
        """`keep` are variables that a person wants the daemon to have, beside those that say where it is."""
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)
        if self._started:
            self._started.close()

    def step(self) -> None:
        """Start the daemon once it is our turn; raise DaemonNotRunning when ours has ended for good.

        Called between two looks at the daemon's socket. Getting the turn is a step of its own: who had it before
        us may have just succeeded, and the look that follows shows it.
        """
        if self._started:
            self._check(self._started)
        elif not self._is_our_turn:
            self._is_our_turn = self._take_turn()
        elif time.monotonic() >= self._ask_at:
            self._started = self._start()

    def _take_turn(self) -> bool:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _start(self) -> _Started | None:
        before = _shorten(self.log)
        answer = _answer_of_keeper(self._places) if self._is_the_keepers else ""
        if answer in ("started", "already"):  # in time a daemon listens, or the keeper notices that it died
            self._ask_at = time.monotonic() + ASK_AGAIN
            self._count(answer == "started")
            return None
        argv = self._argv or (sys.executable, "-m", "handrail", "up", "--foreground", "--no-open")
        return _Started(detach(argv, clean(os.environ, self._keep), self.log), before)

    @property
    def _is_the_keepers(self) -> bool:
        """It knows the plain way, and no secret: what shall be kept we must give ourselves, unless we are in its hands."""
        brings = any(os.environ.get(name) for name in self._keep)
        return self._argv is None and (not brings or INSIDE in os.environ)

    def _count(self, is_new: bool) -> None:
        self._started_by_keeper += is_new
        if self._started_by_keeper > STARTS:
            raise DaemonNotRunning(
                "it ended while starting, again and again.", "`handrail up --foreground` shows what is wrong."
            )

    def _check(self, started: _Started) -> None:
        if started.ended_for() > GRACE:
            said = _last_line(self.log, started.log_began)
            raise DaemonNotRunning(
                f"it ended while starting{f', saying: {said}' if said else '.'}",
                f"Its log is {self.log}; `handrail up --foreground` shows what is wrong.",
            )


class _Started:
    """A daemon that was started and may have ended since."""

    def __init__(self, pid: int, log_began: int) -> None:
        self.log_began = log_began
        self._pid = pid
        self._pidfd = -1
        self._ended_at: float | None = None
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                self._pidfd = os.pidfd_open(pid)

    def ended_for(self) -> float:
        """Seconds since it was first seen to have ended."""
        if self._ended_at is None and self._has_ended():
            self._ended_at = time.monotonic()
        return 0.0 if self._ended_at is None else time.monotonic() - self._ended_at

    def close(self) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)

    def _has_ended(self) -> bool:
        if self._pidfd >= 0:
            return bool(select.select([self._pidfd], [], [], 0)[0])
        try:
            os.kill(self._pid, 0)
        except ProcessLookupError:
            return True
        return False


def clean(environ: Mapping[str, str], keep: Sequence[str] = ()) -> dict[str, str]:
    """What the daemon may inherit: where it is, never what an agent holds; and what a person wants it to."""
    return {
        name: value
        for name, value in environ.items()
        if name in KEPT | DESKTOP or name.startswith(KEPT_PREFIXES) or name in keep
    }


def detach(argv: Sequence[str], environment: Mapping[str, str], log: str) -> int:
    """Start a program in a session of its own, as a child of nobody here. Returns its pid."""
    read, write = os.pipe()
    middle = os.fork()
    if middle == 0:
        _be_the_middle(argv, environment, log, write)
    os.close(write)
    with open(read, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(middle, 0)
    if not answer.isdigit():
        raise DaemonNotRunning(f"it cannot be started: {answer or 'the system refused a new process'}.")
    return int(answer)


def _be_the_middle(argv: Sequence[str], environment: Mapping[str, str], log: str, write: int) -> None:
    """The process between: it makes the session, starts the program, names it and is gone."""
    try:
        os.setsid()
        os.chdir("/")
        os.umask(0o077)
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


def _answer_of_keeper(places: Places) -> str:
    """Let a living keeper start it: what one of its wardens holds would be ended with its terminal."""
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
    """The log's size now, after cutting one that has grown too long."""
    try:
        if os.stat(log).st_size > LOG_MAX:
            os.truncate(log, 0)
        return os.stat(log).st_size
    except FileNotFoundError:
        return 0


def _last_line(log: str, began: int) -> str:
    """The last thing written to the log since then: of a traceback, the line that says what is wrong."""
    try:
        with open(log, "rb") as file:
            file.seek(max(began, os.stat(log).st_size - 4096))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip()]
    return "".join(each for each in said[-1][:300] if each.isprintable()) if said else ""
