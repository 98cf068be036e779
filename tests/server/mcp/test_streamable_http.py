"""The sessions of each credential: a bound, and the idle one that was used least recently makes room."""

import json
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.lowlevel
import httpx
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tests.support.daemon_home import BOUND
from tests.support.gate_world import GateWorld, gate_world
from tests.support.hook_world import build_hooks
from tests.support.keeper_terminals import ENV, running_keeper, until

from handrail.config import McpServerSection
from handrail.server.access import Callers, Client
from handrail.server.mcp import streamable_http
from handrail.server.mcp.mcp_server import McpServers
from handrail.server.mcp.streamable_http import (
    BUSY_EASY,
    OPEN_EASY,
    TURN_SECONDS,
    Sessions,
    StreamableHttp,
)
from handrail.upstream.secret_store import SecretStore
from handrail.upstream.servers import Servers

HEADERS = {"Accept": "application/json, text/event-stream"}
CLIENT = {"name": "t", "version": "1"}
RELAYED = Path(__file__).parents[2] / "support" / "mcp_servers" / "relayed.py"
MODERN = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "relayed__facts"}
MODERN_META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def message(id: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


@pytest.mark.anyio
async def test_an_idle_session_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamable_http, "IDLE_SECONDS", 0.2)
    async with (
        gate_world(tmp_path) as here,
        serve(here, McpServers(here.gate, build_hooks(here.gate), 1)) as http,
    ):
        hello = message(0, "initialize", clientInfo=CLIENT, protocolVersion="2025-06-18", capabilities={})
        session = {"Mcp-Session-Id": (await http.post("/mcp", json=hello)).headers["mcp-session-id"]}
        used = await http.post("/mcp", json=message(1, "ping"), headers=session)
        assert used.status_code == 200
        with anyio.fail_after(20):
            while used.status_code == 200:
                await anyio.sleep(0.5)
                used = await http.post("/mcp", json=message(1, "ping"), headers=session)
        assert used.status_code == 404


@pytest.mark.anyio
async def test_an_mcp_server_ends_when_its_client_was_idle_and_starts_again_when_it_comes_back(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamable_http, "IDLE_SECONDS", 1.0)
    async with running_keeper(home) as keeper, gate_world(tmp_path, default="allow") as here:
        command = (sys.executable, "-I", str(RELAYED), str(tmp_path))
        upstream = Servers(
            [McpServerSection(name="relayed", command=command, cwd=str(tmp_path))],
            keeper.terminals,
            lambda _passed: ENV,
            here.journal,
            cast("dict[str, Any]", here.gate.toolbox),
            lambda _caller, _path: None,
            SecretStore(tmp_path / "secrets.json"),
            is_held=lambda: False,
            is_open=lambda call: call in here.gate.open,
        )
        await here.group.start(upstream.run, ())
        mcp = McpServers(here.gate, build_hooks(here.gate), 10, upstream)
        async with serve(here, mcp) as http:
            hello = message(0, "initialize", clientInfo=CLIENT, protocolVersion="2025-06-18", capabilities={})
            session = {"Mcp-Session-Id": (await http.post("/mcp", json=hello)).headers["mcp-session-id"]}
            await http.post("/mcp", json=message(1, "tools/list"), headers=session)
            of_session = await use_server(http, session, {})
            first = await use_server(http, MODERN, MODERN_META)
            assert first != of_session
            await until(lambda: not is_alive(first) and not is_alive(of_session))
            again = await use_server(http, MODERN, MODERN_META)
            assert again not in (first, of_session)
            assert is_alive(again)
        await upstream.leave()


async def use_server(http: httpx.AsyncClient, headers: dict[str, str], meta: dict[str, Any]) -> int:
    """Call the tool of a server that tells its process id."""
    call = message(3, "tools/call", name="relayed__facts", arguments={}, _meta=meta)
    reply = await http.post("/mcp", json=call, headers=headers)
    found = re.search(r'"pid\\*": (\d+)', reply.text)
    assert found is not None, reply.text
    return int(found[1])


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@asynccontextmanager
async def serve(here: GateWorld, servers: McpServers) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of these servers over HTTP, with one credential."""
    async with connect(await start_app(here, servers)) as http:
        yield http


async def start_app(here: GateWorld, servers: McpServers) -> ASGIApp:
    """The ASGI application of these servers, with one credential."""
    mcp = StreamableHttp(servers, Callers(running=lambda _thread: None))
    await here.group.start(mcp.run)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["handrail.client"] = Client(credential="k", name="idler", workspace="/w")
        await mcp(scope, receive, send)

    return app


def connect(app: ASGIApp) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://t", headers=HEADERS)


def opened(sessions: Sessions, credential: str, *names: str) -> list[str]:
    """Open sessions; the ones that had to make room."""
    ended: list[str] = []
    for name in names:
        with sessions.opening(credential):
            sessions.open(credential, name)
        ended += sessions.take_excess(credential)
    return ended


def test_the_least_recently_used_session_makes_room() -> None:
    sessions = Sessions(limit=3)
    assert opened(sessions, "k", "a", "b", "c") == []
    with sessions.using("k", "a"):
        pass
    assert opened(sessions, "k", "d", "e") == ["b", "c"]
    assert [name for name in "abcde" if sessions.is_open("k", name)] == ["a", "d", "e"]


def test_a_session_with_a_request_in_progress_is_kept() -> None:
    sessions = Sessions(limit=2)
    opened(sessions, "k", "a", "b")
    with sessions.using("k", "a"):
        assert opened(sessions, "k", "c", "d") == ["b", "c"]
        assert sessions.is_open("k", "a")


def test_no_session_opens_while_all_are_busy() -> None:
    sessions = Sessions(limit=2)
    opened(sessions, "k", "a", "b")
    with sessions.using("k", "a"), sessions.using("k", "b"):
        assert not sessions.can_open("k")
        assert sessions.can_open("other")
    assert sessions.can_open("k")


def test_requests_that_open_sessions_at_the_same_time_count() -> None:
    sessions = Sessions(limit=2)
    with sessions.opening("k"), sessions.opening("k"):
        assert not sessions.can_open("k")
    assert sessions.can_open("k")


@pytest.mark.anyio
async def test_a_credential_that_opens_many_sessions_opens_the_next_ones_slowly_and_others_do_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streamable_http, "OPEN_SECONDS", 0.2)
    sessions = Sessions()
    ready: list[str] = []

    async def take_turn(credential: str) -> None:
        await sessions.take_turn_to_open(credential)
        ready.append(credential)

    with anyio.fail_after(0.2):
        for _ in range(OPEN_EASY):
            await take_turn("k")
    opened(sessions, "k", "a")
    sessions.close("k", "a")  # a closed session does not let the next one open sooner
    ready.clear()
    began = anyio.current_time()
    async with anyio.create_task_group() as group:
        for credential in ("k", "k", "k", "other"):
            group.start_soon(take_turn, credential)
    assert ready == ["other", "k", "k", "k"]
    assert anyio.current_time() - began >= 2 * 0.2


@pytest.mark.anyio
async def test_a_session_that_sends_ahead_waits_and_one_that_awaits_each_answer_does_not() -> None:
    sessions = Sessions()
    opened(sessions, "k", "ahead", "patient")
    ready: list[str] = []

    async def take_turn(session: str) -> None:
        with sessions.using("k", session):
            await sessions.take_turn("k", session)
            ready.append(session)

    with ExitStack() as busy:
        for _ in range(BUSY_EASY):
            busy.enter_context(sessions.using("k", "ahead"))
        began = anyio.current_time()
        async with anyio.create_task_group() as group:
            for session in ("ahead", "ahead", "patient"):
                group.start_soon(take_turn, session)
    assert ready == ["patient", "ahead", "ahead"]
    assert anyio.current_time() - began >= 2 * TURN_SECONDS


@pytest.mark.anyio
async def test_a_connection_that_sends_on_does_not_overtake_the_waiting_requests_of_its_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only requests that had begun were counted, so the session looked idle between two of them."""
    monkeypatch.setattr(streamable_http, "TURN_SECONDS", 0.05)
    sessions = Sessions()
    opened(sessions, "k", "ahead")
    begun = 0

    async def ask() -> None:
        nonlocal begun
        with sessions.using("k", "ahead"):
            await sessions.take_turn("k", "ahead")
            begun += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        for _ in range(2 * BUSY_EASY):
            group.start_soon(ask)
        while begun < BUSY_EASY:
            await anyio.lowlevel.checkpoint()
        await ask()
        assert begun == 2 * BUSY_EASY + 1


@pytest.mark.anyio
async def test_streams_that_clients_keep_open_are_no_requests_in_progress() -> None:
    """Each client of the SDK keeps one open for notifications. It made its own requests wait."""
    sessions = Sessions()
    opened(sessions, "k", *map(str, range(2 * BUSY_EASY)))
    with ExitStack() as streams:
        for number in range(2 * BUSY_EASY):
            streams.enter_context(sessions.using("k", str(number), is_request=False))
        began = anyio.current_time()
        for number in range(2 * BUSY_EASY):
            with sessions.using("k", str(number)):
                assert await sessions.take_turn("k", str(number))
        assert anyio.current_time() - began < TURN_SECONDS
        assert not sessions.take_excess("k")


@pytest.mark.anyio
async def test_a_request_that_follows_the_last_byte_of_an_answer_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK still cleans up after the first request. With other requests in progress, the second was made to wait."""
    monkeypatch.setattr(streamable_http, "BUSY_EASY", 1)
    monkeypatch.setattr(streamable_http, "TURN_SECONDS", 2 * BOUND)
    async with gate_world(tmp_path) as here:
        app = await start_app(here, McpServers(here.gate, build_hooks(here.gate), 1))
        hello = message(0, "initialize", clientInfo=CLIENT, protocolVersion="2025-06-18", capabilities={})
        async with connect(app) as http:
            session = (await http.post("/mcp", json=hello)).headers["mcp-session-id"]
        names = {**HEADERS, "Content-Type": "application/json", "Mcp-Session-Id": session}
        headers = [(name.lower().encode(), value.encode()) for name, value in names.items()]
        answered: list[int] = []

        async def ask(number: int) -> None:
            async def receive() -> Message:
                if body:
                    return {"type": "http.request", "body": body.pop(), "more_body": False}
                await anyio.sleep_forever()
                raise AssertionError

            async def send(part: Message) -> None:
                if part["type"] == "http.response.body" and not part.get("more_body"):
                    answered.append(number)
                    if number < 3:
                        group.start_soon(ask, number + 1)

            body = [json.dumps(message(number, "ping")).encode()]
            await app(
                {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": headers},
                receive,
                send,
            )

        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as group:
                await ask(1)
        assert answered == [1, 2, 3]


@pytest.mark.anyio
async def test_a_session_that_ends_while_a_request_of_it_waits_is_not_served() -> None:
    sessions = Sessions()
    opened(sessions, "k", "ahead")
    served: list[bool] = []

    async def take_turn() -> None:
        with sessions.using("k", "ahead"):
            served.append(await sessions.take_turn("k", "ahead"))

    with ExitStack() as busy:
        for _ in range(BUSY_EASY):
            busy.enter_context(sessions.using("k", "ahead"))
        async with anyio.create_task_group() as group:
            group.start_soon(take_turn)
            await anyio.lowlevel.checkpoint()
            sessions.close("k", "ahead")
    assert served == [False]


def test_a_session_belongs_to_the_credential_that_opened_it() -> None:
    sessions = Sessions()
    opened(sessions, "k", "a")
    assert not sessions.is_open("other", "a")
    sessions.close("other", "a")
    assert sessions.is_open("k", "a")
    sessions.close("k", "a")
    assert not sessions.is_open("k", "a")
