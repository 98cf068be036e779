"""Start programs and helpers through the launcher process, and detached processes such as the keeper.

The launcher (`__main__.py`) is started marked, with an empty environment. The mark is set between fork and exec, while
the new process is still an unreadable copy of the daemon, so no other process can catch it unmarked. It starts again
when it was killed. `Child` is the daemon's end of one process.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from handrail.keeper.lineage import mark
from handrail.launcher.child_guard import starting

HEADER_BYTES, BATCH, WORKING_DIRECTORY = 4, 200, -1
"""As in `__main__.py`."""
END_SECONDS = 5.0
"""Seconds for a killed child to be reaped; bounds the wait for one in an uninterruptible system call."""
LOST = -int(signal.SIGKILL)
"""The exit code of a child whose launcher was killed: the child is killed with it."""


class LaunchError(Exception):
    """The launcher could not be started or reached; the message gives the reason."""


class Child:
    """A process that the launcher started. `kill` may be called from any thread; the rest by one at a time."""

    def __init__(self, control: socket.socket, output: int) -> None:
        self.output = output
        """The read end of its standard output; -1 if that is discarded."""
        self.code: int | None = None
        """Its exit code, the negative signal number if a signal ended it; None while it runs."""
        self.error = ""
        """Why the program could not be executed."""
        self._control = control
        self._received = b""

    def fileno(self) -> int:
        """A descriptor that is readable once the process has ended."""
        return self._control.fileno()

    def wait(self, seconds: float) -> int | None:
        """Wait for its end; returns the exit code, or None if it still runs."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        while self.code is None and poll.poll(max(0.0, seconds) * 1000):
            self._read_report()
        return self.code

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            self._control.send(b"k")

    def close(self) -> None:
        """Kill it if it still runs, reap it, and close its descriptors."""
        if self.code is None:
            self.kill()
            self.wait(END_SECONDS)
        self._control.close()
        if self.output >= 0:
            os.close(self.output)
            self.output = -1

    def _read_report(self) -> None:
        data = self._control.recv(65536)
        self._received += data
        *lines, self._received = self._received.split(b"\n")
        for line in lines:
            report = json.loads(line)
            self.error = report.get("error", self.error)
            self.code = report.get("code", self.code)
        if not data and self.code is None:
            self.code = LOST


def start_program(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    cwd: str | int = "/",
    stdin: int | None = None,
    stderr: int | None = None,
    pass_fds: Sequence[int] = (),
    keep_output: bool = True,
) -> Child:
    """Start a program by its absolute path, with this environment and no other variable. Raises LaunchError.

    `cwd` is a path or the descriptor of a folder. Descriptors in `pass_fds` keep their numbers.
    """
    if not argv[0].startswith("/"):
        raise ValueError(f"{argv[0]} is not an absolute path")
    folder = {WORKING_DIRECTORY: cwd} if isinstance(cwd, int) else {}
    order = {"argv": list(argv), "env": dict(environment or {}), "cwd": "/" if folder else cwd}
    return _LAUNCHER.start(order, {0: stdin, 2: stderr, **{fd: fd for fd in pass_fds}, **folder}, keep_output)


def start_function(module: str, argument: object, pass_fds: Sequence[int] = ()) -> Child:
    """Run `main(argument, output)` of a module of ours in a fork of the launcher. Raises LaunchError.

    The module is named, so that the daemon does not import it. `argument` is JSON.
    """
    order = {"call": module, "argument": argument}
    return _LAUNCHER.start(order, {0: None, 2: None, **{fd: fd for fd in pass_fds}}, True)


def prestart() -> None:
    """Start the launcher process now. The daemon calls this before it has threads, when a fork is cheap and safe."""
    with contextlib.suppress(LaunchError):
        _LAUNCHER.connect()


def spawn_detached(argv: Sequence[str], environment: Mapping[str, str], log: Path) -> int:
    """Start a process of our own installation that is not marked (the keeper), with its output in a log file."""
    with starting():
        return os.posix_spawn(
            argv[0],
            list(argv),
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsigmask=[],
            setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
        )


class _Launcher:
    """The connection to the launcher process of this process. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._orders: socket.socket | None = None
        self._owner = 0

    def start(self, order: dict[str, Any], placed: Mapping[int, int | None], keep_output: bool) -> Child:
        """Send an order. `placed` maps descriptor numbers of the child to ours; None stands for /dev/null."""
        ours, theirs = socket.socketpair()
        read, write = os.pipe() if keep_output else (-1, os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC))
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            every = {1: write, **{number: null if fd is None else fd for number, fd in placed.items()}}
            message = json.dumps({**order, "targets": list(every)}).encode()
            self._send(message, [theirs.fileno(), *every.values()])
        except BaseException:
            ours.close()
            if read >= 0:
                os.close(read)
            raise
        finally:
            theirs.close()
            os.close(write)
            os.close(null)
        return Child(ours, read)

    def connect(self) -> socket.socket:
        """The socket to the launcher, which is started if it does not run. Raises LaunchError."""
        with self._lock:
            return self._connect()

    def close(self) -> None:
        """End the launcher process, and with it all that it started."""
        with self._lock:
            self._disconnect()

    def _send(self, message: bytes, descriptors: list[int]) -> None:
        with self._lock:
            try:
                _send_order(self._connect(), message, descriptors)
            except OSError:  # it was killed since; its socket takes no more orders
                self._disconnect()
                try:
                    _send_order(self._connect(), message, descriptors)
                except OSError as error:
                    raise LaunchError(f"Handrail's launcher process cannot be reached: {error}.") from error

    def _connect(self) -> socket.socket:
        ended = self._process is not None and self._process.poll() is not None
        if self._owner != os.getpid() or ended:
            self._disconnect()
        if self._orders is None:
            self._orders, self._process = _spawn()
            self._owner = os.getpid()
        return self._orders

    def _disconnect(self) -> None:
        if self._orders is not None:
            self._orders.close()
        if self._process is not None and self._owner == os.getpid():
            self._process.kill()
            self._process.wait()
        self._orders = self._process = None


_LAUNCHER = _Launcher()
"""One per process: the launcher process is a resource of the operating system, like standard output."""
atexit.register(_LAUNCHER.close)


def _spawn() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    program = Path(__file__).with_name("__main__.py")
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            with starting():
                process = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(program)],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    env={},
                    cwd="/",
                    start_new_session=True,
                    preexec_fn=mark,  # noqa: PLW1509 - it only sets a limit, and usually no thread runs yet
                )
        except (OSError, subprocess.SubprocessError) as error:
            ours.close()
            raise LaunchError(f"Handrail's launcher process could not be started: {error}.") from error
    return ours, process


def _send_order(orders: socket.socket, message: bytes, descriptors: list[int]) -> None:
    header = len(message).to_bytes(HEADER_BYTES, "big") + len(descriptors).to_bytes(HEADER_BYTES, "big")
    orders.sendall(header)
    for at in range(0, len(descriptors), BATCH):
        rights = array.array("i", descriptors[at : at + BATCH])
        orders.sendmsg([b"\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    orders.sendall(message)
