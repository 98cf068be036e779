"""MCP with one door, as the door sees it: lines of JSON, and notes."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from anyio.abc import SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from tests.support.gate_world import gate_world
from tests.support.hook_world import build_hooks
from tests.support.sample_tools import Patient
from tests.support.socket_pair import BOUND, connected_pair

from handrail.server.access import Access, Callers
from handrail.server.mcp import _client_timeouts as client_timeouts
from handrail.server.mcp import door_connection
from handrail.server.mcp._lines import LINE_BYTES
from handrail.server.mcp.door_connection import DoorConnection, DoorServer, PendingCount
from handrail.server.mcp.mcp_endpoints import DoorPeer
from handrail.server.mcp.mcp_server import McpServers

pytestmark = pytest.mark.anyio

Context = ServerRequestContext[Any, Any]
LARGE = "x" * 4096
"""The answer of the tool `large`."""


@dataclass(frozen=True, slots=True)
class Door:
    """A peer that speaks in lines, and the bell that lets the tool `wait` end."""

    stream: SocketStream
    lines: BufferedByteReceiveStream
    bell: anyio.Event
    talk: DoorConnection
    calls: list[str]
    """The tools that were called."""

    async def say(self, *messages: object) -> None:
        for message in messages:
            await self.stream.send(json.dumps(message).encode() + b"\n")

    async def hear(self) -> dict[str, Any]:
        return json.loads(await self.lines.receive_until(b"\n", 1 << 20))


@asynccontextmanager
async def talking(folder: Path, total: PendingCount | None = None) -> AsyncGenerator[Door]:
    """A door that has shaken hands with a server whose tool `wait` answers at the bell, and all others at once."""
    async with connected_pair(folder) as pair, anyio.create_task_group() as group:
        talk = DoorConnection(pair.lines, total)
        door = Door(pair.peer, BufferedByteReceiveStream(pair.peer), anyio.Event(), talk, [])
        group.start_soon(talk.serve, server(talk, door.bell, door.calls))
        info = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "d", "version": "1"},
        }
        await door.say(
            request(0, "initialize", info), {"jsonrpc": "2.0", "method": "notifications/initialized"}
        )
        assert (await door.hear())["id"] == 0
        yield door
        group.cancel_scope.cancel()


def server(talk: DoorConnection, bell: anyio.Event, calls: list[str] | None = None) -> Server[Any]:
    async def call(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if calls is not None:
            calls.append(params.name)
        talk.opened(context.request_id, f"call of {context.request_id}", acts=params.name == "act")
        if params.name == "wait":
            await bell.wait()
        text = LARGE if params.name == "large" else params.name
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    return Server("test", on_call_tool=call)


def request(id: int, method: str, params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def use(id: int, tool: str) -> dict[str, object]:
    return request(id, "tools/call", {"name": tool, "arguments": {}})


def cancel(request: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request}}


async def test_a_call_answered_at_once_is_not_worth_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_connection, "NOTE_SECONDS", BOUND)  # on a busy machine, too, this is at once
    async with talking(tmp_path) as door:
        for number in range(1, 20):
            await door.say(use(number, "echo"))
            assert (await door.hear())["id"] == number


async def test_a_door_is_told_which_call_its_request_became_while_that_is_open(tmp_path: Path) -> None:
    async with talking(tmp_path) as door:
        await door.say(use(1, "wait"), use(2, "wait"))
        notes = [(await door.hear())["handrail"]["opened"] for _ in range(2)]
        assert notes == [{"request": 1, "call": "call of 1"}, {"request": 2, "call": "call of 2"}]
        door.bell.set()
        assert {(await door.hear())["id"] for _ in range(2)} == {1, 2}


async def test_a_door_knows_a_call_that_acts_before_it_does(tmp_path: Path) -> None:
    async with talking(tmp_path) as door:
        await door.say(use(1, "act"))
        assert await door.hear() == {"handrail": {"opened": {"request": 1, "call": "call of 1"}}}
        assert (await door.hear())["id"] == 1


async def test_a_word_to_the_door_stands_on_a_line_of_its_own(tmp_path: Path) -> None:
    async with talking(tmp_path) as door:
        door.talk.note({"bye": "stopping"})
        assert await door.hear() == {"handrail": {"bye": "stopping"}}


async def test_what_is_no_message_is_answered_as_such_and_the_next_one_served(tmp_path: Path) -> None:
    async with talking(tmp_path) as door:
        await door.stream.send(b"\n  \nnonsense\n")
        assert (await door.hear())["error"]["code"] == -32700
        await door.stream.send(b"x" * (LINE_BYTES + 1) + b"\n")
        assert (await door.hear())["error"]["code"] == -32600
        await door.say(use(1, "echo"))
        assert (await door.hear())["id"] == 1


async def test_a_request_of_the_other_generation_is_refused_after_a_handshake(tmp_path: Path) -> None:
    async with talking(tmp_path) as door:
        envelope = {types.PROTOCOL_VERSION_META_KEY: "2026-07-28"}
        await door.say(request(1, "tools/call", {"name": "echo", "arguments": {}, "_meta": envelope}))
        refused = await door.hear()
        assert (refused["id"], refused["error"]["code"]) == (1, types.INVALID_REQUEST)
        await door.say(use(1, "echo"))
        assert "result" in await door.hear()


async def test_a_door_that_leaves_before_its_first_message_ends_the_connection(tmp_path: Path) -> None:
    async with connected_pair(tmp_path) as pair:
        talk = DoorConnection(pair.lines)
        await pair.peer.aclose()
        await talk.serve(server(talk, anyio.Event()))


async def test_a_door_that_ended_its_input_gets_the_answers_it_waits_for(tmp_path: Path) -> None:
    async with talking(tmp_path) as door:
        await door.say(use(1, "wait"))
        assert "handrail" in await door.hear()
        await door.stream.send_eof()
        door.bell.set()
        assert (await door.hear())["id"] == 1


async def test_nobody_waits_for_the_answer_to_a_request_that_was_cancelled(tmp_path: Path) -> None:
    async with connected_pair(tmp_path) as pair:
        talk = DoorConnection(pair.lines)
        for message in (use(1, "wait"), cancel([]), cancel(1)):
            await pair.peer.send(json.dumps(message).encode() + b"\n")
        await pair.peer.send_eof()
        with anyio.fail_after(2):  # well below what it would wait for an answer
            await talk.serve(server(talk, anyio.Event()))


async def test_a_peer_with_many_unanswered_requests_is_not_read_until_some_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_connection, "PENDING_MAX", 4)
    async with talking(tmp_path) as door:
        await door.say(*(use(number, "wait") for number in range(1, 5)), use(5, "echo"))
        heard = [await door.hear() for _ in range(4)]
        assert [each["handrail"]["opened"]["request"] for each in heard] == [1, 2, 3, 4]
        with anyio.move_on_after(0.2):
            assert not await door.hear()
        door.bell.set()
        assert {(await door.hear())["id"] for _ in range(5)} == {1, 2, 3, 4, 5}


@pytest.mark.skipif(sys.platform != "linux", reason="this kernel does not report what a peer has not read")
async def test_a_peer_that_reads_nothing_has_few_requests_begun(tmp_path: Path) -> None:
    """What the kernel holds for it counts: it is no sign that the peer reads."""
    async with talking(tmp_path) as door:
        await door.say(*(use(number, "large") for number in range(1, 200)))
        with anyio.fail_after(BOUND):
            while not door.talk.was_crowded:  # noqa: ASYNC110 - the connection reports nothing
                await anyio.sleep(0.001)
        begun = door.calls.copy()
        assert len(begun) * len(LARGE) < 4 * door_connection.UNREAD_EASY
        assert {(await door.hear())["id"] for _ in range(1, 200)} == set(range(1, 200))


async def test_all_connections_together_have_a_bound_and_each_may_have_one_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_connection, "PENDING_TOTAL", 4)
    total = PendingCount()
    (tmp_path / "other").mkdir()
    async with talking(tmp_path, total) as many, talking(tmp_path / "other", total) as one:
        await many.say(*(use(number, "wait") for number in range(1, 7)))
        heard = [await many.hear() for _ in range(4)]
        assert [each["handrail"]["opened"]["request"] for each in heard] == [1, 2, 3, 4]
        assert total.count == 4
        await one.say(use(1, "echo"))
        assert (await one.hear())["id"] == 1
        many.bell.set()
        answered: set[int] = set()
        while answered != {1, 2, 3, 4, 5, 6}:
            heard_next = await many.hear()
            answered |= {heard_next["id"]} if "id" in heard_next else set()
        assert total.count == 0


async def test_a_peer_that_leaves_while_it_is_not_read_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_connection, "PENDING_MAX", 1)
    monkeypatch.setattr(door_connection, "HANG_UP_SECONDS", 0.01)
    async with connected_pair(tmp_path) as pair:
        talk = DoorConnection(pair.lines)
        for message in (use(1, "wait"), use(2, "wait")):
            await pair.peer.send(json.dumps(message).encode() + b"\n")
        async with anyio.create_task_group() as group, pair.peer:
            group.start_soon(talk.serve, server(talk, anyio.Event()))
            await pair.peer.receive(1)
            await pair.peer.aclose()
    assert talk.was_crowded


async def test_an_id_that_is_still_in_use_is_refused(tmp_path: Path) -> None:
    async with talking(tmp_path) as door:
        await door.say(use(1, "wait"), use(1, "wait"))
        heard = [await door.hear() for _ in range(2)]
        assert [each["error"]["code"] for each in heard if "error" in each] == [-32600]
        door.bell.set()
        assert (await door.hear())["id"] == 1
        await door.say(use(1, "echo"))
        assert (await door.hear())["id"] == 1


async def test_answers_that_nobody_reads_are_replaced_by_a_short_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with talking(tmp_path) as door:
        monkeypatch.setattr(door_connection, "UNREAD_BYTES", 150)
        await door.say(use(1, "x" * 200), use(2, "echo"))
        heard = [await door.hear() for _ in range(2)]
        dropped = next(each for each in heard if each["id"] == 1)
        assert "have not been read" in dropped["error"]["message"]
        assert next(each for each in heard if each["id"] == 2)["result"]["content"][0]["text"] == "echo"


@pytest.mark.parametrize("client", ["kimi-code", "Cline"])
async def test_a_client_with_a_hard_limit_gets_its_call_back_in_time_whatever_it_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    monkeypatch.setattr(client_timeouts, "HARD_LIMITS", dict.fromkeys(client_timeouts.HARD_LIMITS, 0.1))
    client_timeouts.longest_wait.cache_clear()
    patient, peer = Patient(), DoorPeer(key="k", workspace="/w", credential="")
    async with gate_world(tmp_path, patient, default="allow") as world, connected_pair(tmp_path) as pair:
        mcp = McpServers(world.gate, build_hooks(world.gate), BOUND)
        doors = DoorServer(mcp, Access(world.journal, (), b""), Callers(running=lambda _thread: None))
        world.group.start_soon(doors.serve, pair.lines, peer)
        about: dict[str, object] = {"protocolVersion": "2025-06-18", "capabilities": {}}
        asked = {"name": "patient", "arguments": {"patience": 600}, "_meta": {"progressToken": 1}}
        for message in (
            request(0, "initialize", {**about, "clientInfo": {"name": client, "version": "1"}}),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            request(1, "tools/call", asked),
        ):
            await pair.peer.send(json.dumps(message).encode() + b"\n")
        lines = BufferedByteReceiveStream(pair.peer)
        answer: dict[str, Any] = {}
        while answer.get("id") != 1:
            answer = json.loads(await lines.receive_until(b"\n", 1 << 20))
        (call,) = world.gate.open.values()
        told = answer["result"]["structuredContent"]
        assert (told["status"], told["call_id"], call.status) == ("running", call.id, "running")
        assert call.caller.client == client
        patient.go.set()
        await call.settled()
    client_timeouts.longest_wait.cache_clear()
