"""Clients that ask and never read, open sessions and never close them, or connect and say nothing."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
from tests.support.daemon_home import BOUND, Home, until
from tests.support.mcp_client import agent
from tests.support.person_client import Person

from handrail.door.connect import connect, say_hello
from handrail.server.mcp.streamable_http import SESSIONS_MAX

MEGABYTE = 1024 * 1024
ALLOWANCE = 64 * MEGABYTE
"""What a flood may add to the daemon's memory."""
REQUESTS = 20_000
STALLED = 2.0
"""Seconds without a byte taken after which the daemon has stopped reading."""
INFO = {"name": "raw", "version": "1"}
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": INFO}


def request(id: int, method: str, params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0]) * 1024


def count_descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@contextlib.contextmanager
def silent_client(home: Home) -> Generator[socket.socket]:
    """A client on the daemon's socket that has shaken hands and reads nothing from here on."""
    with contextlib.closing(connect(home.places)) as sock:
        say_hello(sock, "mcp")
        sock.sendall(json.dumps(request(0, "initialize", INITIALIZE)).encode() + b"\n")
        sock.recv(65536)
        yield sock


def send_until_stalled(sock: socket.socket, tool: str) -> int:
    """Send calls of a tool until the daemon takes no more; how many were taken."""
    sock.settimeout(STALLED)
    for number in range(1, REQUESTS):
        line = json.dumps(request(number, "tools/call", {"name": tool, "arguments": {}})).encode() + b"\n"
        try:
            sock.sendall(line)
        except TimeoutError:
            return number
    return REQUESTS


async def test_a_client_that_never_reads_is_not_read_either_and_leaves_no_memory_behind(
    home: Home, person: Person, workspace: Path
) -> None:
    async with agent(home, workspace) as other:
        for _ in range(50):
            await other.use("list_calls")
        before = resident(home.pid)
        with silent_client(home) as sock:
            taken = send_until_stalled(sock, "list_calls")
            full = resident(home.pid)
            began = time.monotonic()
            await other.use("list_calls")
            took = time.monotonic() - began
        await until(lambda: resident(home.pid) < before * 1.1, within=10)

    print(f"{taken} requests taken, {(full - before) / MEGABYTE:.0f} MB, another client waited {took:.3f} s")
    assert taken < REQUESTS
    assert full - before < ALLOWANCE
    assert took < BOUND


FLOODERS = 40


async def test_many_clients_that_never_read_refuse_nobody_else(
    home: Home, person: Person, workspace: Path
) -> None:
    """Together they ask for more than the gate lets be open, and another client is served as ever."""
    request_line = json.dumps(request(1, "tools/call", {"name": "list_calls", "arguments": {}})).encode()
    lines = b"".join(request_line.replace(b'"id": 1', b'"id": %d' % n) + b"\n" for n in range(1, 1000))
    async with agent(home, workspace) as other:
        for _ in range(200):
            await other.use("list_calls")
        before, descriptors = resident(home.pid), count_descriptors(home.pid)
        with contextlib.ExitStack() as held:
            for _ in range(FLOODERS):
                sock = held.enter_context(silent_client(home))
                sock.setblocking(False)
                sock.send(lines)
            told = [await other.use("list_calls") for _ in range(50)]
            full = resident(home.pid)
        await until(lambda: count_descriptors(home.pid) <= descriptors + 1, within=10)
        await until(lambda: resident(home.pid) < before * 1.1, within=10)

    print(f"{FLOODERS} clients, {(full - before) / MEGABYTE:.0f} MB")
    assert {each.status for each in told} == {"done"}
    assert full - before < ALLOWANCE


async def test_requests_over_http_behind_one_another_are_bounded(
    home: Home, person: Person, workspace: Path
) -> None:
    credential = await person.credential(str(workspace), "greedy")
    with mcp_client(credential) as http:
        session = open_session(http)
        for _ in range(100):
            list_tools(http, session)
    body = json.dumps(request(1, "tools/call", {"name": "list_calls", "arguments": {}})).encode()
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{home.port}\r\nMcp-Session-Id: {session}\r\n"
    head += f"Authorization: Bearer {credential['bearer']}\r\nContent-Type: application/json\r\n"
    head += f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    before, taken = resident(home.pid), 0
    with socket.create_connection(("127.0.0.1", home.port), timeout=STALLED) as sock:
        with contextlib.suppress(TimeoutError):
            for _ in range(REQUESTS):
                sock.sendall(head.encode() + body)
                taken += 1
        full = resident(home.pid)
    await until(lambda: resident(home.pid) < before * 1.1, within=10)

    print(f"{taken} requests taken, {(full - before) / MEGABYTE:.0f} MB")
    assert taken < REQUESTS
    assert full - before < ALLOWANCE


def mcp_client(credential: dict[str, Any]) -> httpx.Client:
    headers = {
        "Authorization": f"Bearer {credential['bearer']}",
        "Accept": "application/json, text/event-stream",
    }
    base = credential["url"].removesuffix("/mcp")
    return httpx.Client(base_url=base, headers=headers, timeout=BOUND, verify=False)


def open_session(http: httpx.Client) -> str:
    answer = http.post("/mcp", json=request(0, "initialize", INITIALIZE))
    assert answer.status_code == 200, answer.text
    return answer.headers["mcp-session-id"]


def list_tools(http: httpx.Client, session: str) -> int:
    return http.post(
        "/mcp", json=request(1, "tools/list", {}), headers={"Mcp-Session-Id": session}
    ).status_code


async def test_sessions_that_are_never_closed_are_bounded_for_each_credential(
    home: Home, person: Person, workspace: Path
) -> None:
    greedy = await person.credential(str(workspace), "greedy")
    modest = await person.credential(str(workspace), "modest")
    with mcp_client(greedy) as many, mcp_client(modest) as one:
        kept = open_session(one)
        first = open_session(many)
        used = open_session(many)
        for _ in range(SESSIONS_MAX):
            open_session(many)
            assert list_tools(many, used) == 200
        before = resident(home.pid)
        last = [open_session(many) for _ in range(3 * SESSIONS_MAX)][-1]
        assert list_tools(many, first) == 404, "the one that was idle longest made room"
        assert list_tools(many, last) == 200
        assert list_tools(one, kept) == 200, "another credential keeps its own"
        assert list_tools(one, last) == 404, "and cannot use a session that is not its own"
    assert resident(home.pid) - before < 16 * MEGABYTE


@contextlib.contextmanager
def daemon_with_few_descriptors(home: Home, limit: int) -> Generator[None]:
    """Replace the daemon of this home by one that may have this many files open."""
    home.end()
    command = [sys.executable, "-m", "handrail", "up", "--foreground", "--no-open"]
    limited = ["bash", "-c", f'ulimit -n {limit}; exec "$@"', "bash", *command]
    with subprocess.Popen(
        limited, env=home.environment, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ) as daemon:
        try:
            home.wait_ready()
            yield
        finally:
            daemon.terminate()


def processor_seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def test_with_few_descriptors_silent_connections_keep_no_one_out_and_are_dropped(home: Home) -> None:
    limit = 64
    with daemon_with_few_descriptors(home, limit), contextlib.ExitStack() as held:
        pid, address = home.pid, httpx.URL(home.url)
        began, spent = time.monotonic(), processor_seconds(pid)
        port = (address.host, address.port or 80)
        halves = [held.enter_context(socket.create_connection(port, timeout=BOUND)) for _ in range(limit)]
        for half in halves:
            with contextlib.suppress(OSError):  # the oldest were dropped to make room
                half.sendall(b"GET /api/health HTTP/1.1\r\nHo")
        for _ in range(limit // 2):
            silent = held.enter_context(socket.socket(socket.AF_UNIX))
            silent.connect(str(home.places.daemon_socket))
        with httpx.Client(timeout=BOUND, verify=False) as http:
            healths = [http.get(f"{home.url}/api/health").status_code for _ in range(3)]
        assert home.pid == pid, "the socket answers as well"
        with contextlib.suppress(ConnectionResetError):
            assert halves[-1].recv(1) == b"", "the head of this request never came"
        took, spent = time.monotonic() - began, processor_seconds(pid) - spent

    assert healths == [200, 200, 200]
    assert spent < took / 5, "it does not spin"
