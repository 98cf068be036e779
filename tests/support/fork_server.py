"""A fork server for `handrail`: one process with all imports done, which makes a daemon or a command ten times cheaper.

It owns that process and the exits of its forks. A fork runs `handrail ARGUMENTS` like a new process: with a separate
environment, folder, user, standard streams and, if wanted, controlling terminal. Its command line is the server's. Tests
that need a new interpreter start one: `Home.start`, `Account.spawn`; so does every restart by a door or the keeper.
"""

import atexit
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import random
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import traceback
import weakref
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import NoReturn

DAEMON = ("up", "--foreground", "--no-open")
OTHER_PROGRAMS = ("handrail.own_agent", "handrail.demo", "handrail.keeper.warden")
LATER_IMPORTS = ("anyio._backends._asyncio", "pydantic.v1", "uvicorn.protocols.websockets.auto", "uvloop")
"""Modules of other packages that a daemon imports only for its first client or request."""
LARGEST_ORDER = 1 << 17
"""Bytes of a message: arguments and environment."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a fork becomes."""

    arguments: tuple[str, ...]
    environment: dict[str, str]
    cwd: str = "/"
    uid: int | None = None
    """None for the user of the server."""
    has_session: bool = False
    """Lead a new session, with stdin as the controlling terminal if it is one."""


class ForkedProcess:
    """A process that is not our child; what tests use of `Popen`."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self._status = status
        self._close_status = weakref.finalize(
            self, os.close, status
        )  # most tests never ask how a daemon ended
        self._code: int | None = None

    def poll(self) -> int | None:
        """None while it runs, else its exit status."""
        if self._code is None and select.select([self._status], [], [], 0)[0]:
            self._code = int(
                os.read(self._status, 16) or b"-9"
            )  # it ended without a word if a signal ended it
            self._close_status()
        return self._code

    def wait(self, timeout: float) -> int:
        if self._code is None and not select.select([self._status], [], [], timeout)[0]:
            raise TimeoutError(f"process {self.pid} did not end within {timeout:g} s")
        self._wait_gone(timeout)
        code = self.poll()
        assert code is not None
        return code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _wait_gone(self, timeout: float) -> None:
        """The status comes just before the exit."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            select.select([descriptor], [], [], timeout)
        finally:
            os.close(descriptor)


_one_at_a_time = threading.Lock()


def fork_handrail(order: Order, streams: Sequence[int], python: str = sys.executable) -> ForkedProcess:
    """Run `handrail` as ordered, with these descriptors as stdin, stdout and stderr."""
    ours, theirs = os.pipe()
    try:
        with _one_at_a_time:
            server = _fork_server(python)
            socket.send_fds(server, [json.dumps(asdict(order)).encode()], [*streams, theirs])
            pid = int(server.recv(16))
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return ForkedProcess(pid, ours)


def fork_daemon(environment: dict[str, str], log: Path) -> ForkedProcess:
    with ExitStack() as files:
        nothing = files.enter_context(open(os.devnull))
        out = files.enter_context(log.open("ab"))
        return fork_handrail(Order(DAEMON, environment), (nothing.fileno(), out.fileno(), out.fileno()))


def run_handrail(
    order: Order, timeout: float, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """The exit status and output of a command, which reads nothing."""
    with ExitStack() as files:
        nothing = files.enter_context(open(os.devnull))
        out, err = (files.enter_context(open(os.memfd_create(name), "r+b")) for name in ("out", "err"))
        process = fork_handrail(order, (nothing.fileno(), out.fileno(), err.fileno()), python)
        try:
            code = process.wait(timeout)
        except BaseException:
            process.kill()
            raise
        texts = [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode() for file in (out, err)]
    return subprocess.CompletedProcess(["handrail", *order.arguments], code, *texts)


@cache
def _fork_server(python: str) -> socket.socket:
    server = start_server([python, str(Path(__file__).resolve())])
    server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * LARGEST_ORDER)
    return server


def start_server(argv: Sequence[str]) -> socket.socket:
    """Start a fork server, which gets the number of its socket as its last argument; it ends with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    descriptor = theirs.fileno()
    with theirs:
        process = subprocess.Popen(
            [*argv, str(descriptor)], cwd="/", stdin=subprocess.DEVNULL, pass_fds=[descriptor]
        )

    def end() -> None:
        ours.close()
        process.kill()  # its forks go on; its own exit would take a second
        process.wait()

    atexit.register(end)
    return ours


def main(descriptor: int) -> None:
    """Fork for each order, until the other end is closed."""
    sys.path.pop(0)  # the folder of this file
    _import_everything()
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page
    os.set_inheritable(descriptor, False)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    with socket.socket(fileno=descriptor) as tests:
        while True:
            message, descriptors, _, _ = socket.recv_fds(tests, LARGEST_ORDER, 4)
            if not message:
                return
            for each in descriptors:
                os.set_inheritable(each, False)
            pid = os.fork()
            if pid == 0:
                tests.close()
                _become(Order(**json.loads(message)), descriptors)
            for each in descriptors:
                os.close(each)
            tests.send(b"%d" % pid)


def _import_everything() -> None:
    """Also modules that a daemon or a command imports when it needs them, except those of programs it starts."""
    import handrail  # noqa: PLC0415

    for module in pkgutil.walk_packages(handrail.__path__, "handrail."):
        if not module.name.endswith("__main__") and not module.name.startswith(OTHER_PROGRAMS):
            importlib.import_module(module.name)
    for name in LATER_IMPORTS:
        importlib.import_module(name)


def _become(order: Order, descriptors: Sequence[int]) -> NoReturn:
    *streams, report = descriptors
    status = 1
    try:
        _take_place(order, streams)
        from handrail.__main__ import main as run  # noqa: PLC0415

        status = run()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # the reader may be gone
                stream.flush()
        with suppress(OSError):
            os.write(report, b"%d" % status)
        os._exit(status)


def _take_place(order: Order, streams: Sequence[int]) -> None:
    """Everything that a new process gets from its parent."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if order.has_session:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if order.has_session and os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    _open_streams()
    if order.uid is not None and order.uid != os.getuid():
        os.setgroups([])
        os.setgid(order.uid)
        os.setuid(order.uid)
    os.environ.clear()
    os.environ.update(order.environment)
    sys.path += filter(None, order.environment.get("PYTHONPATH", "").split(os.pathsep))
    os.chdir(order.cwd)
    random.seed()
    sys.argv = ["handrail", *order.arguments]


def _open_streams() -> None:
    """The objects of the server remember whether its descriptors were terminals."""
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False, buffering=1 if os.isatty(1) else -1)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115


if __name__ == "__main__":
    main(int(sys.argv[1]))
