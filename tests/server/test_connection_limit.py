"""HTTP connections: how many there may be, and what becomes of requests that never arrive whole."""

import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from handrail.server import connection_limit, web_server
from handrail.server.certificates import Certificates
from handrail.server.connection_limit import ConnectionBudget
from handrail.server.web_server import WebServer

BOUND = 20
REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
MUCH = 16 << 20
"""Bytes: far more than the sockets of a connection hold."""
BODY = b"POST /body HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\nbegun"


@pytest.fixture
def anyio_backend() -> str:
    """uvicorn runs on asyncio alone."""
    return "asyncio"


pytestmark = pytest.mark.anyio


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that reads the body of a POST, waits at /wait, listens for the client's end at /listen, and answers."""
    if scope["path"] == "/wait":
        await anyio.sleep(BOUND)
    if scope["path"] == "/listen":
        async with anyio.create_task_group() as group:
            group.start_soon(listen, receive)
            await anyio.sleep(0.001)
            await PlainTextResponse("x" * 4096)(scope, receive, send)
            group.cancel_scope.cancel()
        return
    if scope["method"] == "POST":
        while (await receive()).get("more_body"):
            pass
    await PlainTextResponse("hello")(scope, receive, send)


async def listen(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Clients:
    """Connections to a server."""

    def __init__(self, port: int, stack: AsyncExitStack) -> None:
        self._port = port
        self._stack = stack

    async def ask(self, data: bytes) -> SocketStream:
        """Connect and send this."""
        stream = await anyio.connect_tcp("127.0.0.1", self._port)
        await self._stack.enter_async_context(stream)
        await stream.send(data)
        return stream


@asynccontextmanager
async def serving(most: int) -> AsyncGenerator[Clients]:
    """A server with at most so many connections, and clients of it."""
    server = WebServer(answer, ConnectionBudget(http=most, local=1, backlog=4))
    with socket.create_server(("127.0.0.1", 0)) as listener, anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [listener])
            async with AsyncExitStack() as stack:
                yield Clients(listener.getsockname()[1], stack)
            group.cancel_scope.cancel()  # as the daemon ends it


async def hear(stream: SocketStream, answers: int) -> None:
    """Wait for so many answers, and no more."""
    heard = b""
    while heard.count(b"hello") < answers:
        heard += await stream.receive()
    assert heard.count(b"hello") == answers


async def is_closed(stream: SocketStream) -> bool:
    """Wait until the server closes the connection; False if it answers instead."""
    try:
        return not await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return True


@pytest.mark.parametrize("data", [b"", b"GET / HTTP/1.1\r\nHo", REQUEST[:-2]])
async def test_a_request_whose_head_does_not_arrive_is_dropped(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_limit, "HEAD_SECONDS", 0.1)
    async with serving(4) as clients:
        assert await is_closed(await clients.ask(data))


async def test_the_next_request_of_a_connection_is_dropped_likewise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limit, "HEAD_SECONDS", 0.1)
    async with serving(4) as clients:
        stream = await clients.ask(REQUEST)
        assert b"hello" in await stream.receive()
        await stream.send(b"GET / HT")
        assert await is_closed(stream)


async def test_a_body_that_stops_arriving_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limit, "HEAD_SECONDS", 0.05)
    monkeypatch.setattr(connection_limit, "BODY_SECONDS", 0.1)
    async with serving(4) as clients:
        assert await is_closed(await clients.ask(BODY))


async def test_a_request_that_is_being_served_is_not_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limit, "HEAD_SECONDS", 0.4)
    monkeypatch.setattr(connection_limit, "BODY_SECONDS", 0.4)
    async with serving(4) as clients:
        stream = await clients.ask(REQUEST.replace(b"/", b"/wait", 1))
        with anyio.move_on_after(1) as waited:
            await stream.receive()
        assert waited.cancelled_caught


async def test_a_silent_connection_makes_room_for_a_new_one() -> None:
    async with serving(3) as clients:
        silent = [await clients.ask(b"") for _ in range(3)]
        stream = await clients.ask(REQUEST)
        assert b"hello" in await stream.receive()
        assert await is_closed(silent[0])


async def test_when_all_connections_are_in_use_a_new_one_is_refused_with_a_sentence() -> None:
    async with serving(2) as clients:
        for _ in range(2):
            await clients.ask(REQUEST.replace(b"/", b"/wait", 1))
        refused = await (await clients.ask(REQUEST)).receive()
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"Try again" in refused


async def test_a_client_that_sends_on_and_never_reads_is_not_read_either() -> None:
    request = REQUEST.replace(b"GET /", b"GET /listen")
    async with serving(most=2) as clients, anyio.create_task_group() as group:
        stream = await clients.ask(request)
        sent = anyio.Event()

        async def send_more() -> None:
            await stream.send(request * (MUCH // len(request)))
            sent.set()

        group.start_soon(send_more)
        with anyio.move_on_after(3):
            await sent.wait()
        assert not sent.is_set(), "the server has buffered all of it"
        group.cancel_scope.cancel()


async def test_requests_that_arrive_together_are_all_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limit, "TURN_SECONDS", 0.001)
    async with serving(most=2) as clients:
        body = b"POST /body HTTP/1.1\r\nHost: here\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000
        stream = await clients.ask((REQUEST * 50 + body) * 4 + REQUEST[:-10])
        await hear(stream, 204)
        await stream.send(REQUEST[-10:])
        await hear(stream, 1)


async def test_requests_that_are_sent_ahead_wait_for_each_other_and_other_clients_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Clients that never read their answers took two thirds of the event loop."""
    monkeypatch.setattr(connection_limit, "TURN_SECONDS", 1.0)
    async with serving(most=10) as clients:
        ahead = [await clients.ask(REQUEST * 3) for _ in range(3)]
        for stream in ahead:
            await hear(stream, 1)
        patient = await clients.ask(REQUEST)
        began = anyio.current_time()
        for _ in range(20):
            await hear(patient, 1)
            await patient.send(REQUEST)
        assert anyio.current_time() - began < 1.0, "a client that waits for its answers is not delayed"
        monkeypatch.setattr(connection_limit, "TURN_SECONDS", 0.001)
        for stream in ahead:
            await hear(stream, 2)


async def test_connections_that_leave_do_not_hasten_the_turns_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_limit, "TURN_SECONDS", 0.2)
    async with serving(most=10) as clients:
        for _ in range(5):
            leaving = await clients.ask(REQUEST * 3)
            await hear(leaving, 1)
            await leaving.aclose()
        stream = await clients.ask(REQUEST * 6)
        began = anyio.current_time()
        await hear(stream, 6)
        assert anyio.current_time() - began >= 0.8


def test_the_budget_follows_the_limit_of_open_files() -> None:
    few, least = measure_budgets(256, 16)
    assert 40 < few.http + few.local + few.backlog < 256
    assert (least.http, least.local) == (3, 3)


def measure_budgets(*limits: int) -> list[ConnectionBudget]:
    """The budget under each limit, of a new process: it has only the standard streams open."""
    command = [sys.executable, "-c", MEASURE_BUDGETS, *map(str, limits)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    return [ConnectionBudget(*map(int, line.split())) for line in done.stdout.splitlines()]


MEASURE_BUDGETS = """
import resource, sys
from handrail.server.connection_limit import ConnectionBudget

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
for limit in map(int, sys.argv[1:]):
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    budget = ConnectionBudget.of_process()
    print(budget.http, budget.local, budget.backlog)
"""


async def test_tls_connections_that_do_not_shake_hands_are_bounded_and_keep_nobody_out(
    tmp_path: Path,
) -> None:
    """Anybody in the network can open them."""
    certificates = Certificates(tmp_path / "tls")
    tls = certificates.build_context("127.0.0.1")
    server, answered = WebServer(answer, ConnectionBudget(http=4, local=1, backlog=4), tls), b""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener, anyio.fail_after(BOUND):
        port = listener.getsockname()[1]
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [listener])
            async with AsyncExitStack() as stack:
                silent = Clients(port, stack)
                streams = [await silent.ask(b"") for _ in range(100)]
                for stream in streams[: -web_server.HANDSHAKES_MAX]:
                    assert await hears_nothing(stream)
                trusting = ssl.create_default_context(cafile=str(certificates.ca_file))
                client = await anyio.connect_tcp(
                    "127.0.0.1",
                    port,
                    ssl_context=trusting,
                    tls_hostname="127.0.0.1",
                    tls_standard_compatible=False,
                )
                await stack.enter_async_context(client)
                await client.send(REQUEST)
                answered = await client.receive()
            server.stop()

    assert answered.startswith(b"HTTP/1.1 200")


async def hears_nothing(stream: SocketStream) -> bool:
    """Whether the other end has closed this connection."""
    try:
        return await stream.receive() == b""
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return True
