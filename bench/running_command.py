"""A command that runs in the daemon until it is cancelled."""

import time
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

from bench.client import Client
from bench.daemon import Daemon

START_SECONDS = 30.0
"""Bounds the wait until the command has a terminal."""


@dataclass(frozen=True, slots=True)
class RunningCommand:
    """An execute_command call whose process runs."""

    daemon: Daemon
    client: Client
    request: int
    call: str

    def cancel(self) -> HTTPConnection:
        """Send the person's cancel without waiting for the response."""
        return self.daemon.send("POST", f"/api/calls/{self.call}/cancel")

    def wait_for_result(self) -> dict[str, Any]:
        return self.client.answer(self.request)


def start_command(
    daemon: Daemon, client: Client, command: str, env: dict[str, str] | None = None
) -> RunningCommand:
    """Start a command that does not end before it is cancelled, and wait until it runs."""
    request = client.begin("execute_command", {"command": command, "env": env or {}})
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        for approval in daemon.get("/api/approvals?open=true"):
            daemon.allow(approval)
        # The terminal of a cancelled call may still be ending: only calls that run count.
        running = {call["id"] for call in daemon.get("/api/calls?status=running")}
        for terminal in daemon.get("/api/terminals?running=true"):
            if terminal["call_id"] in running:
                return RunningCommand(daemon, client, request, terminal["call_id"])
        time.sleep(0.002)
    raise TimeoutError("The command did not start.")
