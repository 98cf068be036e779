"""A command under way in the daemon, as the bench needs it: its cancel and its result."""

import time
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

from bench.client import Client
from bench.stage import Stage

UP_SECONDS = 10.0
"""Bounds the wait for a command to appear among the terminals."""


@dataclass(frozen=True, slots=True)
class Running:
    """A command that runs."""

    stage: Stage
    client: Client
    request: int
    call: str

    def cancel(self) -> HTTPConnection:
        """Send the person's cancel, without waiting for its answer."""
        return self.stage.send("POST", f"/api/calls/{self.call}/cancel")

    def result(self) -> dict[str, Any]:
        return self.client.answer(self.request)


def begin(stage: Stage, client: Client, command: str, env: dict[str, str] | None = None) -> Running:
    """Start a command that will not end by itself, and wait until it runs."""
    request = client.begin("execute_command", {"command": command, "env": env or {}})
    deadline = time.monotonic() + UP_SECONDS
    while time.monotonic() < deadline:
        for asked in _list(stage, "/api/approvals?open=true"):
            stage.allow(asked)
        # The terminal of a call that was cancelled before may still be ending.
        open_calls = {call["id"] for call in _list(stage, "/api/calls?status=running")}
        started = [
            each for each in _list(stage, "/api/terminals?running=true") if each["call_id"] in open_calls
        ]
        if started:
            return Running(stage, client, request, started[0]["call_id"])
        time.sleep(0.002)
    raise TimeoutError("The command did not start.")


def _list(stage: Stage, path: str) -> list[dict[str, Any]]:
    return stage.get(path)
