"""The two ends a door stands between, for tests: a scripted daemon and a client that launched a door.

Knows the hello and lines, nothing of what a real daemon does with them. Every wait is under `BOUND`.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from handrail.paths import Places

BOUND = 20.0
SRC = Path(__file__).parents[2] / "src"


class Seat:
    """One connection that a door made to the scripted daemon."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(BOUND)
        self.sock = sock
        self._lines = sock.makefile("rb")
        self.hello: dict[str, Any] = {}

    def line(self) -> bytes:
        return self._lines.readline()

    def read(self, count: int) -> bytes:
        return self._lines.read(count)

    def some(self) -> bytes:
        return self._lines.read1(1 << 20)

    def message(self) -> Any:
        return json.loads(self.line())

    def send(self, *items: object) -> None:
        for item in items:
            self.sock.sendall(item if isinstance(item, bytes) else encoded(item))

    @contextmanager
    def sending(self, data: bytes) -> Generator[None]:
        thread = threading.Thread(target=self.send, args=(data,), daemon=True)
        thread.start()
        yield
        thread.join(BOUND)
        assert not thread.is_alive(), "the door did not take all of it"

    def die(self) -> None:
        """What a door sees of a daemon that was killed."""
        self._lines.close()
        self.sock.close()


class Peer:
    """A scripted daemon: it listens where a daemon would, and the test says what it says."""

    def __init__(self, places: Places) -> None:
        places.make()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.settimeout(BOUND)
        self.listener.bind(str(places.daemon_socket))
        self.listener.listen(64)
        self._seats: list[Seat] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()
        for seat in self._seats:
            seat.die()

    def accept(self) -> Seat:
        """A connection whose hello is still to be read."""
        seat = Seat(self.listener.accept()[0])
        self._seats.append(seat)
        return seat

    def seat(self) -> Seat:
        """A connection that was greeted and let in."""
        seat = self.accept()
        seat.hello = seat.message()
        seat.send({"handrail": 1, "ok": True, "version": "0.1.0", "pid": os.getpid(), "url": "http://x"})
        return seat


class Client:
    """An MCP client that launched a door and holds its stdin and stdout."""

    def __init__(self, *arguments: str, cwd: Path | None = None, **environ: str) -> None:
        self.door = subprocess.Popen(
            [sys.executable, "-m", "handrail", "mcp", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(SRC), **environ},
        )
        assert self.door.stdin
        assert self.door.stdout
        self.stdin = self.door.stdin
        self._stdout = self.door.stdout
        self._held = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.door.kill()
        self.door.wait(BOUND)
        for pipe in (self.door.stdin, self.door.stdout, self.door.stderr):
            if pipe:
                pipe.close()

    def send(self, *items: object) -> None:
        for item in items:
            data = item if isinstance(item, bytes) else encoded(item)
            while data:
                data = data[self.stdin.write(data) :]

    @contextmanager
    def sending(self, data: bytes) -> Generator[None]:
        """Send more than pipes hold while the test reads at the other end."""
        thread = threading.Thread(target=self.send, args=(data,), daemon=True)
        thread.start()
        yield
        thread.join(BOUND)
        assert not thread.is_alive(), "the door did not take all of it"

    def write_some(self, data: memoryview) -> int:
        """As much as the pipe promises room for."""
        return os.write(self.stdin.fileno(), data[: select.PIPE_BUF])

    def end_input(self) -> None:
        self.stdin.close()

    def stop_reading(self) -> None:
        self._stdout.close()

    def line(self) -> bytes:
        deadline = time.monotonic() + BOUND
        while b"\n" not in self._held:
            self._held += self._some(deadline)
        line, _, self._held = self._held.partition(b"\n")
        return line + b"\n"

    def message(self) -> Any:
        return json.loads(self.line())

    def rest(self) -> bytes:
        """All that comes until the door closes its output."""
        deadline = time.monotonic() + BOUND
        while more := self._some(deadline):
            self._held += more
        held, self._held = self._held, b""
        return held

    def wait(self) -> int:
        return self.door.wait(BOUND)

    def rss(self) -> int:
        """Bytes the door has in memory."""
        pages = Path(f"/proc/{self.door.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def some(self) -> bytes:
        return self._some(time.monotonic() + BOUND)

    def _some(self, deadline: float) -> bytes:
        ready, _, _ = select.select([self._stdout], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, "the door said nothing in time"
        return os.read(self._stdout.fileno(), 1 << 16)


def encoded(item: object) -> bytes:
    return json.dumps(item).encode() + b"\n"


def request(key: object, method: str = "tools/call", **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": key, "method": method, "params": params}


def result(key: object, **fields: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": key, "result": fields}


def opened(key: object, call: str) -> bytes:
    """The note by which a daemon tells the door which call a request became."""
    return (
        json.dumps({"handrail": {"opened": {"request": key, "call": call}}}, separators=(",", ":")).encode()
        + b"\n"
    )
