"""A real daemon with its own home and workspace, for one measurement.

Starts and ends the daemon, and acts as the person: health, approvals, cancels. Talks to it over its public interfaces only
and imports nothing from Handrail, so that one client can measure two versions of it.
"""

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.client import Client
from bench.line import Figure

STOP_GRACE = 0.1
"""Seconds between TERM and KILL: short, so that the time after KILL is seen clearly."""
START_SECONDS = 120.0
"""Bounds the start of the daemon, which takes a second on a quiet machine."""
APPROVAL_SECONDS = 30.0
STOP_SECONDS = 60.0
HTTP_SECONDS = 30.0
HELLO_VERSION = 1
"""Of the first line on the daemon's socket."""
ACP_AGENT = "bench"
"""The name under which the daemon knows the agent of `peers/acp_agent.py`."""
_ACP_COMMAND = [sys.executable, str(Path(__file__).parent / "peers" / "acp_agent.py")]
_CONFIG = (
    f'default_policy = "allow"\n[command]\nstop_grace = {STOP_GRACE}\nwait_seconds = 600\n'
    f'[[agents]]\nname = "{ACP_AGENT}"\ncommand = {json.dumps(_ACP_COMMAND)}\n'
)


@dataclass(frozen=True, slots=True)
class Daemon:
    """A running daemon."""

    python: str
    """The interpreter of the environment that Handrail is installed in."""
    home: Path
    workspace: Path
    env: Mapping[str, str]
    url: str
    bearer: str

    @property
    def door_argv(self) -> list[str]:
        return [self.python, "-m", "handrail", "mcp"]

    def start_door(self) -> Client:
        """A door that was just launched, before any message."""
        return Client(self.door_argv, self.env, self.workspace)

    @contextmanager
    def connect(self) -> Generator[Client]:
        """An initialized MCP client."""
        with self.start_door() as client:
            client.initialize()
            yield client

    def wait_for_approval(self) -> dict[str, Any]:
        """The first open approval. Commands that are not plain ask, whatever the policy."""
        deadline = time.monotonic() + APPROVAL_SECONDS
        while time.monotonic() < deadline:
            if approvals := self.get("/api/approvals?open=true"):
                return approvals[0]
            time.sleep(0.002)
        raise TimeoutError("No approval was opened.")

    def allow(self, approval: dict[str, Any]) -> None:
        body = {"answer": "allow", "digest": approval["digest"]}
        self.post(f"/api/approvals/{approval['id']}/answer", body)

    def call_with_approval(
        self, client: Client, tool: str, arguments: Mapping[str, object]
    ) -> dict[str, Any]:
        """Call a tool that asks, allow it, and return the structured result."""
        request = client.begin(tool, arguments)
        self.allow(self.wait_for_approval())
        return client.answer(request)["structuredContent"]

    def get(self, path: str) -> Any:
        return self.receive(self.send("GET", path))

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self.receive(self.send("POST", path, body))

    def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> http.client.HTTPConnection:
        """Send a request; `receive` reads its response."""
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=HTTP_SECONDS)
        headers = {"Authorization": f"Bearer {self.bearer}", "Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        return connection

    def receive(self, connection: http.client.HTTPConnection) -> Any:
        response = connection.getresponse()
        body = response.read()
        connection.close()
        if response.status >= 300:
            raise RuntimeError(f"The daemon answered {response.status}: {body.decode(errors='replace')}")
        return json.loads(body)


def with_daemon(measure: Callable[[Daemon], Generator[Figure]]) -> Callable[[], Generator[Figure]]:
    """The same measurement with a fresh daemon, so that no measurement sees the state of another."""

    def measure_fresh() -> Generator[Figure]:
        with start_daemon() as daemon:
            yield from measure(daemon)

    return measure_fresh


@contextmanager
def start_daemon(python: str = sys.executable) -> Generator[Daemon]:
    """Start a daemon of the Handrail that this interpreter has installed, and end it with all it started."""
    with make_home() as home, run_daemon(home, python) as daemon:
        yield daemon


@contextmanager
def make_home(data: Path | None = None) -> Generator[Path]:
    """A home with its configuration, and with a copy of the files in `data`. Its workspace is beside it."""
    with tempfile.TemporaryDirectory(prefix="hb") as folder:
        home = Path(folder) / "h"
        home.mkdir()
        (home.parent / "w").mkdir()
        (home / "config.toml").write_text(_CONFIG)
        for file in data.iterdir() if data else ():
            shutil.copy(file, home)
        yield home


@contextmanager
def run_daemon(home: Path, python: str = sys.executable) -> Generator[Daemon]:
    """Start a daemon in this home; a home can have several, one after the other."""
    workspace, env = home.parent / "w", build_env(home)
    with (
        _launch(python, env, workspace, home / "bench.log") as process,
        # Before any door starts: the daemon takes a process that has launched a door for an agent, not a person.
        closing(_dial(home, process)) as connection,
    ):
        reply = _greet(connection)  # its bearer is valid as long as the connection is open
        daemon = Daemon(python, home, workspace, env, reply["url"], reply["bearer"])
        # In a folder that is not trusted, every effect asks.
        daemon.post("/api/folders/trust", {"folder": str(workspace)})
        yield daemon


def build_env(home: Path) -> dict[str, str]:
    """The environment of a Handrail with this home.

    Without PYTHONPATH, which could lead to another Handrail, and PYTHONDONTWRITEBYTECODE, with which a checkout, unlike an
    installed package, would compile its sources at each start.
    """
    dropped = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
    inherited = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**inherited, "HANDRAIL_HOME": str(home)}


@contextmanager
def _launch(
    python: str, env: Mapping[str, str], cwd: Path, log: Path
) -> Generator["subprocess.Popen[bytes]"]:
    argv = [python, "-m", "handrail", "up", "--foreground", "--no-open"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def _dial(home: Path, process: "subprocess.Popen[bytes]") -> socket.socket:
    """A connection to the daemon's socket, which `daemon.json` names once the daemon listens."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(json.loads((home / "daemon.json").read_text())["socket"])
        except OSError:
            connection.close()
            time.sleep(0.02)
        else:
            return connection
    if process.returncode is None:
        raise TimeoutError(f"The daemon did not start within {START_SECONDS:g} s.")
    log = (home / "bench.log").read_text(errors="replace").splitlines()
    raise RuntimeError(f"The daemon ended with status {process.returncode}: {' / '.join(log[-3:])}")


def _greet(connection: socket.socket) -> dict[str, Any]:
    """Send the hello of a person; the reply has the address of the web server and a bearer for it."""
    hello = {
        "handrail": HELLO_VERSION,
        "want": "person",
        "version": "bench",
        "pid": os.getpid(),
        "ppid": os.getppid(),
        "cwd": str(Path.cwd()),
        "workspace": None,
        "door": os.urandom(8).hex(),
    }
    connection.settimeout(HTTP_SECONDS)
    connection.sendall(json.dumps(hello).encode() + b"\n")
    with connection.makefile("rb") as file:
        reply = json.loads(file.readline())
    if reply.get("ok") is not True:
        raise RuntimeError(f"The daemon refused the bench: {reply}")
    return reply
