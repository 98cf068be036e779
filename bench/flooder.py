"""A hostile MCP client, as a program: `python -m bench.flooder KIND COUNT ADDRESS [BEARER]`.

Writes one line of JSON when it has sent all, or can send no more. Then holds its connections open until its stdin closes.
"""

import contextlib
import http.client
import json
import os
import resource
import selectors
import socket
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

CALLS = 200_000
"""Calls whose answers are not read, over all connections."""
STALLED_SECONDS = 3.0
"""The daemon has stopped reading when it took no byte from any connection for so long."""
FLOOD_SECONDS = 60.0
"""Bounds one flood. A daemon that still takes requests then has throttled them enough."""
OPEN_SECONDS = 120.0
"""Bounds the opening of sessions over HTTP. Of one credential the daemon opens them at a steady rate."""
WAIT_SECONDS = 60.0
FIRST_ID = 1_000_000
"""Of a request. All ids have the same length, so that bytes can be converted to requests."""
CHUNK = 64
"""Requests encoded at a time."""
_INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "flooder", "version": "1"},
}

Encode = Callable[[int], bytes]
"""The bytes of the request with this id."""


class Sender:
    """Sends numbered requests on one connection and never reads."""

    def __init__(self, sock: socket.socket, encode: Encode, first: int, count: int) -> None:
        self.sock = sock
        self._encode = encode
        self._next, self._end = first, first + count
        self._size = len(encode(first))
        self._unsent = b""
        self._sent = 0

    @property
    def taken(self) -> int:
        """The requests that the connection has taken."""
        return self._sent // self._size

    def send(self) -> bool:
        """Send what the connection takes now. False when all is sent, or the daemon closed the connection."""
        if not self._unsent:
            last = min(self._next + CHUNK, self._end)
            self._unsent = b"".join(map(self._encode, range(self._next, last)))
            self._next = last
        try:
            count = self.sock.send(self._unsent)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._sent += count
        self._unsent = self._unsent[count:]
        return bool(self._unsent) or self._next < self._end


def flood(senders: list[Sender]) -> int:
    """Send on all connections until all is sent or the daemon stops reading; the number of requests taken."""
    selector = selectors.DefaultSelector()
    for sender in senders:
        sender.sock.setblocking(False)
        selector.register(sender.sock, selectors.EVENT_WRITE, sender)
    deadline = time.monotonic() + FLOOD_SECONDS
    while selector.get_map() and time.monotonic() < deadline:
        ready = selector.select(STALLED_SECONDS)
        if not ready:
            break
        for key, _ in ready:
            if not key.data.send():
                selector.unregister(key.fileobj)
    return sum(sender.taken for sender in senders)


def call_over_doors(held: contextlib.ExitStack, count: int, address: str, _bearer: str) -> int:
    """Call a tool on so many connections of the unix socket."""
    doors = list(_open_doors(held, count, address))
    return flood([Sender(door, _encode_line, FIRST_ID, CALLS // count) for door in doors])


def call_over_http(held: contextlib.ExitStack, count: int, address: str, bearer: str) -> int:
    """Call a tool on so many HTTP connections of one session, each request without waiting for the answer before."""
    session = _open_session(_connect(held, address), bearer)
    share = CALLS // count
    head = _head(address, bearer, session)

    def encode(id: int) -> bytes:
        body = _encode_line(id)
        return head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body

    sockets = [_connect(held, address).sock for _ in range(count)]
    return flood([Sender(sock, encode, FIRST_ID + n * share, share) for n, sock in enumerate(sockets)])


def open_door_sessions(held: contextlib.ExitStack, count: int, address: str, _bearer: str) -> int:
    """Open so many sessions on the unix socket, and keep those that the daemon allows."""
    return sum(1 for _ in _open_doors(held, count, address))


def open_http_sessions(held: contextlib.ExitStack, count: int, address: str, bearer: str) -> int:
    """Open so many sessions over HTTP, as far as the daemon lets them open in time, and close none."""
    connection = _connect(held, address)
    deadline = time.monotonic() + OPEN_SECONDS
    opened = 0
    while opened < count and time.monotonic() < deadline:
        opened += bool(_open_session(connection, bearer))
    return opened


FLOODS = {
    "door-calls": call_over_doors,
    "http-calls": call_over_http,
    "door-sessions": open_door_sessions,
    "http-sessions": open_http_sessions,
}


def _open_doors(held: contextlib.ExitStack, count: int, path: str) -> Generator[socket.socket]:
    """Sessions on the unix socket. A connection that the daemon refuses is closed and yields nothing."""
    hello = {"handrail": 1, "want": "mcp", "version": "bench", "pid": os.getpid(), "cwd": str(Path.cwd())}
    for _ in range(count):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(WAIT_SECONDS)
        sock.connect(path)
        sock.sendall(json.dumps({**hello, "door": os.urandom(8).hex()}).encode() + b"\n")
        if not _read_line(sock)["ok"]:
            sock.close()
            continue
        sock.sendall(_encode({"id": 0, "method": "initialize", "params": _INITIALIZE}))
        _read_line(sock)
        yield held.enter_context(sock)


def _read_line(sock: socket.socket) -> dict[str, object]:
    line = b""
    while not line.endswith(b"\n"):
        chunk = sock.recv(65536)
        if not chunk:
            raise EOFError("The daemon closed the connection.")
        line += chunk
    return json.loads(line.splitlines()[0])


def _connect(held: contextlib.ExitStack, address: str) -> http.client.HTTPConnection:
    connection = held.enter_context(
        contextlib.closing(http.client.HTTPConnection(address, timeout=WAIT_SECONDS))
    )
    connection.connect()
    return connection


def _open_session(connection: http.client.HTTPConnection, bearer: str) -> str:
    body = _encode({"id": 0, "method": "initialize", "params": _INITIALIZE})
    headers = {"Authorization": f"Bearer {bearer}", **_JSON}
    connection.request("POST", "/mcp", body, headers)
    response = connection.getresponse()
    response.read()
    return response.headers.get("mcp-session-id", "")


_JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def _head(address: str, bearer: str, session: str) -> bytes:
    """The request line and the headers but for the length of the body."""
    headers = {"Host": address, "Authorization": f"Bearer {bearer}", "Mcp-Session-Id": session, **_JSON}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /mcp HTTP/1.1\r\n{lines}".encode()


def _encode_line(id: int) -> bytes:
    return _encode({"id": id, "method": "tools/call", "params": {"name": "list_calls", "arguments": {}}})


def _encode(message: dict[str, object]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def main(kind: str, count: str, address: str, bearer: str = "") -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with contextlib.ExitStack() as held:
        taken = FLOODS[kind](held, int(count), address, bearer)
        print(json.dumps({"taken": taken}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
