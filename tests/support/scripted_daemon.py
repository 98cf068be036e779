"""Scripted peers of the door: a daemon, a keeper, a client behind a door, and a finder of the daemon.

They know the hello and the framing only; the test decides every message. The keeper speaks the real protocol with the
keeper's own classes and writes a real spool. Every wait is under `BOUND`.
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
from typing import Any, Self, TypeVar

from handrail.keeper.message_framing import encode
from handrail.keeper.protocol import (
    PROTOCOL,
    Exit,
    Exited,
    Grown,
    Hello,
    Input,
    Kept,
    Resize,
    Typed,
    Welcome,
    to_keeper,
)
from handrail.keeper.spool import Spool
from handrail.paths import Places

BOUND = 20.0
SRC = Path(__file__).parents[2] / "src"


class DaemonConnection:
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
            self.sock.sendall(item if isinstance(item, bytes) else encode_line(item))

    @contextmanager
    def sending(self, data: bytes) -> Generator[None]:
        thread = threading.Thread(target=self.send, args=(data,), daemon=True)
        thread.start()
        yield
        thread.join(BOUND)
        assert not thread.is_alive(), "the door did not take all of it"

    def die(self) -> None:
        """Close the connection, as a killed daemon does."""
        self._lines.close()
        self.sock.close()


class ScriptedDaemon:
    """A daemon on the real socket whose messages the test sends."""

    def __init__(self, places: Places) -> None:
        places.make()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.settimeout(BOUND)
        self.listener.bind(str(places.daemon_socket))
        self.listener.listen(64)
        self._seats: list[DaemonConnection] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()
        for seat in self._seats:
            seat.die()

    def accept(self) -> DaemonConnection:
        """A connection whose hello is still to be read."""
        seat = DaemonConnection(self.listener.accept()[0])
        self._seats.append(seat)
        return seat

    def seat(self) -> DaemonConnection:
        """A connection that was greeted and let in."""
        seat = self.accept()
        seat.hello = seat.message()
        seat.send({"handrail": 1, "ok": True, "version": "0.1.0", "pid": os.getpid(), "url": "http://x"})
        return seat


class DoorClient:
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
            data = item if isinstance(item, bytes) else encode_line(item)
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


def encode_line(item: object) -> bytes:
    return json.dumps(item).encode() + b"\n"


def request(key: object, method: str = "tools/call", **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": key, "method": method, "params": params}


def result(key: object, **fields: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": key, "result": fields}


def opened_note(key: object, call: str) -> bytes:
    """The daemon's note to the door: which call a request became."""
    return (
        json.dumps({"handrail": {"opened": {"request": key, "call": call}}}, separators=(",", ":")).encode()
        + b"\n"
    )


TERMINAL = "t123"
T = TypeVar("T")


class ScriptedKeeper:
    """A scripted daemon and keeper for one terminal."""

    def __init__(self, places: Places, answer: tuple[int, object] = (201, {"id": TERMINAL})) -> None:
        places.make()
        self.asked: dict[str, Any] = {}
        """What the daemon was asked for."""
        self.output = Spool(str(places.spool / TERMINAL), 1 << 20)
        self._answer = answer
        self._web = socket.create_server(("127.0.0.1", 0))
        self._daemon = _listening(str(places.daemon_socket))
        self._keeper = _listening(str(places.keeper_socket))
        self._held: list[socket.socket] = [self._web, self._daemon, self._keeper]
        self._peer: socket.socket | None = None
        self._told = b""
        for serve in (self._greet, self._serve):
            threading.Thread(target=serve, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self.output, *self._held):
            each.close()

    def welcome(self) -> Hello:
        """Let the window in. Before it attaches, it asks which process the daemon is."""
        while (hello := self._accept()).want == "which_daemon":
            self.say(Welcome(PROTOCOL, os.getpid(), daemon=os.getpid()))
            self.dies()
        kept = Kept(TERMINAL, ("sh",), "/", 1, 0.0, 80, 24, False, self.output.size)
        self.say(Welcome(PROTOCOL, os.getpid(), 1), kept)
        return hello

    def _accept(self) -> Hello:
        self._keeper.settimeout(BOUND)
        self._peer = self._keeper.accept()[0]
        self._peer.settimeout(BOUND)
        self._held.append(self._peer)
        return self.told(Hello)

    def say(self, *messages: object) -> None:
        assert self._peer is not None
        for message in messages:
            self._peer.sendall(encode(message))

    def told(self, kind: type[T]) -> T:
        """The window's next message, of this kind. Sizes in between are skipped."""
        while True:
            message = self._next()
            if isinstance(message, kind):
                return message
            assert isinstance(message, Resize), message

    def typed(self) -> bytes:
        """The next keys, which are taken."""
        keys = self.told(Input)
        self.say(Typed(keys.id, secret=False, typed=True))
        assert keys.person
        return keys.data

    def prints(self, data: bytes) -> None:
        self.output.append(memoryview(data))
        self.say(Grown(TERMINAL, self.output.size))

    def exits(self, code: int | None = 0, signal: str | None = None) -> None:
        self.say(Exited(TERMINAL, Exit(code, signal), self.output.size))

    def dies(self) -> None:
        assert self._peer is not None
        self._peer.close()

    def hung_up(self) -> bool:
        """Read to the end; True once the window has disconnected."""
        assert self._peer is not None
        while data := self._peer.recv(1 << 16):
            self._told += data
        return True

    def _next(self) -> object:
        assert self._peer is not None
        while b"\n" not in self._told:
            data = self._peer.recv(1 << 16)
            assert data, "the window hung up"
            self._told += data
        line, _, self._told = self._told.partition(b"\n")
        return to_keeper(line)

    def _greet(self) -> None:
        while caller := _accepted(self._daemon):
            self._held.append(caller)
            caller.makefile("rb").readline()
            about = {"handrail": 1, "ok": True, "pid": 1, "version": "0", "bearer": "b"}
            port = self._web.getsockname()[1]
            caller.sendall(json.dumps({**about, "url": f"http://127.0.0.1:{port}"}).encode() + b"\n")

    def _serve(self) -> None:
        while caller := _accepted(self._web):
            with caller, caller.makefile("rb") as lines:
                head = [line.strip().lower() for line in iter(lines.readline, b"\r\n")]
                length = next(int(line[15:]) for line in head if line.startswith(b"content-length:"))
                self.asked = {"head": head, **json.loads(lines.read(length))}
                status, body = self._answer
                sent = json.dumps(body).encode()
                caller.sendall(b"HTTP/1.1 %d Word\r\ncontent-length: %d\r\n\r\n" % (status, len(sent)) + sent)


def _listening(path: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(path)
    made.listen(8)
    return made


def _accepted(listener: socket.socket) -> socket.socket | None:
    try:
        return listener.accept()[0]
    except OSError:
        return None


STANDIN_DAEMON = [sys.executable, str(Path(__file__).with_name("standin_daemon.py"))]

LOOK = """
import os
import sys
from pathlib import Path
from handrail.paths import Places
from handrail.door.connect import connect, DaemonNotRunning
from handrail.door.connect import say_hello
home, executable, within, *argv = sys.argv[1:]
sys.executable = executable
try:
    with connect(Places.under(Path(home)), argv=argv or None, within=float(within), keep=os.environ["KEEP"].split()) as sock:
        print(say_hello(sock, "read")["pid"])
except DaemonNotRunning as error:
    sys.exit(str(error))
"""


class DaemonFinder:
    """A process that looks for the daemon, as a door or the CLI does. It may start one."""

    def __init__(
        self,
        home: Path,
        *argv: str,
        executable: str = sys.executable,
        within: float = 15.0,
        inherits: tuple[int, ...] = (),
        keep: str = "",
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", LOOK, str(home), executable, str(within), *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=inherits,
            env={
                **os.environ,
                "PYTHONPATH": str(SRC),
                "HANDRAIL_HOME": str(home),
                "KEEP": keep,
                "A_SECRET": "s",
                "LC_X": "c",
            },
        )

    def found(self) -> int:
        """The pid of the daemon it got."""
        out, err = self.process.communicate(timeout=BOUND)
        assert self.process.returncode == 0, err
        return int(out)

    def failed(self) -> str:
        """The sentence with which it gave up."""
        out, err = self.process.communicate(timeout=BOUND)
        assert self.process.returncode == 1, out
        return err


def started_daemons(home: Path) -> list[dict[str, Any]]:
    """The reports of the stand-in daemons that got the lock of this home."""
    try:
        return [json.loads(line) for line in (home / "started").read_text().splitlines()]
    except FileNotFoundError:
        return []
