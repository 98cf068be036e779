"""A home with a real daemon in it, the command line, and an agent behind a door, for the tests of the commands.

Every wait is under `BOUND`. The agent is a process of its own: whoever launches a door is no longer taken for a
person, and the tests have to be one.
"""

from __future__ import annotations

import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

BOUND = 30.0
SRC = Path(__file__).parents[2] / "src"
AGENT = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
T = TypeVar("T")
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Home:
    """One Handrail, with everything it writes in a directory of its own."""

    def __init__(self, path: Path, workspace: Path) -> None:
        self.path = path
        self.workspace = workspace
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.env = {**kept, "HANDRAIL_HOME": str(path), "PYTHONPATH": str(SRC), "COLUMNS": "200"}

    def argv(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "handrail", *arguments]

    def start(self, *arguments: str, **settings: Any) -> subprocess.Popen[str]:
        """A command that goes on."""
        return subprocess.Popen(
            self.argv(*arguments), env=self.env, cwd=self.workspace, text=True, **settings
        )

    def run(self, *arguments: str, cwd: Path | None = None) -> Done:
        done = subprocess.run(
            self.argv(*arguments),
            env=self.env,
            cwd=cwd or self.workspace,
            capture_output=True,
            text=True,
            timeout=BOUND,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def ok(self, *arguments: str) -> Done:
        done = self.run(*arguments)
        assert done.code == 0, done
        return done

    def up(self) -> Done:
        return self.ok("up", "--no-open")

    def calls(self) -> list[Json]:
        return self.ok("calls", "--json").json

    def asked(self, count: int = 1) -> list[Json]:
        """The open approvals, once there are so many."""

        def look() -> list[Json] | None:
            found: list[Json] = self.ok("approvals", "--json").json
            return found if len(found) >= count else None

        return within(look, f"{count} approvals")

    def becomes(self, call: str, status: str) -> Json:
        """The call, once its status is this."""

        def look() -> Json | None:
            return next((row for row in self.calls() if row["id"] == call and row["status"] == status), None)

        return within(look, f"{call} to be {status}")

    def end(self) -> None:
        """Whatever still runs here, by the ids it left."""
        known = self.run("status", "--json")
        if known.code == 0:
            for pid in (known.json["pid"], known.json["keeper_pid"]):
                if pid:
                    _end(pid)


class Agent:
    """An MCP client behind a door, as launched by a program that is not this one."""

    def __init__(self, home: Home) -> None:
        argv = [sys.executable, "-c", AGENT, *home.argv("mcp", "--workspace", str(home.workspace))]
        self._process = subprocess.Popen(
            argv, env=home.env, cwd=home.workspace, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._answers: queue.Queue[Json] = queue.Queue()
        self._early: dict[int, Json] = {}
        self._number = 0
        threading.Thread(target=self._listen, daemon=True).start()
        about = {"name": "test agent", "version": "1"}
        self.answer(
            self._ask(
                "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
            )
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(BOUND)
        finally:
            self._process.kill()
            self._process.stdout.close()

    def call(self, tool: str, **arguments: object) -> int:
        """Use a tool, without waiting for what comes of it."""
        return self._ask("tools/call", {"name": tool, "arguments": arguments})

    def answer(self, number: int) -> Json:
        """What came of a request."""
        until = time.monotonic() + BOUND
        while number not in self._early:
            message = self._answers.get(timeout=max(0.0, until - time.monotonic()))
            self._early[message.get("id", 0)] = message
        return self._early.pop(number)["result"]

    def _ask(self, method: str, params: Json) -> int:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def _send(self, message: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(json.loads(line))


def within(look: Callable[[], T | None], what: str) -> T:
    """What a look finds, as soon as it finds something."""
    until = time.monotonic() + BOUND
    while time.monotonic() < until:
        found = look()
        if found is not None:
            return found
    raise AssertionError(f"waited {BOUND:.0f} s for {what}")


def _end(pid: int) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        if not select.select([descriptor], [], [], BOUND)[0]:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(descriptor)
