"""A home with a real daemon, seen from outside: start, kill, stop, and waits for processes and ports."""

import os
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
from tests.support.fork_server import ForkedProcess, fork_daemon
from tests.support.home_folder import make_home_folder
from tests.support.keeper_terminals import shell_home

from handrail.config import PROVIDER_VARIABLES
from handrail.door.connect import HelloRefused, dial, dial_path, say_hello
from handrail.paths import Places

T = TypeVar("T")

BOUND = 60.0
"""Seconds for anything a test waits for: far more than it takes, so that only a fault reaches it."""


_OURS: set[bytes] = set()
"""Environment entries of the homes made here. Each of their processes has one of them."""


class Home:
    """One HANDRAIL_HOME, and the daemon that runs there now."""

    def __init__(self, path: Path, config: str) -> None:
        self.places = Places.under(path)
        self.port = free_port()
        person = shell_home(path / "person")
        around = {name: value for name, value in os.environ.items() if name not in PROVIDER_VARIABLES}
        self.environment = {**around, "HANDRAIL_HOME": str(path), "HOME": str(person)}
        _OURS.update(f"{name}={self.environment[name]}".encode() for name in ("HANDRAIL_HOME", "HOME"))
        self._ours: ForkedProcess | None = None
        self.places.make()
        # Most tests that kill a daemon start the next one themselves.
        daemon = "" if "[daemon]" in config else "[daemon]\nrestart = false\n"
        self.places.config.write_text(f"{config}\n{daemon}[server]\nport = {self.port}\n")

    def start(self) -> subprocess.Popen[bytes]:
        """Start a daemon in the foreground, as a child of this test, without waiting for it."""
        command = [sys.executable, "-m", "handrail", "up", "--foreground", "--no-open"]
        log = self.places.logs / "foreground.out"
        with log.open("ab") as out:
            return subprocess.Popen(
                command, env=self.environment, cwd="/", stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )

    def up(self) -> None:
        """Start a daemon and wait until it answers."""
        self._reap()
        self._ours = fork_daemon(self.environment, self.places.logs / "foreground.out")
        self.wait_ready()

    def about(self) -> dict[str, Any]:
        """The daemon's answer to a hello. Raises HelloRefused if no daemon answers."""
        sock = dial(self.places)
        if sock is None:
            raise HelloRefused("nobody listens.")
        with closing(sock):
            return say_hello(sock, "read")

    def is_ready(self) -> bool:
        try:
            self.about()
        except HelloRefused:
            return False
        return True

    def wait_ready(self) -> None:
        deadline = time.monotonic() + BOUND
        while not self.is_ready():
            ended = self._ours is not None and self._ours.poll() is not None
            if ended or time.monotonic() > deadline:
                raise TimeoutError(f"no daemon came up; it said: {self.said()}")
            time.sleep(0.01)

    def said(self) -> str:
        """The output and logs of this home's daemons, for failure messages."""
        return "\n".join(path.read_text(errors="replace")[-4000:] for path in self.places.logs.iterdir())

    @property
    def pid(self) -> int:
        return int(self.about()["pid"])

    @property
    def url(self) -> str:
        return str(self.about()["url"])

    def kill(self) -> int:
        """kill -9 of the daemon that answers now; returns when it is gone."""
        pid = self.pid
        self.signal(pid, signal.SIGKILL)
        return pid

    def signal(self, pid: int, number: int) -> float:
        """Send a signal and wait until the process is gone; the seconds that took."""
        began = time.monotonic()
        with watch_exit(pid) as gone:
            os.kill(pid, number)
            if self._ours is not None and self._ours.pid == pid:
                self._reap()
            elif not gone(BOUND):
                raise TimeoutError(f"process {pid} did not end after signal {number}")
        return time.monotonic() - began

    def end(self) -> None:
        """Leave nothing running. If only a keeper is left, start a daemon, which can end it."""
        keeper = dial_path(str(self.places.keeper_socket))
        if keeper is not None:
            keeper.close()
        if self._ours is not None and self._ours.poll() is None:
            self.signal(self._ours.pid, signal.SIGTERM)
        elif keeper is not None and not self.is_ready():
            self.up()
        if self.is_ready():
            self.signal(self.pid, signal.SIGTERM)
        self._reap()

    def _reap(self) -> None:
        """Wait for our daemon's exit. Another process may have ended it."""
        if self._ours is not None:
            self._ours.wait(BOUND)
            self._ours = None


@contextmanager
def running_daemon(config: str = "", prepare: Callable[["Home"], object] = id) -> Generator[Home]:
    """A home with a daemon that answers; nothing of it is left afterwards. `prepare` gets the home before that."""
    path = make_home_folder()
    home = Home(path, config)
    try:
        prepare(home)
        home.up()
        yield home
    finally:
        try:
            home.end()
        finally:
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def watch_exit(pid: int) -> Generator[Callable[[float], bool]]:
    """A function that waits up to some seconds for this process to exit. True once it has."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        yield lambda _: True
        return
    try:
        yield lambda seconds: bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


async def until(condition: Callable[[], bool], within: float = BOUND) -> None:
    """Poll until the condition holds. Raises TimeoutError."""

    async def look() -> bool:
        return condition()

    await eventually(look, within)


async def eventually(look: Callable[[], Awaitable[T | None]], within: float = BOUND) -> T:
    """Poll until `look` returns something true. Raises TimeoutError.

    The pause is a tenth of the time waited so far, from 5 to 100 ms: a long wait must not compete with its subject.
    """
    began = time.monotonic()
    with anyio.fail_after(within):
        while not (found := await look()):  # noqa: ASYNC110 - other processes ring no bell for us
            await anyio.sleep(min(max((time.monotonic() - began) / 10, 0.005), 0.1))
    return found


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def free_port() -> int:
    """A free port below the range of ephemeral ports."""
    while True:
        port = random.randint(20_000, 32_000)
        with closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def find_processes(marker: str) -> list[int]:
    """Every living process of a home made here on whose command line this marker stands.

    Others on this machine may run the same tests at the same time.
    """
    numbers = (entry for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [int(entry.name) for entry in numbers if _is_ours(entry, marker.encode())]


def _is_ours(entry: Path, marker: bytes) -> bool:
    try:
        if entry.name == str(os.getpid()) or marker not in (entry / "cmdline").read_bytes():
            return False
        environment = (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return not _OURS.isdisjoint(environment)
