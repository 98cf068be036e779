"""A real daemon in a home of its own, for one run of the bench.

Owns starting and ending it, and the person who may look at its health and cancel calls. Does not know what is measured.
"""

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.client import Client
from handrail.door.find import dial
from handrail.door.hello import say_hello
from handrail.places import Places

STOP_GRACE = 0.1
"""Seconds between TERM and KILL: short, so that what is measured after it is seen clearly."""
START_SECONDS = 30.0
HTTP_SECONDS = 30.0
_SPEAKER = [sys.executable, str(Path(__file__).parent / "peers" / "speaker.py")]
_CONFIG = (
    f'default_policy = "allow"\n[command]\nstop_grace = {STOP_GRACE}\nwait_seconds = 600\n'
    f'[[agents]]\nname = "speaker"\ncommand = {json.dumps(_SPEAKER)}\n'
)


@dataclass(frozen=True, slots=True)
class Stage:
    """The daemon at work."""

    workspace: Path
    env: Mapping[str, str]
    url: str
    bearer: str
    _line: socket.socket = field(repr=False)
    """The person's bearer lasts as long as this connection."""

    @property
    def door_argv(self) -> list[str]:
        return [sys.executable, "-m", "handrail", "mcp"]

    def door(self) -> Client:
        """A door just launched, not spoken to yet."""
        return Client(self.door_argv, self.env, self.workspace)

    @contextmanager
    def client(self) -> Generator[Client]:
        """A client that has shaken hands."""
        with self.door() as client:
            client.initialize()
            yield client

    def asked(self) -> dict[str, Any]:
        """The question that is open, once there is one: what is not plain asks, whatever is allowed."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if found := self.get("/api/approvals?open=true"):
                return found[0]
            time.sleep(0.002)
        raise TimeoutError("Nothing was asked.")

    def allow(self, asked: dict[str, Any]) -> None:
        body = {"answer": "allow", "digest": asked["digest"]}
        self.post(f"/api/approvals/{asked['id']}/answer", body)

    def get(self, path: str) -> Any:
        return self.finish(self.send("GET", path))

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self.finish(self.send("POST", path, body))

    def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> http.client.HTTPConnection:
        """Send a request; `finish` reads its answer."""
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=HTTP_SECONDS)
        headers = {"Authorization": f"Bearer {self.bearer}", "Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        return connection

    def finish(self, connection: http.client.HTTPConnection) -> Any:
        response = connection.getresponse()
        body = response.read()
        connection.close()
        if response.status >= 300:
            raise RuntimeError(f"The daemon answered {response.status}: {body.decode(errors='replace')}")
        return json.loads(body)


@contextmanager
def staged() -> Generator[Stage]:
    """Start the daemon, and end it with all it started."""
    with tempfile.TemporaryDirectory(prefix="hb") as folder:
        home, workspace = Path(folder) / "h", Path(folder) / "w"
        home.mkdir()
        workspace.mkdir()
        (home / "config.toml").write_text(_CONFIG)
        env = {**os.environ, "HANDRAIL_HOME": str(home)}
        argv = [sys.executable, "-m", "handrail", "up", "--foreground", "--no-open"]
        with (home / "bench.log").open("wb") as log:
            daemon = subprocess.Popen(
                argv, env=env, cwd=workspace, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            # Before any door is launched: whoever launched one is an agent, and no person.
            line = _arrive(Places.under(home), daemon, home / "bench.log")
            with line:
                reply = say_hello(line, "person")
                stage = Stage(workspace, env, reply["url"], reply["bearer"], line)
                stage.post("/api/folders/trust", {"folder": str(workspace)})  # else everything that acts asks
                yield stage
        finally:
            daemon.terminate()
            daemon.wait(START_SECONDS)


def _arrive(places: Places, daemon: "subprocess.Popen[bytes]", log: Path) -> socket.socket:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and daemon.poll() is None:
        line = dial(places)
        if line is not None:
            return line
        time.sleep(0.02)
    raise RuntimeError(f"The daemon did not start:\n{log.read_text(errors='replace')}")
