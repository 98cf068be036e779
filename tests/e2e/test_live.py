"""The live socket: a follower is a cursor. It resumes where it was, and one that stops reading costs nothing."""

import json
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from tests.support.daemon_home import BOUND, Home, eventually, until
from tests.support.mcp_client import agent
from tests.support.person_client import Person
from tests.support.terminal_socket import open_websocket
from websockets.exceptions import ConnectionClosed, InvalidStatus

FLOOD = 200 * 1024 * 1024
UNREAD_COSTS = 32 * 1024 * 1024
"""Bytes of memory that a follower which does not read may cost."""


def entries(person: Person, after: int, last: int) -> list[dict[str, Any]]:
    """What a follower from `after` on is sent, up to the entry `last`."""
    found: list[dict[str, Any]] = []
    with open_websocket(person, f"live?after={after}") as follower:
        while not found or found[-1]["seq"] < last:
            found += json.loads(follower.recv(timeout=BOUND))["entries"]
    return found


async def test_a_follower_resumes_where_it_was_without_gap_or_repetition(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    async with agent(shared_home, workspace) as client:
        for _ in range(20):
            await client.use("list_files")
    last = (await shared_person.get("state"))["seq"]
    middle = last - 30

    whole = await anyio.to_thread.run_sync(entries, shared_person, 0, last)
    rest = await anyio.to_thread.run_sync(entries, shared_person, middle, last)
    read = (await shared_person.get("events", after=middle))["entries"]

    assert [entry["seq"] for entry in whole][:last] == list(range(1, last + 1))
    assert rest[: last - middle] == whole[middle:last]
    assert read[: last - middle] == rest[: last - middle]


async def test_a_follower_that_stops_reading_costs_nothing_and_hinders_nobody(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    (workspace / "notes.txt").write_text("line one\n")
    before = (await shared_person.get("health"))["daemon"]["rss_bytes"]
    async with agent(shared_home, workspace) as client:
        asked = client.ask(
            "execute_command", command=f"head -c {FLOOD} /dev/zero | tr '\\0' x; sleep 30", wait_seconds=50
        )
        call = await shared_person.allow("/dev/zero")
        (terminal,) = await eventually(lambda: shared_person.get("terminals", running=True))
        with deaf(shared_person, f"terminals/{terminal['id']}/attach"), deaf(shared_person, "live"):
            await shared_person.has_printed(call, more_than=FLOOD // 4)
            told = await client.use("read_file", path="notes.txt")
            cost = (await shared_person.get("health"))["daemon"]["rss_bytes"] - before
            assert (await shared_person.cancel(call))["won"]
            await asked.told()

    assert told.status == "done"
    assert cost < UNREAD_COSTS


@contextmanager
def deaf(person: Person, path: str) -> Generator[None]:
    """A follower that is let in and then never reads."""
    with socket.create_connection(("127.0.0.1", person.home.port), timeout=BOUND) as sock:
        sock.sendall(
            f"GET /api/{path}?after=0 HTTP/1.1\r\nHost: 127.0.0.1:{person.home.port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Protocol: handrail, bearer.{person.bearer}\r\n\r\n".encode()
        )
        assert sock.recv(12) == b"HTTP/1.1 101"
        yield


async def test_a_place_that_cannot_be_is_refused(shared_home: Home, shared_person: Person) -> None:
    def ask() -> None:
        with open_websocket(shared_person, f"live?after={1 << 70}") as follower:
            follower.recv(timeout=BOUND)

    with pytest.raises((ConnectionClosed, InvalidStatus)):
        await anyio.to_thread.run_sync(ask)
    assert await until(shared_home.is_ready) is None
