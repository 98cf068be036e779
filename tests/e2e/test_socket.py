"""The daemon's own socket under peers that do not keep to the protocol: it lives, and answers the next one."""

import contextlib
import json
import random
import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio.from_thread
import anyio.to_thread
from tests.support.daemon_home import BOUND, Home
from tests.support.person_client import Person

from handrail.door.connect import connect, say_hello

LINES = 1000
GIANT = 64 * 1024 * 1024
ALLOWANCE = 96 * 1024 * 1024
"""Bytes of memory that a line of up to 32 MiB may cost while it is held and parsed."""

INFO = {"name": "raw", "version": "1"}
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": INFO}
VALID: list[dict[str, Any]] = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "list_files", "arguments": {}}},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}},
]
ODD: list[Any] = [None, [], {}, -1, 10**40, "\ud800", {"a": [{}, {}]}, True, 1.5]


class Raw:
    """A peer on the socket that sends what it likes; what comes back is read all the while."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._heard = b""
        self._news = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def send(self, data: bytes) -> None:
        self._sock.sendall(data)

    def hears(self, words: bytes) -> bool:
        with self._news:
            return self._news.wait_for(lambda: words in self._heard, BOUND)

    def _listen(self) -> None:
        with contextlib.suppress(OSError):  # reset under us when the test hangs up
            while data := self._sock.recv(65536):
                with self._news:
                    self._heard = (self._heard + data)[-1_000_000:]
                    self._news.notify_all()


@contextmanager
def peer(home: Home, workspace: Path) -> Generator[Raw]:
    sock = connect(home.places, start=False)
    try:
        say_hello(sock, "mcp", workspace=str(workspace))
        yield Raw(sock)
    finally:
        sock.shutdown(socket.SHUT_RDWR)
        sock.close()


def answers(raw: Raw, id: str) -> bool:
    """Whether a well-formed request on this line still gets its answer."""
    raw.send(json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/list"}).encode() + b"\n")
    return raw.hears(b'"id":"' + id.encode())


def fuzzed(seed: int) -> Iterator[bytes]:
    """Lines that are no messages, or nearly are."""
    chance = random.Random(seed)
    for _ in range(LINES):
        line = bytearray(json.dumps(chance.choice(VALID)).encode())
        match chance.randrange(6):
            case 0:
                line[chance.randrange(len(line))] = chance.randrange(256)
            case 1:
                del line[chance.randrange(len(line)) :]
            case 2:
                line = bytearray(chance.randbytes(chance.randrange(1, 300)))
            case 3:
                line = bytearray(b"[" * chance.randrange(1, 5000))
            case 4:
                message = dict(chance.choice(VALID))
                message[chance.choice(["id", "method", "params", "jsonrpc", "result"])] = chance.choice(ODD)
                line = bytearray(json.dumps(message).encode())
            case _:
                line[chance.randrange(len(line)) : 0] = b'"\\ud83d\x00\xff'
        yield bytes(line).replace(b"\n", b" ") + b"\n"


async def test_a_thousand_malformed_lines_leave_the_daemon_alive(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    pid = shared_home.pid

    def storm() -> bool:
        with peer(shared_home, workspace) as raw:
            for line in fuzzed(seed=1):
                raw.send(line)
        with peer(shared_home, workspace) as raw:
            raw.send(b"".join(json.dumps(message).encode() + b"\n" for message in VALID[:2]))
            return answers(raw, "after-the-storm")

    assert await anyio.to_thread.run_sync(storm)
    assert shared_home.pid == pid
    assert "Traceback" not in shared_home.said()


async def test_a_line_that_is_no_message_is_answered_and_the_line_goes_on(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    def talk() -> list[bool]:
        with peer(shared_home, workspace) as raw:
            raw.send(b"".join(json.dumps(message).encode() + b"\n" for message in VALID[:2]))
            raw.send(b"hello?\n")
            return [raw.hears(b"-32700"), answers(raw, "next")]

    assert await anyio.to_thread.run_sync(talk) == [True, True]


async def test_a_giant_line_is_refused_and_costs_little_memory(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    before = (await shared_person.get("health"))["daemon"]["rss_bytes"]
    costs: list[int] = []

    def talk(watch: Any) -> list[bool]:
        with peer(shared_home, workspace) as raw:
            raw.send(b"".join(json.dumps(message).encode() + b"\n" for message in VALID[:2]))
            for part in range(64):
                raw.send(b"x" * (GIANT // 64))
                if part % 8 == 7:
                    watch()
            raw.send(b"\n")
            return [raw.hears(b"longer than 32 MiB"), answers(raw, "next")]

    async def look() -> None:
        costs.append((await shared_person.get("health"))["daemon"]["rss_bytes"] - before)

    assert await anyio.to_thread.run_sync(talk, lambda: anyio.from_thread.run(look)) == [True, True]
    assert max(costs) < ALLOWANCE
