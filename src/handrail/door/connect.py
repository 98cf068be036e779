"""Connect to the daemon, starting it if needed, and exchange the hello lines.

Processes that connect at the same time share one daemon. The hello is one JSON line each way: the version, the caller and
its purpose, then the daemon's acceptance or refusal.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time

from handrail import __version__
from handrail.framing import HELLO, HELLO_MAX
from handrail.regular_file import read_regular_file

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from handrail.paths import Places


START_SECONDS = 15.0
"""Seconds for the daemon to start, which takes about one; bounds a client's wait for a daemon that never starts."""

STEP = 0.01
"""Seconds between two connection attempts while the daemon starts."""

DIAL_SECONDS = 5.0
"""Seconds for one connection attempt; bounds the wait for a listener whose queue stays full."""


class DaemonNotRunning(Exception):
    """No daemon answers on the socket; the message gives the reason and a command to try."""

    def __init__(self, why: str, fix: str = "Start it with `handrail up`.") -> None:
        super().__init__(why, fix)
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        return f"The Handrail daemon is not running: {self.why} {self.fix}"


def connect(
    places: Places,
    start: bool = True,
    *,
    argv: Sequence[str] | None = None,
    within: float = START_SECONDS,
    abandon: Callable[[], bool] = lambda: False,
    keep: Sequence[str] = (),
) -> socket.socket:
    """Connect to the daemon; with `start`, start it if needed.

    `argv` replaces the start command, `keep` names extra environment variables to pass. `abandon` is polled while the
    daemon starts; True stops the wait. Raises DaemonNotRunning.
    """
    sock = dial(places)
    if sock is None and not start:
        raise DaemonNotRunning(f"nobody listens on {places.daemon_socket}.")
    return sock or _start(places, argv, time.monotonic() + within, abandon, keep)


def dial(places: Places) -> socket.socket | None:
    """Connect to a running daemon; None if no daemon listens."""
    for path in _sockets(places):
        sock = dial_path(path)
        if sock:
            return sock
    return None


def dial_path(path: str) -> socket.socket | None:
    """Connect to a socket if a process of this user listens on it, else None."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(DIAL_SECONDS)
    try:
        sock.connect(path)
        if _is_ours(sock, path):
            sock.settimeout(None)
            return sock
    except OSError:
        pass
    sock.close()
    return None


def _sockets(places: Places) -> list[str]:
    usual = str(places.daemon_socket)
    try:
        named = json.loads(read_regular_file(places.daemon_json))["socket"]
    except (OSError, ValueError, KeyError, TypeError):
        named = usual
    return [usual, named] if isinstance(named, str) and named != usual else [usual]


def _is_ours(sock: socket.socket, path: str) -> bool:
    """Whether the listener belongs to this user: in a shared directory, another user could have created the socket."""
    if sys.platform == "linux":
        pid_uid_gid = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return int.from_bytes(pid_uid_gid[4:8], sys.byteorder) == os.getuid()
    return os.stat(path).st_uid == os.getuid()


def _start(
    places: Places,
    argv: Sequence[str] | None,
    deadline: float,
    abandon: Callable[[], bool],
    keep: Sequence[str],
) -> socket.socket:
    from handrail.door.start_daemon import Starter  # noqa: PLC0415 - not needed by a door that finds its daemon

    try:
        with Starter(places, argv, keep) as starter:
            while time.monotonic() < deadline and not abandon():
                sock = dial(places)
                if sock:
                    return sock
                starter.step()
                time.sleep(STEP)
            raise _failed("nobody came to its socket in time.", starter.log)
    except OSError as error:
        raise DaemonNotRunning(f"it cannot be started ({error}).", "See `handrail doctor`.") from None


def _failed(why: str, log: str) -> DaemonNotRunning:
    return DaemonNotRunning(why, f"Its log is {log}; `handrail up --foreground` shows what is wrong.")


HELLO_SECONDS = 10.0
"""Seconds for the daemon's hello; bounds the wait for a hung daemon."""


class HelloRefused(Exception):
    """The daemon listens but refuses this program, hangs up, or does not answer in time."""

    def __init__(self, why: str, hung_up: bool = False, timed_out: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.timed_out = timed_out
        """Whether the daemon did not answer in time."""
        self.hung_up = hung_up
        """Whether the daemon closed the connection without an answer, as it does while it exits."""

    def __str__(self) -> str:
        return f"The Handrail daemon did not let this program in: {self.why}"


def say_hello(
    sock: socket.socket,
    want: str,
    *,
    workspace: str | None = None,
    door: str | None = None,
    credential: str = "",
    within: float = HELLO_SECONDS,
) -> dict[str, Any]:
    """Send a hello as `mcp`, `person` or `read` and return the daemon's reply.

    Reads no byte beyond that reply. Leaves the socket blocking. Raises HelloRefused.
    """
    deadline = time.monotonic() + within
    try:
        sock.settimeout(within)
        sock.sendall(_hello(want, workspace, door, credential))
        reply = _parse_reply(_read_line(sock, deadline))
        sock.settimeout(None)
    except TimeoutError:
        raise HelloRefused(
            f"it has not answered for {within:g} s. `handrail doctor` shows why; `handrail down --force` ends it.",
            timed_out=True,
        ) from None
    except OSError as error:
        raise HelloRefused(f"it hung up ({error.strerror or error}). Try again.", hung_up=True) from None
    return reply


def _hello(want: str, workspace: str | None, door: str | None, credential: str) -> bytes:
    who = {"handrail": HELLO, "want": want, "version": __version__, "pid": os.getpid(), "ppid": os.getppid()}
    where = {"cwd": _cwd(), "workspace": workspace, "door": door or os.urandom(8).hex()}
    extra = {"credential": credential} if credential else {}
    return json.dumps({**who, **where, **extra}).encode() + b"\n"


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:  # the directory was removed under us; `/` counts as no workspace
        return "/"


def _read_line(sock: socket.socket, deadline: float) -> bytes:
    """Read one line and not a byte more: the rest belongs to the protocol that follows."""
    line = b""
    while not line.endswith(b"\n"):
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        sock.settimeout(remaining)
        peeked = sock.recv(4096, socket.MSG_PEEK)
        if not peeked:
            raise HelloRefused("it closed the connection without a word. Try again.", hung_up=True)
        line += sock.recv(peeked.find(b"\n") + 1 or len(peeked))
        if len(line) > HELLO_MAX:
            raise HelloRefused("its reply is too long to be a Handrail daemon's.")
    return line


def _parse_reply(line: bytes) -> dict[str, Any]:
    try:
        reply: dict[str, Any] = json.loads(line)
        theirs = reply["handrail"]
    except (ValueError, RecursionError, TypeError, KeyError):
        raise HelloRefused("what listens on its socket is not Handrail's. Try `handrail restart`.") from None
    if reply.get("ok") is not True:
        raise HelloRefused(str(reply.get("why") or "it gave no reason."))
    if theirs != HELLO:
        raise HelloRefused(
            f"it greets by version {theirs} and this program by {HELLO}. Run `handrail restart`."
        )
    return reply
