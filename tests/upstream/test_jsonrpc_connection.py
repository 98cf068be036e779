"""The JSON-RPC connection to a server: ids, cancellation, and answers that nobody waits for."""

import json
import sys
from collections.abc import Mapping
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import SocketAttribute, SocketStream

from handrail.store.values import Json
from handrail.terminal.jsonrpc_messages import encode_message
from handrail.upstream import jsonrpc_connection
from handrail.upstream.http_transport import HttpTransport
from handrail.upstream.jsonrpc_connection import (
    FLOOD_BYTES,
    MESSAGE_SHOWN,
    ConnectionLost,
    JsonRpcConnection,
    RpcError,
)

BOUND = 20.0


class Pipe:
    """A line in memory: what the connection sent, and what a server says."""

    def __init__(self) -> None:
        self.why: str | None = None
        self.sent = list[dict[str, Any]]()
        self._to, self._from = anyio.create_memory_object_stream[bytes](100)

    def send(self, line: bytes) -> None:
        self.sent.append(json.loads(line))

    async def receive(self) -> bytes | None:
        try:
            return await self._from.receive()
        except anyio.EndOfStream:
            self._from.close()
            self.why = self.why or "It is gone."
            return None

    def give_up(self, why: str) -> None:
        self.why = self.why or why
        self._to.close()

    def say(self, **message: Any) -> bytes:
        line = encode_message({"jsonrpc": "2.0", **message})
        self._to.send_nowait(line)
        return line


class Nobody:
    async def answer(self, method: str, params: Json) -> Json:
        raise RpcError(-32601, "Method not found")

    async def hear(self, method: str, params: Json) -> None:
        return


@pytest.mark.parametrize("listens", [False, True])
async def test_a_request_that_no_server_took_is_told_from_one_that_was_lost(listens: bool) -> None:
    """A server that is gone, and one that closes each connection after it has read something."""

    async def drop(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()

    async def authorize(_challenge: str, _refused: str) -> Mapping[str, str]:
        return {}

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)
    transport = HttpTransport(
        "far", f"http://127.0.0.1:{port}/mcp", authorize, httpx2.AsyncClient(trust_env=False)
    )
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            if listens:
                group.start_soon(listener.serve, drop)
            else:
                await listener.aclose()
            group.start_soon(transport.run)
            connection = JsonRpcConnection("far", transport, Nobody(), group)
            group.start_soon(connection.run)
            with pytest.raises(ConnectionLost) as lost:
                await connection.request("tools/call", {"name": "x", "arguments": {}})
            assert lost.value.is_sent == listens
            assert lost.value.effect == (
                "What the call did before is unknown." if listens else "Nothing was sent to it."
            )
            await transport.stop()
            group.cancel_scope.cancel()
    await listener.aclose()
    transport.close()


async def test_a_message_is_not_held_while_the_next_is_awaited() -> None:
    pipe, held = Pipe(), -1
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            group.start_soon(JsonRpcConnection("s", pipe, Nobody(), group).run)
            line = pipe.say(method="notifications/message", params={"data": "long"})
            await anyio.wait_all_tasks_blocked()
            held = sys.getrefcount(line) - 2  # ours, and that of the question
            pipe.give_up("over")

    assert held == 0


async def test_a_cancelled_wait_cancels_the_request_by_the_servers_id_and_its_late_answer_is_dropped() -> (
    None
):
    pipe = Pipe()
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            connection = JsonRpcConnection("s", pipe, Nobody(), group)
            group.start_soon(connection.run)
            with anyio.move_on_after(0.01):
                await connection.request("tools/call", {"_meta": {"progressToken": "theirs"}})
            pipe.say(id=1, result={"late": True})
            pipe.say(id="7", method="nonsense")
            while len(pipe.sent) < 3:
                await anyio.lowlevel.checkpoint()
            pipe.give_up("It is gone.")
            await anyio.lowlevel.checkpoint()
            assert connection.garbage == 1

    assert [each["method"] for each in pipe.sent[:2]] == ["tools/call", "notifications/cancelled"]
    assert "_meta" not in pipe.sent[0]["params"]
    assert pipe.sent[1]["params"]["requestId"] == pipe.sent[0]["id"] == 1
    assert pipe.sent[2]["error"]["code"] == -32601


async def test_a_server_that_ends_fails_its_requests_with_the_reason() -> None:
    pipe = Pipe()
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            connection = JsonRpcConnection("s", pipe, Nobody(), group)
            group.start_soon(connection.run)
            group.start_soon(anyio.sleep, 0)
            pipe.say(method="notifications/message", params={})
            pipe.give_up("s ended by itself with exit code 3.")
            with pytest.raises(ConnectionLost, match="exit code 3"):
                await connection.request("tools/list", {})


@pytest.mark.parametrize("asked", [False, True])
async def test_a_server_that_sends_huge_messages_that_no_client_asked_for_is_ended(
    asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them takes the event loop as long as a thousand small ones."""
    monkeypatch.setattr(jsonrpc_connection, "FLOOD_MAX", 100)
    monkeypatch.setattr(jsonrpc_connection, "FLOOD_RATE", 1.0)
    ended: str | None = None
    pipe, huge = Pipe(), "x" * (FLOOD_BYTES * 10)
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            connection = JsonRpcConnection("s", pipe, Nobody(), group)
            group.start_soon(connection.run)
            for _ in range(20):
                if asked:
                    group.start_soon(ask, connection)
                    await anyio.wait_all_tasks_blocked()
                    pipe.say(id=pipe.sent[-1]["id"], result={"text": huge})
                elif pipe.why is None:
                    pipe.say(method="notifications/message", params={"text": huge})
                await anyio.wait_all_tasks_blocked()
            ended = pipe.why
            pipe.give_up("over")

    assert (ended is None) == asked
    assert asked or "too many messages" in str(ended)


async def ask(connection: JsonRpcConnection) -> None:
    await connection.request("tools/call", {}, origin="a client's request")


def test_the_message_of_an_error_is_recorded_in_part() -> None:
    error = RpcError(-32603, "x" * 1_000_000)
    assert len(error.excerpt) < MESSAGE_SHOWN + 100
    assert "998,000 more characters" in error.excerpt
    assert error.wire["message"] == error.message, "the client gets all of it"
    assert RpcError(-32603, "short").excerpt == "short"
