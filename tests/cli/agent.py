"""An agent for the tests of the commands: an MCP client behind a real door.

It is launched by a process of its own: whoever launches a door is no longer taken for a person, and the tests have to
be one. Every wait is under `BOUND`.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from typing import Self

from tests.cli.scene import BOUND, Home, Json

LAUNCHER = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"


class Agent:
    """An MCP client behind a door, as launched by a program that is not this one."""

    def __init__(self, home: Home) -> None:
        argv = [sys.executable, "-c", LAUNCHER, *home.argv("mcp", "--workspace", str(home.workspace))]
        self._process = subprocess.Popen(
            argv,
            env=home.env,
            cwd=home.workspace,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._answers: queue.Queue[Json] = queue.Queue()
        self._early: dict[int, Json] = {}
        self._number = 0
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
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
        """Leave without a word, as a client does that crashed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(BOUND)
        self._process.stdin.close()
        self._listener.join(BOUND)
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
