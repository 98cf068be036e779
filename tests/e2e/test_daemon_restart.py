"""A daemon that is killed comes back by itself: for HTTP clients and the page, which can start nothing."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.daemon_home import BOUND, Home, eventually, running_daemon, until, watch_exit
from tests.support.mcp_client import agent
from tests.support.person_client import Person

CONFIG = "[command]\nstop_grace = 0.3\n[daemon]\nrestart = true\n"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}


@pytest.fixture
def home() -> Iterator[Home]:
    with running_daemon(CONFIG) as home:
        yield home


async def health(person: Person) -> Any:
    return await person.get("health")


async def post(url: str, bearer: str, message: object, session: str | None = None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {bearer}", "Accept": "application/json, text/event-stream"}
    if session is not None:
        headers["Mcp-Session-Id"] = session
    async with httpx.AsyncClient(timeout=BOUND, verify=False) as http:
        return await http.post(f"{url}/mcp", json=message, headers=headers)


def request_raw(port: int) -> bytes:
    """One HTTP request on a connection of its own; all that comes back."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=BOUND)) as client:
        client.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: client.recv(65_536), b""))


async def test_a_killed_daemon_comes_back_for_a_client_over_http_which_begins_a_new_session(
    home: Home, person: Person, workspace: Path
) -> None:
    url, bearer = home.url, (await person.credential(str(workspace)))["bearer"]
    session = (await post(url, bearer, INITIALIZE)).raise_for_status().headers["Mcp-Session-Id"]
    port = int(url.rpartition(":")[2])

    killed = home.kill()
    answer = request_raw(port)
    await until(home.is_ready)
    known = await health(person)
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    refused = await post(url, bearer, listing, session)
    again = await post(url, bearer, INITIALIZE)

    assert answer.split()[1] in (b"200", b"503"), "the new daemon's answer, or a sentence"
    assert (home.pid != killed, home.url) == (True, url)
    assert (known["restarts"], known["restarted_at"] > 0) == (1, True)
    assert (refused.status_code, again.status_code) == (404, 200)
    assert json.loads(refused.text)["error"]["message"] == "Session not found"


async def test_a_daemon_that_is_told_to_stop_is_not_restarted(home: Home, person: Person) -> None:
    pid = home.pid
    with watch_exit(pid) as has_ended:
        await person.post("down", keep_terminals=True)
        assert has_ended(BOUND)
    home.up()  # fails if another daemon holds the lock
    known = await health(person)

    assert known["keeper"], "the same keeper, which knows that the first daemon ended on purpose"
    assert (known["restarts"], known["restarted_at"]) == (0, None)


async def test_a_daemon_that_was_killed_twice_says_so_and_keeps_its_terminals(
    home: Home, person: Person, workspace: Path
) -> None:
    async with agent(home, workspace) as client:
        opened = client.ask("create_tracked_terminal", name="shell", shellPath="/bin/cat")
        await person.allow("shell")
        await opened.told()
        for number in (1, 2):
            home.kill()

            async def restarted(count: int = number) -> bool:
                return home.is_ready() and (await health(person))["restarts"] == count

            await eventually(restarted)
        told = await client.use("list_tracked_terminals")

    assert "shell" in told.text
    os.kill(home.pid, 0)
    assert home.signal(home.pid, signal.SIGTERM) < BOUND
