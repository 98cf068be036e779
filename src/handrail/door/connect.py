"""Connect to the daemon, starting it if needed, and exchange the hello lines.

Processes that connect at the same time share one daemon. The hello is one JSON line each way: the version, the caller and
its purpose, then the daemon's acceptance or refusal.
"""

from __future__ import annotations

import json
import os
import socket
import time

from handrail import __version__
from handrail.framing import HELLO, HELLO_MAX
from handrail.keeper import lineage
from handrail.process_state import read_ticks
from handrail.regular_file import read_regular_file

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from handrail.door.start_daemon import Starter
    from handrail.paths import Places

    T = TypeVar("T")


START_SECONDS = 15.0
"""Seconds for the daemon to start, which takes about one; bounds a client's wait for a daemon that never starts."""

SLOW_SECONDS = 60.0
"""Seconds for a daemon that still uses the processor after START_SECONDS: on a busy machine, a start takes long."""

PROGRESS_SECONDS = 2.0
"""Between two looks at a slow start. A daemon that used no processor time meanwhile hangs."""

GREETINGS = 3
"""Attempts at a hello if the daemon hangs up, for example while it is being replaced; bounds the retries."""

STEP = 0.01
"""Seconds between two connection attempts while the daemon starts."""

DIAL_SECONDS = 5.0
"""Seconds for one connection attempt; bounds the wait for a listener whose queue stays full."""

KEEPER_SECONDS = 0.5
"""Seconds for the keeper to name its daemon. It answers in a millisecond; a hung keeper must not delay a client."""

_LAUNCHER = os.getppid()
"""The parent at the start of this program. If it exits, another process adopts this one."""


class DaemonNotRunning(Exception):
    """No daemon answers on the socket; the message gives the reason and a command to try."""

    def __init__(self, why: str, fix: str = "Start it with `handrail up`.") -> None:
        super().__init__(why, fix)
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        return f"The Handrail daemon is not running: {self.why} {self.fix}"


class Impostor(DaemonNotRunning):
    """Another process listens on Handrail's socket. Nothing has been sent to it."""

    def __init__(self, path: str, pid: int, why: str) -> None:
        super().__init__(
            f"process {pid} listens on {path}, but {why}. Nothing was sent to it.",
            f"Run `handrail down` (if that fails, `kill {pid}`), then `handrail up` in a terminal of your own.",
        )

    def __str__(self) -> str:
        return f"This is not Handrail: {self.why} {self.fix}"


def connect(
    places: Places,
    start: bool = True,
    *,
    argv: Sequence[str] | None = None,
    within: float = START_SECONDS,
    abandon: Callable[[], bool] = lambda: False,
    keep: Sequence[str] = (),
    check: bool = True,
) -> socket.socket:
    """Connect to the daemon; with `start`, start it if needed.

    `argv` replaces the start command, `keep` names extra environment variables to pass. `abandon` is polled while the
    daemon starts; True stops the wait. Without `check`, a running process is not checked to be our daemon, and must be
    given no secret. Raises DaemonNotRunning, and Impostor, which is one.
    """
    sock = dial(places, check)
    if sock is None and not start:
        raise DaemonNotRunning(f"nobody listens on {places.daemon_socket}.")
    return sock or _start(places, argv, time.monotonic() + within, abandon, keep)


def dial(places: Places, check: bool = True) -> socket.socket | None:
    """Connect to a running daemon; None if no daemon listens. Raises Impostor if another process does."""
    for path in _sockets(places):
        sock = dial_path(path, check)
        if sock:
            return _check_daemon(sock, path, places) if check else sock
    return None


def dial_path(path: str, check: bool = True) -> socket.socket | None:
    """Connect to a socket on which a process of this user listens, else None.

    With `check`, raises Impostor if that process is marked as started by Handrail, more than this one.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(DIAL_SECONDS)
    try:
        sock.connect(path)
        sock.settimeout(None)
        if _is_ours(sock, path, check):
            return sock
    except OSError:
        pass
    except Impostor:
        sock.close()
        raise
    sock.close()
    return None


def _is_ours(sock: socket.socket, path: str, check: bool) -> bool:
    """Whether the listener is alive and of this user: in a shared directory, another user could have created the socket.

    Its pid is 0 if it runs outside of this process's PID namespace; then `say_hello` sends it no secret.
    """
    peer = lineage.Peer.of(sock)
    try:
        if peer.uid != os.getuid() or not check or peer.pid == 0:
            return peer.uid == os.getuid()
        if peer.is_trusted(set(), lineage.own_reference()):
            return True
        if peer.is_alive():
            raise Impostor(path, peer.pid, "Handrail started it, or it is marked like what Handrail starts")
        return False
    finally:
        peer.close()


def _check_daemon(sock: socket.socket, path: str, places: Places) -> socket.socket | None:
    """Raise Impostor if the keeper knows another process as its daemon. None if the listener has just exited."""
    listener = lineage.Peer.of(sock)
    try:
        known = _ask_keeper(places) if listener.pid else 0
        if not known or listener.pid == known:
            return sock
        is_alive = listener.is_alive()  # before the close, after which a listener for one client exits
        sock.close()
        if is_alive:
            raise Impostor(path, listener.pid, f"the keeper's daemon is process {known}")
        return None
    finally:
        listener.close()


def _ask_keeper(places: Places) -> int:
    """The pid of the daemon that the keeper knows; 0 if it knows none, is an older one, or does not answer."""
    try:
        keeper = dial_path(str(places.keeper_socket))
    except Impostor:
        return 0
    if keeper is None:
        return 0
    with keeper:
        keeper.settimeout(KEEPER_SECONDS)
        try:
            keeper.sendall(b'{"is": "hello", "protocol": 1, "want": "which_daemon"}\n')
            with keeper.makefile("rb") as lines:
                reply: Any = json.loads(lines.readline(4096))
            return int(reply.get("daemon", 0))
        except (OSError, ValueError, TypeError, AttributeError):
            return 0


def _sockets(places: Places) -> list[str]:
    usual = str(places.daemon_socket)
    try:
        named = json.loads(read_regular_file(places.daemon_json))["socket"]
    except (OSError, ValueError, KeyError, TypeError):
        named = usual
    return [usual, named] if isinstance(named, str) and named != usual else [usual]


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
            slow = _SlowStart(places, starter, deadline)
            while (time.monotonic() < deadline or slow.goes_on()) and not abandon():
                sock = dial(places)
                if sock:
                    return sock
                starter.step()
                time.sleep(STEP)
            known = _ask_keeper(places)
            if known:
                why = f"its process {known} has lost its socket, which another program may have removed."
                raise DaemonNotRunning(why, f"Run `kill -9 {known}`, then `handrail up`; terminals go on.")
            raise _failed(f"nobody came to its socket in time.{starter.last_words}", starter.log)
    except OSError as error:
        raise DaemonNotRunning(f"it cannot be started ({error}).", "See `handrail doctor`.") from None


class _SlowStart:
    """Extends the wait for a daemon that is still starting: it uses the processor."""

    def __init__(self, places: Places, starter: Starter, deadline: float) -> None:
        self._places = places
        self._starter = starter
        self._end = deadline + SLOW_SECONDS - START_SECONDS
        self._look_at = deadline
        self._ticks = -1

    def goes_on(self) -> bool:
        """Whether the wait goes on, after its deadline."""
        now = time.monotonic()
        if now < self._look_at:
            return True
        before, self._ticks = self._ticks, self._read_ticks()
        self._look_at = now + PROGRESS_SECONDS
        return now < self._end and self._ticks > before

    def _read_ticks(self) -> int:
        """The processor time of the daemon that starts, in clock ticks; -1 if none is known."""
        from handrail.door.own_processes import find_starting_daemon  # noqa: PLC0415 - rarely needed by a door

        pid = self._starter.pid or find_starting_daemon(self._places)
        return read_ticks(pid) if pid else -1


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
    check: bool = True,
) -> dict[str, Any]:
    """Send a hello as `mcp`, `person` or `read` and return the daemon's reply.

    Reads no byte beyond that reply. Leaves the socket blocking. `check` is as for `connect`. Raises HelloRefused.
    """
    deadline = time.monotonic() + within
    if check and (credential or want == "person") and not _may_have_secrets(sock, bool(credential)):
        raise HelloRefused(
            "what listens on its socket cannot be recognised as Handrail's. Nothing was sent to it."
        )
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


def repeat_greeting(greet: Callable[[], T]) -> T:
    """Connect and say hello with `greet`, again if the daemon hangs up: one that ends resets what it has not accepted."""
    for attempt in range(1, GREETINGS):
        try:
            return greet()
        except HelloRefused as refused:
            if not refused.hung_up:
                raise
        time.sleep(0.1 * attempt)
    return greet()


def check_lives(sock: socket.socket) -> None:
    """Raise ConnectionError if the daemon at the other end has ended.

    For a connection to its TCP port, after it was made and before anything is sent: once the daemon and the keeper have
    ended, any program can listen there.
    """
    try:
        is_over = not sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return
    if is_over:
        raise ConnectionError("it has ended")


def _may_have_secrets(sock: socket.socket, is_hosted: bool) -> bool:
    """Whether the listener is marked no more than this process; for a hosted agent's door: less than this process."""
    limit = lineage.own_reference() + (is_hosted and lineage.is_marked(os.getpid()))
    peer = lineage.Peer.of(sock)
    try:
        return peer.is_trusted(set(), limit)
    finally:
        peer.close()


def _hello(want: str, workspace: str | None, door: str | None, credential: str) -> bytes:
    who = {"handrail": HELLO, "want": want, "version": __version__, "pid": os.getpid(), "ppid": os.getppid()}
    where = {"cwd": _cwd(), "workspace": workspace, "door": door or os.urandom(8).hex()}
    extra: dict[str, Any] = {"credential": credential} if credential else {}
    if os.getppid() != _LAUNCHER:
        extra["orphaned"] = True
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
