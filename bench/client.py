"""A lean MCP client over stdio: JSON lines without the SDK.

Leaner than a real client on purpose: the cost of the client is the same for both sides and would hide their difference.
"""

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROTOCOL = "2025-06-18"
ANSWER_SECONDS = 180.0
"""Bounds the wait for any answer; the slowest, a gigabyte of output, takes seconds."""
LEAVE_SECONDS = 10.0


class Client:
    """A server process and the requests to it. Leaving the context ends the server."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(env), cwd=cwd, bufsize=0
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self._stdout, select.POLLIN)
        self._held = b""
        self._last = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def initialize(self) -> None:
        info = {"name": "handrail-bench", "version": "1"}
        self.ask("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": info})
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Call a tool and return its result. Raises RuntimeError when the result is an error."""
        result = self.answer(self.begin(tool, arguments))
        if result.get("isError"):
            raise RuntimeError(f"{tool} failed: {result}")
        return result

    def begin(self, tool: str, arguments: Mapping[str, object]) -> int:
        """Call a tool without waiting; `answer` returns the result."""
        return self._request("tools/call", {"name": tool, "arguments": arguments})

    def call_pipelined(self, tool: str, arguments: Mapping[str, object], times: int, window: int) -> None:
        """Call a tool so many times, with up to `window` calls open. Raises RuntimeError when a result is an error."""
        for number in range(times + window):
            if number < times:
                self.begin(tool, arguments)
            if number >= window:
                self.receive()

    def receive(self) -> dict[str, Any]:
        """The next result, whichever request it answers. Raises RuntimeError when it is an error."""
        while "id" not in (message := json.loads(self._line())) or "method" in message:
            pass
        if "error" in message or message["result"].get("isError"):
            raise RuntimeError(f"The server answered with an error: {message}")
        return message["result"]

    def ask(self, method: str, params: Mapping[str, object]) -> dict[str, Any]:
        return self.answer(self._request(method, params))

    def answer(self, request: int) -> dict[str, Any]:
        """The result of this request. Drops answers to other requests that come before it."""
        while True:
            message = json.loads(self._line())
            if message.get("id") == request and "method" not in message:
                if "error" in message:
                    raise RuntimeError(f"The server answered with an error: {message['error']}")
                return message["result"]

    def _request(self, method: str, params: Mapping[str, object]) -> int:
        self._last += 1
        self._write({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        return self._last

    def _write(self, message: Mapping[str, object]) -> None:
        line = json.dumps(message).encode() + b"\n"
        while line:
            line = line[os.write(self._stdin, line) :]

    def _line(self) -> bytes:
        deadline = time.monotonic() + ANSWER_SECONDS
        while b"\n" not in self._held:
            if not self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise TimeoutError(f"No answer within {ANSWER_SECONDS:g} s.")
            chunk = os.read(self._stdout, 1 << 20)
            if not chunk:
                raise EOFError("The server ended.")
            self._held += chunk
        line, _, self._held = self._held.partition(b"\n")
        return line
